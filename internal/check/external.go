// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// External is a note on some of what an object asks for, such as why it has nothing to do with a shipped BTF.
type External struct {
	Subjects []string // "target_type_id struct task_struct", "bpf_task_acquire"; distinct, at most limits.Externals
	Reason   string
}

// Reasons of External, and of the notes of programs.
const (
	lookedUp   = "looked up in the running kernel's own BTF, whatever is shipped"
	idOfLoader = "an ID in the BTF that the loader reads; of a shipped one it means nothing to the kernel"
)

// Disputed lists the relocations of an object that name something on whose flavor loaders do not agree, by how they differ.
func Disputed(o *relolog.Object) (l []External) {
	r := newRecords(o)
	at, n := make(map[string]int), 0
	seen := make(map[string]bool)
	for i := range r.obj.Records() {
		why, text := r.disputed(i), r.text(i)
		if why == "" || seen[text] || n == limits.Externals {
			continue
		}
		seen[text] = true
		k, ok := at[why]
		if !ok {
			k = len(l)
			at[why] = k
			l = append(l, External{Reason: why})
		}
		l[k].Subjects = append(l[k].Subjects, text)
		n++
	}
	return l
}

// Externals tells what of an object has nothing to do with a shipped BTF, without a look at
// its programs.
func Externals(o *relolog.Object) (l []External) {
	r := newRecords(o)
	var ids, names []string
	seen := make(map[string]bool)
	for i := range r.obj.Records() {
		if !r.asksForID(i) || len(ids) == limits.Externals {
			continue
		}
		if text := r.text(i); !seen[text] {
			seen[text] = true
			ids = append(ids, text)
		}
	}
	if b := r.types(); b != nil {
		names = bpfprog.TypedKsyms(b)
	}
	for _, x := range []External{{names, lookedUp}, {ids, idOfLoader}} {
		if len(x.Subjects) > 0 {
			l = append(l, x)
		}
	}
	return l
}
