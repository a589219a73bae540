// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
)

// readsOps reports whether an access is to the arguments of a function of a struct_ops.
func readsOps(s *bpfobj.Section, a *flow.Access) bool {
	return s.Kind == bpfobj.AttachOps && a.Arg < 0 && a.Struct == "" && !a.Moved && !a.Computed
}

// throughOps reports whether an access is one through an argument of a function of a struct_ops.
func throughOps(s *bpfobj.Section, a *flow.Access) bool {
	return s.Kind == bpfobj.AttachOps && a.Arg >= 0
}

// opsMember returns the struct_ops that a function is for, and the index of its member, nil if there is none.
func (s *Scene) opsMember(fn int) (m *bpfobj.StructOpsMap, n int) {
	for i := range s.o.StructOps {
		m = &s.o.StructOps[i]
		if n = slices.Index(m.Funcs, fn); n >= 0 {
			return m, n
		}
	}
	return nil, -1
}

// opsHook returns the member of a struct_ops that a function is for, nil if the kernel has none.
func (s *Scene) opsHook(fn int, sec *bpfobj.Section) *hook {
	m, n := s.opsMember(fn)
	if m == nil {
		return nil
	}
	y, ok := s.k.find(m.Type, btf.KindStruct)
	if !ok {
		return nil
	}
	member, ok := memberNamed(y.typ(), m.Members[n])
	if to, known := y.view.SkipMods(member.Type); ok && known && to.Kind() == btf.KindPtr {
		return newHook(m.Type+"."+m.Members[n], y.view, to.Ref(), sec)
	}
	return nil
}

// opsArgument judges an access to the arguments of a function of a struct_ops (bpf_tracing_btf_ctx_access in kernel/bpf/btf.c, which the
// functions *_is_valid_access call).
func (e *Evaluation) opsArgument(a *flow.Access, off int64, size int) Finding {
	if f := refusedArgument(a, off, size); f.Status != OK {
		return f
	}
	if h := e.opsHook(e.pr.Fn, e.pr.Attach); h != nil {
		return h.read(off)
	}
	return Finding{}
}

// opsThrough judges an access through an argument of a function of a struct_ops: whether it may be null, which members may be written, and which
// bytes read.
func (e *Evaluation) opsThrough(a *flow.Access, off int64, size int) (f Finding) {
	h := e.opsHook(e.pr.Fn, e.pr.Attach)
	if h == nil || h.wide(a.Arg) {
		return f
	}
	t, refused := h.slot(a.Arg)
	if refused.Status != OK || t.Kind() != btf.KindPtr || h.tagOf(t) != "" {
		return f // judged as a read of the argument, or not judged
	}
	if to, ok := h.view.SkipMods(t.Ref()); ok && to.Kind() == btf.KindStruct {
		if name := e.nullableArgument(a.Arg); name != "" && !a.Checked {
			f = Finding{Status: Fails, Code: ContextNull, Args: Args{Decided: ByWitness, Witness: "!" + name}}
		} else if a.Write {
			f = e.stored(e.promoted(to), off, size)
		} else if f = e.unlicensed(); f.Status == OK {
			f = e.object(e.promoted(to), a, off, size)
		}
		f.Subject = h.argument(a.Arg)
	}
	return f
}

// stubOf is the function of the kernel whose parameters say which arguments of a member of a struct_ops may be null.
func stubOf(ops, member string) string { return ops + "__" + member }

// nullableArgument returns the name of the parameter that says that an argument may be null, "" for none: prepare_arg_info in
// kernel/bpf/bpf_struct_ops.c.
func (e *Evaluation) nullableArgument(n int) string {
	m, i := e.opsMember(e.pr.Fn)
	y, ok := e.k.find(stubOf(m.Type, m.Members[i]), btf.KindFunc)
	if !ok {
		return ""
	}
	proto := y.view.Type(y.typ().Ref())
	if proto.Kind() != btf.KindFuncProto || n >= int(proto.Vlen()) {
		return ""
	}
	if name := string(y.view.Name(proto.Param(uint32(n)).NameOff)); strings.HasSuffix(name, "__nullable") {
		return name
	}
	return ""
}

// promoted returns the struct to which an argument leads if its type is a pointer to t (bpf_tcp_ca_is_valid_access in net/ipv4/bpf_tcp_ca.c).
func (e *Evaluation) promoted(t btf.Type) btf.Type {
	m, _ := e.opsMember(e.pr.Fn)
	if o := facts.OpsNamed(m.Type); o != nil && o.Argument.From == string(t.Name()) {
		if y, ok := e.k.find(o.Argument.To, btf.KindStruct); ok {
			return y.typ()
		}
	}
	return t
}

// stored judges a write of a function of a struct_ops through a pointer to a struct of the kernel (check_ptr_to_btf_access in kernel/bpf/verifier.c):
// struct_ops list members for it (btf_struct_access of their struct bpf_verifier_ops). A size of 0 is not known.
func (e *Evaluation) stored(t btf.Type, off int64, size int) (f Finding) {
	m, _ := e.opsMember(e.pr.Fn)
	if m == nil {
		return f
	}
	o := facts.OpsNamed(m.Type)
	if o == nil {
		return f
	}
	if f = e.unlicensed(); f.Status != OK {
		return f
	}
	for i := range o.Fields {
		x := &o.Fields[i]
		if x.Of != string(t.Name()) {
			continue
		}
		lo, hi, known := e.bytesOf(t, x)
		if !known {
			return f
		}
		if (off == lo || off > lo && x.Within) && off+int64(max(size, 1)) <= hi {
			return e.k.later(x.When, ContextWrite)
		}
	}
	f = Finding{Status: Fails, Code: ContextWrite}
	if e.k.atLeast(facts.ContextsRead().Next()) {
		f.Status, f.Until = MayFail, facts.ContextsRead()
	}
	return f
}

// bytesOf returns where in a struct a field has its bytes: none if the kernel lacks a member. They are not known if it lacks a struct.
func (e *Evaluation) bytesOf(t btf.Type, x *facts.Field) (lo, hi int64, known bool) {
	hi = int64(t.Size())
	for _, p := range x.Path {
		y, ok := e.k.find(p.Struct, btf.KindStruct)
		if !ok {
			return 0, 0, false
		}
		at, size, ok := place(y.typ(), p.Names)
		if !ok {
			return 0, 0, true
		}
		lo, hi = lo+at, lo+at+size
	}
	return lo, hi - x.Except, true
}

// place returns where a struct has a member of a member, in bytes.
func place(t btf.Type, names []string) (off, size int64, ok bool) {
	for _, name := range names {
		m, ok := memberWithin(t, name, deepest)
		if !ok || m.BitSize != 0 {
			return 0, 0, false
		}
		off += int64(m.BitOffset / 8)
		n, err := t.BTF().SizeOf(m.Type)
		if err != nil {
			return 0, 0, false
		}
		size = int64(n)
		t, _ = t.BTF().SkipMods(m.Type)
	}
	return off, size, true
}
