// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// gplLicenses are those that the kernel takes for compatible with the GPL
// (license_is_gpl_compatible in include/linux/license.h).
var gplLicenses = map[string]bool{
	"GPL": true, "GPL v2": true, "GPL and additional rights": true, "Dual BSD/GPL": true, "Dual MIT/GPL": true, "Dual MPL/GPL": true,
}

// gplOnly is the set of helpers in helpers.txt that only programs with such a license may call.
const gplOnly = "gpl"

// unlicensed reports whether the object's license is not compatible with the GPL.
func (o *Object) unlicensed() bool { return !gplLicenses[o.License] }

// restricts judges a call of a helper by programs of a section with another license.
func (k *inventory) restricts(s *bpfobj.Section, helper int64) Status {
	switch fn := asm.BuiltinFunc(helper); {
	case fn == asm.FnKtimeGetNs:
		return k.since(ktimeForAll, LicenseMissing).Status
	case fn == asm.FnGetStackid && s != nil && s.ProgType == "PERF_EVENT":
		return k.since(stackidForAll, LicenseMissing).Status
	}
	if _, ok := helperTable()[gplOnly][helper]; ok {
		return Fails
	}
	return OK
}

// license judges the parts of a program that need a license even if the verifier does not reach them: its type
// (bpf_lsm_verify_prog, check_struct_ops_btf_id) and calls of kfuncs (add_kfunc_call).
func (e *evaluation) license() {
	if !e.o.unlicensed() {
		return
	}
	f := Finding{Status: Fails, Code: LicenseMissing, Args: Args{Name: e.o.License}}
	if s := e.pr.Attach; s != nil && (s.ProgType == "LSM" || s.ProgType == "STRUCT_OPS") {
		f.Subject = "BPF_PROG_TYPE_" + s.ProgType
		e.add(f)
	}
	seen := make(map[string]bool)
	e.eachUse(func(u *use) {
		if x := e.calledKfunc(u); x != nil && !seen[x.Name] {
			seen[x.Name] = true
			f.Subject, f.Source = x.Name, e.o.Source(u.at)
			e.add(f)
		}
	})
}
