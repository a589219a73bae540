// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TestVerifierSleepableHooks asks the running kernel for the hooks of LSM to which programs that may sleep can be attached.
// With -v the answers are logged: the paragraph of facts.txt is made of them.
func TestVerifierSleepableHooks(t *testing.T) {
	k := datedKernel(t)
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	var sleepable []string
	asked := 0
	for typ := range spec.All() {
		fn, ok := typ.(*btf.Func)
		if !ok || !strings.HasPrefix(fn.Name, "bpf_lsm_") {
			continue
		}
		id, err := spec.TypeID(fn)
		if err != nil {
			t.Fatal(err)
		}
		hook := strings.TrimPrefix(fn.Name, "bpf_lsm_")
		l := &loader{kind: uint32(ebpf.LSM), attach: uint32(ebpf.AttachLSMMac), btfID: uint32(id), flags: unix.BPF_F_SLEEPABLE}
		log, err := l.load(insn{Op: 0xb7})
		refused := strings.Contains(log, "is not sleepable")
		if !refused && err != nil {
			continue // no hook, or no hook for programs
		}
		asked++
		e := Evaluation{Scene: &Scene{k: k}, pr: &bpfobj.Program{Attach: bpfobj.SectionOf("lsm.s/" + hook)}}
		e.lsmHook(hook)
		e.Findings = slices.DeleteFunc(e.Findings, func(f Finding) bool { return f.Code != AttachTargetHookSleeps })
		if got := Worst(e.Findings); refused && got == OK || !refused && got == Fails {
			t.Errorf("%s: %s, refused: %t: %s", hook, got, refused, log)
		}
		if !refused {
			sleepable = append(sleepable, hook)
		}
	}
	if asked == 0 {
		t.Skip("needs rights to load programs of LSM")
	}
	slices.Sort(sleepable)
	t.Logf("of %d hooks: %v", asked, sleepable)
}
