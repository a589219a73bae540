// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
)

// External says why some of what an object asks for has nothing to do with a shipped BTF.
type External struct {
	Subjects []string // "target_type_id struct task_struct", "bpf_task_acquire"; distinct, at most limits.Externals
	Reason   string
}

// Reasons of External, and of the notes of programs.
const (
	lookedUp   = "looked up in the running kernel's own BTF, whatever is shipped"
	idOfLoader = "an ID in the BTF that the loader reads; of a shipped one it means nothing to the kernel"
)

// Externals tells what of an object has nothing to do with a shipped BTF, without a look at
// its programs.
func Externals(o *core.Object) (l []External) {
	r := records{o}
	var ids, names []string
	seen := make(map[string]bool)
	for i := range r.Records() {
		if !r.asksForID(i) || len(ids) == limits.Externals {
			continue
		}
		if text := r.text(i); !seen[text] {
			seen[text] = true
			ids = append(ids, text)
		}
	}
	if b := r.types(); b != nil {
		names = bpfobj.TypedKsyms(b)
	}
	for _, x := range []External{{names, lookedUp}, {ids, idOfLoader}} {
		if len(x.Subjects) > 0 {
			l = append(l, x)
		}
	}
	return l
}
