// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/flow"
)

// readsOps reports whether an access is to the arguments of a function of a struct_ops.
func readsOps(s *bpfobj.Section, a *flow.Access) bool {
	return s.Kind == bpfobj.AttachOps && a.Arg < 0 && a.Struct == "" && !a.Moved && !a.Computed
}

// opsHook returns the member of a struct_ops that a function is for, nil if the kernel has none.
func (s *Scene) opsHook(fn int, sec *bpfobj.Section) *hook {
	for i := range s.o.StructOps {
		m := &s.o.StructOps[i]
		n := slices.Index(m.Funcs, fn)
		y, ok := s.k.find(m.Type, btf.KindStruct)
		if n < 0 || !ok {
			continue
		}
		member, ok := memberNamed(y.typ(), m.Members[n])
		if to, known := y.view.SkipMods(member.Type); ok && known && to.Kind() == btf.KindPtr {
			return newHook(m.Type+"."+m.Members[n], y.view, to.Ref(), sec)
		}
	}
	return nil
}

// opsArgument judges a read of the arguments of a function of a struct_ops: whether there are so many (btf_ctx_access in kernel/bpf/btf.c).
func (e *Evaluation) opsArgument(off int64) Finding {
	if h := e.opsHook(e.pr.Fn, e.pr.Attach); h != nil {
		return h.read(off)
	}
	return Finding{}
}
