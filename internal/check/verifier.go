// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/btfgen/btfgen/internal/check/interp"

// verifierFacts are what verifiers can do, each with a member of a struct as its witness. The member came with the commit or with a
// later one on the same code, so that a kernel that has the member can do it. A kernel that has the feature without the member is one
// whose guards of this kind are reported as failures.
var verifierFacts = []struct {
	feature    interp.Features
	of, member string
	since      release // of the member
	source     string  // the commit of the feature, in kernel/bpf/verifier.c
}{
	{interp.Constants, "bpf_verifier_state", "branches", linux(5, 3), "b5dc0163d8fd, fb8d251ee2a6"},
	{interp.Rodata, "bpf_prog_aux", "attach_btf_id", linux(5, 5), "a23740ec43ba"},
	{interp.Globals, auxStruct, "linkage", linux(5, 6), "51c39bb1d5d1"},
	{interp.NonNull, "bpf_verifier_env", "bpf_capable", linux(5, 8), "cac616db39c2"},
	{interp.Partly, "bpf_subprog_info", "tail_call_reachable", linux(5, 10), "2921c90d4718, 5689d49b71ad"},
	{interp.Partial, "bpf_kfunc_btf_tab", "descs", linux(5, 16), "354e8f1970f8"},
	{interp.StImm, "bpf_verifier_log", "start_pos", linux(6, 4), "ecdf985d7615"},
	{interp.LazyGlobals, auxStruct, "called", linux(6, 8), "2afae08c9dcb"},
	{interp.Narrow, "bpf_verifier_state", "may_goto_depth", linux(6, 9), "c1e6148cb4f8"},
}

// verifierStructs are the names of the structs in verifierFacts.
func verifierStructs() (names []string) {
	for _, v := range verifierFacts {
		names = append(names, v.of)
	}
	return names
}
