// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
)

// External is a note on relocations or externs of an object, such as why a shipped BTF does not matter for them.
type External struct {
	Finding           // its Subject is ""
	Subjects []string // "target_type_id struct task_struct", "bpf_task_acquire"; distinct, at most limits.Externals
}

// Externals returns what the object takes from the running kernel, whatever BTF is shipped with it. It does not look at the code
// of programs.
func Externals(o *core.Object) []External {
	var ids []External
	seen := make(map[Finding]bool)
	add := func(l []External, f Finding, subject string) []External {
		f.Subject, f.Relocation, f.Source = "", "", ""
		i := slices.IndexFunc(l, func(x External) bool { return x.Finding == f })
		if i < 0 {
			i = len(l)
			l = append(l, External{Finding: f})
		}
		if x := &l[i]; len(x.Subjects) < limits.Externals {
			x.Subjects = append(x.Subjects, subject)
		}
		return l
	}
	r := records{o}
	for i := range r.Records() {
		for _, f := range r.notes(i) {
			if f.Source = ""; seen[f] || len(seen) == limits.Externals {
				continue
			}
			seen[f] = true
			ids = add(ids, f, r.text(i))
		}
	}
	var names []External
	if b := r.types(); b != nil {
		for _, name := range bpfobj.TypedKsyms(b) {
			names = add(names, Finding{Code: RunningKernelSymbol}, name)
		}
	}
	return slices.Concat(names, ids)
}
