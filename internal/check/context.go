// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// hook is a function or tracepoint of the kernel with BTF, as the verifier shows it
// to programs: an array of its arguments, 8 bytes each, and of its result behind
// them where the program runs after it.
type hook struct {
	name   string
	view   *btf.BTF
	proto  btf.Type // a FUNC_PROTO
	first  int      // parameters that programs do not see: the void *__data of a tracepoint
	result bool
	sec    *bpfobj.Section
}

// newHook returns nil where id is no FUNC_PROTO.
func newHook(name string, view *btf.BTF, id btf.TypeID, s *bpfobj.Section) *hook {
	h := &hook{name: name, view: view, proto: view.Type(id), sec: s}
	if h.proto.Kind() != btf.KindFuncProto {
		return nil
	}
	switch s.Type {
	case "BPF_TRACE_RAW_TP":
		h.first = 1
	case "BPF_TRACE_FEXIT", "BPF_TRACE_FSESSION", "BPF_MODIFY_RETURN", "BPF_LSM_MAC", "BPF_LSM_CGROUP":
		h.result = true
	}
	return h
}

func (h *hook) params() int { return max(0, int(h.proto.Vlen())-h.first) }

// words is how many registers of 8 bytes the arguments take.
func (h *hook) words() (n int) {
	for i := range h.params() {
		size, _ := h.view.SizeOf(h.proto.Param(uint32(h.first + i)).Type)
		n += max(1, int(size+7)/8)
	}
	return n
}

// prototype judges whether programs can be attached to the function at all
// (btf_distill_func_proto in kernel/bpf/btf.c; structs since Linux 6.1). Tracepoints
// are not judged so.
func (h *hook) prototype(k *inventory) (f Finding) {
	const most = 12 // MAX_BPF_FUNC_ARGS
	no := func(code Code, a Args) Finding { return Finding{Status: Fails, Code: code, Args: a} }
	if h.first > 0 {
		return f
	}
	if n := h.params(); n > most {
		return no(AttachTargetArguments, Args{Count: int64(n), Max: most})
	}
	if typ := h.carries(h.proto.Ref(), true); typ != "" {
		return no(AttachTargetReturn, Args{Name: typ})
	}
	for i := range h.params() {
		id := h.proto.Param(uint32(i)).Type
		if id == 0 {
			return no(AttachTargetVariadic, Args{})
		}
		if typ := h.carries(id, false); typ != "" {
			return no(AttachTargetArgument, Args{Name: typ, Count: int64(i + 1)})
		}
		if t, _ := h.view.SkipMods(id); t.Kind() == btf.KindStruct && f.Status == OK {
			f = k.since(structArguments, AttachTargetStruct)
			f.Count = int64(i + 1)
		}
	}
	return f
}

// carries says what a type is that no argument, or no result, may have; "" for
// one that it may.
func (h *hook) carries(id btf.TypeID, result bool) string {
	t, _ := h.view.SkipMods(id)
	switch k := t.Kind(); {
	case k == btf.KindInt, k.IsAnyEnum(), k == btf.KindPtr, k == btf.KindVoid && result:
		return ""
	case k == btf.KindStruct && !result && t.Size() <= 16:
		return ""
	}
	return prototype(h.view, id)
}

// slot is how the verifier sees 8 bytes of the context: btf_ctx_access in
// kernel/bpf/btf.c, as of Linux 6.0. Where releases differ, 5.10, 6.1, 6.12, 6.18 and 7.2
// were tested, but not each release between them.
type slot struct {
	Finding // OK where they can be read
	ptr     bool
	to      btf.Type // the struct or union that they point to; void for what is a number to the verifier
}

// slot judges the 8 bytes at a place in the context.
func (h *hook) slot(k *inventory, n int) slot {
	id := h.proto.Ref()
	switch p := h.params(); {
	case h.wide(n):
		return slot{}
	case n < p:
		id = h.proto.Param(uint32(h.first + n)).Type
	case n > p || !h.result:
		return slot{Finding: Finding{Status: Fails, Code: ContextNoArgument, Args: Args{Name: h.name, Count: int64(p)}}}
	}
	t, _ := h.view.SkipMods(id)
	s := slot{ptr: t.Kind() == btf.KindPtr}
	isInt := t.Kind() == btf.KindInt && t.Size() <= 8
	switch {
	case n == h.params() && h.sec.Type == "BPF_MODIFY_RETURN" && !isInt:
		s.Finding = Finding{Status: Fails, Code: ContextResult, Args: Args{Name: h.name}}
	case isInt, t.Kind().IsAnyEnum():
	case t.Kind() == btf.KindStruct && n < h.params():
		s.Finding = k.since(structArguments, ContextStruct)
	case !s.ptr:
		s.Finding = Finding{Status: Fails, Code: ContextType, Args: Args{Name: prototype(h.view, id)}}
	default:
		s.pointer(k, h, t)
	}
	return s
}

// wide reports whether an argument up to n takes more than 8 bytes, so that it is
// not said here which is at n.
func (h *hook) wide(n int) bool {
	for i := range min(n+1, h.params()) {
		if size, err := h.view.SizeOf(h.proto.Param(uint32(h.first + i)).Type); err == nil && size > 8 {
			return true
		}
	}
	return false
}

// pointer judges a pointer by what it points to.
func (s *slot) pointer(k *inventory, h *hook, t btf.Type) {
	to, _ := h.view.SkipMods(t.Ref())
	switch kind := to.Kind(); {
	case kind.IsComposite():
		s.to = to
	case t.Ref() == 0, h.sec.Kind == bpfobj.AttachIter: // whose pointers are declared apart (ctx_arg_info)
	case kind == btf.KindVoid:
		if s.Finding = k.since(voidPointers, ContextPointer); s.Status == Fails {
			s.Status = MayFail
		}
	case kind == btf.KindInt && to.Size() == 1:
	case kind == btf.KindInt:
		s.Finding = k.since(intPointers, ContextPointer)
	default:
		if s.Finding = k.since(otherPointers, ContextPointer); s.Status == Fails && k.has(otherPointersUntried) == present {
			s.Status = MayFail
		}
	}
	if s.Status != OK {
		s.Name = prototype(h.view, t.ID)
	}
}

// argument names 8 bytes of the context.
func (h *hook) argument(n int) string {
	if n == h.params() && h.result {
		return "result of " + h.name
	}
	return fmt.Sprintf("argument %d of %s", n+1, h.name)
}

// read judges an access to the context itself. A size of 0 is not known.
func (h *hook) read(k *inventory, off int64, size int, write bool) (f Finding) {
	if f = h.whole(off, write); f.Status != OK {
		f.Subject = h.name
		return f
	}
	n := int(off / 8)
	s := h.slot(k, n)
	if f = s.Finding; f.Status == OK && s.ptr && size != 8 && size != 0 {
		f = Finding{Status: Fails, Code: ContextPartly, Args: Args{Size: int64(size)}}
		if k.has(wholePointers) != present {
			f.Status = MayFail
		}
	}
	f.Subject = h.argument(n)
	return f
}

// whole judges a place in the context (tracing_prog_is_valid_access in
// kernel/trace/bpf_trace.c, which programs of LSM do not pass, and the beginning of
// btf_ctx_access).
func (h *hook) whole(off int64, write bool) Finding {
	lsm := h.sec.Kind == bpfobj.AttachLSM
	switch {
	case write && lsm:
	case write:
		return Finding{Status: Fails, Code: ContextWrite}
	case off < 0, off >= 8*12 && !lsm:
		return Finding{Status: Fails, Code: ContextOffset, Args: Args{Offset: off}}
	case off%8 != 0:
		return Finding{Status: Fails, Code: ContextAlignment, Args: Args{Offset: off, Size: 8}}
	}
	return Finding{}
}

// through judges a read through an argument.
func (h *hook) through(p *pairing, a *bpfobj.Access, off int64, size int) (f Finding) {
	n := a.Arg
	s := h.slot(p.k, n)
	if s.Status != OK || h.sec.Kind == bpfobj.AttachIter || h.wide(n) {
		return f // judged where it is read, or not at all
	}
	switch isStruct := s.to.Kind().IsComposite(); {
	case !s.ptr:
		f = Finding{Status: Fails, Code: ContextNumber}
	case !isStruct:
		f = Finding{Status: Fails, Code: ContextNoStruct}
	default:
		f = p.member(s.to, a, off, size)
	}
	f.Subject = h.argument(n)
	return f
}

// result judges a read through a pointer to a struct that a helper returned.
func (p *pairing) result(a *bpfobj.Access, off int64, size int) (f Finding) {
	if y, ok := p.k.find(a.Struct, btf.KindStruct); ok && y.module == "" {
		f = p.member(y.typ(), a, off, size)
		f.Subject = "struct " + a.Struct
	}
	return f
}

// member judges a read of a struct of the kernel (btf_struct_walk in kernel/bpf/btf.c). A size of 0 is not known.
func (p *pairing) member(t btf.Type, a *bpfobj.Access, off int64, size int) Finding {
	if off < 0 || off+int64(max(size, 1)) > int64(t.Size()) && !openEnded(&t) {
		return Finding{Status: Fails, Code: ContextBeyond, Args: Args{Offset: off, Name: prototype(t.BTF(), t.ID)}}
	}
	if name := p.partOf(t, off, int64(size)); name != "" {
		return Finding{Status: Fails, Code: ContextMember, Args: Args{Size: int64(size), Offset: off, Name: name}}
	}
	if a.Given {
		return p.k.given()
	}
	return Finding{}
}

// partOf names the pointer member that a read covers only in part; "" for none.
func (p *pairing) partOf(t btf.Type, off, size int64) string {
	b := t.BTF()
	for i := uint32(0); i < t.Vlen() && size > 0 && p.looks < limits.ReadLooks; {
		m := t.Member(i)
		at := int64(m.BitOffset / 8)
		i, p.looks = i+1, p.looks+1
		if m.BitSize > 0 {
			if end := int64(m.BitOffset+m.BitSize+7) / 8; off <= at && end <= off+size {
				return ""
			}
			continue
		}
		n, err := b.SizeOf(m.Type)
		switch {
		case off < at || err != nil:
			return ""
		case off >= at+int64(n):
			continue
		}
		e, _ := b.SkipMods(m.Type)
		for e.Kind() == btf.KindArray { // it has an end, as it has a size
			e, _ = b.SkipMods(e.Array().Elem)
		}
		if n, err = b.SizeOf(e.ID); err != nil || n == 0 {
			return ""
		}
		off = (off - at) % int64(n) // in the member, or in an element of it
		switch {
		case e.Kind().IsComposite():
			t, i = e, 0
		case e.Kind() == btf.KindPtr && (off != 0 || size != int64(n)):
			return string(b.Name(m.NameOff))
		default:
			return ""
		}
	}
	return ""
}

// openEnded reports whether a struct ends with an array of no length.
func openEnded(t *btf.Type) bool {
	n := t.Vlen()
	if n == 0 {
		return false
	}
	last, ok := t.BTF().SkipMods(t.Member(n - 1).Type)
	return !ok || last.Kind() == btf.KindArray && last.Array().Nelems == 0 || last.Kind().IsComposite()
}

// givesContext reports whether what programs of a kind read of their context is judged. Of
// others it is only whether they read it where it is.
func givesContext(kind bpfobj.AttachKind) bool {
	return attachesByBTF(kind) || kind == bpfobj.AttachRawTP || kind == bpfobj.AttachTP
}

// contextAccesses returns what is judged of the accesses of a program to its context, and to what helpers return.
func contextAccesses(o *bpfobj.Object, pr *bpfobj.Program, steps *limits.Meter) []bpfobj.Access {
	s := pr.Attach
	known := s != nil && s.Kind != bpfobj.AttachOps && s.Kind != bpfobj.AttachExt
	l := o.Accesses(pr, steps)
	if known && givesContext(s.Kind) {
		return l
	}
	return slices.DeleteFunc(l, func(a bpfobj.Access) bool {
		return a.Struct == "" && (!known || !a.Moved && !a.Computed && !writesRegisters(s, &a))
	})
}

// writesRegisters reports whether an access is a write to the registers that programs of kprobes and uprobes are given.
func writesRegisters(s *bpfobj.Section, a *bpfobj.Access) bool {
	return s.ProgType == "KPROBE" && a.Struct == "" && a.Arg < 0 && a.Write
}

// wholeContext is the subject of findings on any part of the context.
const wholeContext = "context"

// The member of a struct of the kernel that came with registerWrites.
const writeStruct, writeMember = "bpf_prog_aux", "kprobe_write_ctx"

// written judges a write to the registers (kprobe_prog_is_valid_access in kernel/trace/bpf_trace.c): since kernels accept
// it, they do so when they load a program, and refuse to attach it to anything but a uprobe.
func (e *evaluation) written() (f Finding) {
	switch e.k.hasMember(writeStruct, writeMember) {
	case lacking:
		f = Finding{Status: Fails, Code: ContextRegisters, Args: Args{Since: registerWrites}}
	case untold:
		f = e.k.since(registerWrites, ContextRegisters)
	}
	if f.Status == OK && e.pr.Attach.Kind != bpfobj.AttachNone {
		f = Finding{Status: Fails, Code: ContextUprobe, Attach: true}
	}
	f.Subject = wholeContext
	return f
}

// moved judges an access through an address of the context to which something was added
// (check_ptr_off_reg in kernel/bpf/verifier.c).
func (k *inventory) moved(s *bpfobj.Section) Finding {
	switch s.ProgType {
	case "KPROBE", "TRACEPOINT", "RAW_TRACEPOINT", "RAW_TRACEPOINT_WRITABLE", "TRACING", "LSM", "SYSCALL", "NETFILTER", "CGROUP_DEVICE":
		return k.since(movedContext, ContextMoved)
	}
	return Finding{Status: Fails, Code: ContextMoved}
}

// given judges a read through a pointer that was on the stack when a helper was given that memory to read:
// whether it is a number since (check_stack_range_initialized in kernel/bpf/verifier.c).
func (k *inventory) given() Finding {
	switch {
	case k.has(spillsKept) == present:
	case k.has(spillsNumbers) == present, k.version.V > uint64(spillsUpdated)+1 && k.dated():
		return Finding{Status: Fails, Code: ContextSpilled, Args: Args{Since: spillsKept}}
	case k.has(spillsDoubtful) == lacking:
	default:
		return Finding{Status: MayFail, Code: ContextSpilled}
	}
	return Finding{}
}

// accesses judges what program number n of the object reads from its context.
func (e *evaluation) accesses(n int) (l []absence) {
	for i := range e.o.accesses[n] {
		a := &e.o.accesses[n][i]
		if a.Moved || a.Computed {
			if f := e.k.moved(e.pr.Attach); f.Status != OK {
				f.Subject, f.Source = wholeContext, e.o.Source(a.At)
				l = append(l, absence{at: a.At, f: f, moved: a.Computed})
				continue
			}
		}
		writes := writesRegisters(e.pr.Attach, a)
		if a.Computed || a.Struct == "" && !givesContext(e.pr.Attach.Kind) && !writes {
			continue
		}
		var f Finding
		if r := e.o.Funcs[a.At.Fn].Insns[a.At.Insn].Record; r != 0 {
			f = e.relocated(a, int(r-1), writes)
		} else {
			f = e.access(a, a.Off, a.Size, writes)
		}
		if f.Status != OK {
			f.Source = e.o.Source(a.At)
			l = append(l, absence{at: a.At, f: f})
		}
	}
	return l
}

// relocated judges an access whose offset a record changes.
func (e *evaluation) relocated(a *bpfobj.Access, record int, writes bool) (f Finding) {
	if v, ok := e.loader.value(record); ok {
		return e.access(a, a.Off+int64(v), 0, writes) // the loader may change the width
	}
	if v, ok := e.ebpfGoOffsets[record]; ok { // and cilium/ebpf does not
		if f = e.access(a, a.Off+v, a.Size, writes); f.Status != OK {
			f.Loader = EbpfGo
		}
	}
	return f // else judged as a relocation
}

// access judges an access at an offset. A size of 0 is not known.
func (e *evaluation) access(a *bpfobj.Access, off int64, size int, writes bool) Finding {
	switch {
	case writes:
		return e.written()
	case a.Struct != "":
		return e.result(a, off, size)
	case e.hook == nil:
		return e.plain(a, off, size)
	case a.Arg < 0:
		return e.hook.read(e.k, off, size, a.Write)
	}
	return e.hook.through(e.pairing, a, off, size)
}

// plain judges an access to the context of a program that is not attached by BTF
// (raw_tp_prog_is_valid_access and tp_prog_is_valid_access in
// kernel/trace/bpf_trace.c, alike since Linux 4.17). What the record of a
// tracepoint has is looked at when the program is attached to it.
func (e *evaluation) plain(a *bpfobj.Access, off int64, size int) (f Finding) {
	s := e.pr.Attach
	if a.Arg >= 0 || s.Kind != bpfobj.AttachRawTP && s.Kind != bpfobj.AttachTP {
		return f
	}
	const args, most = 8 * 12, 8192 // PERF_MAX_TRACE_SIZE is 2048 in older kernels
	first, end := int64(0), int64(args)
	if s.Kind == bpfobj.AttachTP {
		first, end = 8, most
	}
	f = Finding{Status: Fails, Subject: "arguments of " + s.Target(e.pr.Section)}
	if s.Kind == bpfobj.AttachTP {
		f.Subject = "record of " + s.Target(e.pr.Section)
	}
	switch {
	case a.Write:
		f.Code = ContextWrite
	case off < first, off+int64(size) > end:
		f.Code, f.Offset = ContextOutside, off
	case size > 0 && off%int64(size) != 0:
		f.Code, f.Offset, f.Size = ContextAlignment, off, int64(size)
	case e.given > 0 && off+int64(max(size, 1)) > e.given:
		f.Code, f.Offset, f.Size, f.Attach = ContextRecord, off, e.given, true
	default:
		return Finding{}
	}
	return f
}
