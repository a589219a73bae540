// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// hook is a function or tracepoint of the kernel with BTF, as the verifier shows it
// to programs: an array of its arguments, 8 bytes each, and of its result behind
// them where the program runs after it.
type hook struct {
	name   string
	view   *rawbtf.BTF
	proto  rawbtf.Type // a FUNC_PROTO
	first  int         // parameters that programs do not see: the void *__data of a tracepoint
	result bool
	sec    *bpfprog.Section
}

// newHook returns nil where id is no FUNC_PROTO.
func newHook(name string, view *rawbtf.BTF, id btfenc.TypeID, s *bpfprog.Section) *hook {
	h := &hook{name: name, view: view, proto: view.Type(id), sec: s}
	if h.proto.Kind() != btfenc.KindFuncProto {
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
func (h *hook) prototype(k *inventory) (Status, string) {
	const most = 12 // MAX_BPF_FUNC_ARGS
	if h.first > 0 {
		return OK, ""
	}
	if n := h.params(); n > most {
		return Fails, fmt.Sprintf("has %d arguments, of which programs can have %d", n, most)
	}
	if why := h.carries(h.proto.Ref(), true); why != "" {
		return Fails, "returns " + why
	}
	worst, reason := OK, ""
	for i := range h.params() {
		id := h.proto.Param(uint32(i)).Type
		if id == 0 {
			return Fails, "has a variable number of arguments"
		}
		if why := h.carries(id, false); why != "" {
			return Fails, fmt.Sprintf("has %s as argument %d", why, i+1)
		}
		if t, _ := h.view.SkipMods(id); t.Kind() == btfenc.KindStruct && worst == OK {
			worst, reason = k.refused(linux(6, 1), fmt.Sprintf("has a struct as argument %d, with which no program can be attached", i+1))
		}
	}
	return worst, reason
}

// carries says what a type is that no argument, or no result, may have; "" for
// one that it may.
func (h *hook) carries(id btfenc.TypeID, result bool) string {
	t, _ := h.view.SkipMods(id)
	switch k := t.Kind(); {
	case k == btfenc.KindInt, k.IsAnyEnum(), k == btfenc.KindPtr, k == btfenc.KindVoid && result:
		return ""
	case k == btfenc.KindStruct && !result && t.Size() <= 16:
		return ""
	}
	return h.text(id)
}

// slot is what the verifier makes of 8 bytes of the context: btf_ctx_access in
// kernel/bpf/btf.c, as of Linux 6.0. Where releases differ, kernels on either side
// of the one that is named here were asked, 5.10, 6.1, 6.12, 6.18 and 7.2, but not
// each release.
type slot struct {
	status Status // OK where they can be read
	reason string
	ptr    bool
	to     rawbtf.Type // the struct or union that they point to; void for what is a number to the verifier
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
		return slot{status: Fails, reason: fmt.Sprintf("%s has only %s", h.name, logtext.Plural(p, "argument"))}
	}
	t, _ := h.view.SkipMods(id)
	s := slot{ptr: t.Kind() == btfenc.KindPtr}
	isInt := t.Kind() == btfenc.KindInt && t.Size() <= 8
	switch {
	case n == h.params() && h.sec.Type == "BPF_MODIFY_RETURN" && !isInt:
		s.status, s.reason = Fails, h.name+" does not return a number"
	case isInt, t.Kind().IsAnyEnum():
	case t.Kind() == btfenc.KindStruct && n < h.params():
		s.status, s.reason = k.refused(linux(6, 1), "no argument can be a struct")
	case !s.ptr:
		s.status, s.reason = Fails, "it is "+h.text(id)+", neither a number nor a pointer"
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

func (h *hook) text(id btfenc.TypeID) string {
	w := cWriter{h.view, maxTypes}
	return w.name(id, 0)
}

// pointer judges a pointer by what it points to.
func (s *slot) pointer(k *inventory, h *hook, t rawbtf.Type) {
	to, _ := h.view.SkipMods(t.Ref())
	what := "it is " + h.text(t.ID)
	switch kind := to.Kind(); {
	case kind.IsComposite():
		s.to = to
	case t.Ref() == 0, h.sec.Kind == bpfprog.AttachIter: // whose pointers are declared apart (ctx_arg_info)
	case kind == btfenc.KindVoid:
		// "bpf: Allow access to const void pointer arguments in tracing programs",
		// which is in updates of older kernels too.
		if s.status, s.reason = k.refused(linux(6, 16), what+", which programs cannot read"); s.status == Fails {
			s.status = MayFail
		}
	case kind == btfenc.KindInt && to.Size() == 1:
	case kind == btfenc.KindInt:
		s.status, s.reason = k.refused(linux(5, 17), what+", which programs cannot read")
	default:
		// "bpf: Support new pointer param types via SCALAR_VALUE for trampolines"; that
		// 7.0 does not have it has not been tried.
		if s.status, s.reason = k.refused(linux(7, 1), what+", which programs cannot read"); s.status == Fails && k.has(linux(7, 0)) == present {
			s.status = MayFail
		}
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
	f.Subject = h.name
	if f.Status, f.Reason = h.whole(off, write); f.Status != OK {
		return f
	}
	n := int(off / 8)
	f.Subject = h.argument(n)
	s := h.slot(k, n)
	if f.Status, f.Reason = s.status, s.reason; s.status == OK && s.ptr && size != 8 && size != 0 {
		// "bpf: Check size for BTF-based ctx access of pointer members", which is in
		// updates of older kernels too.
		f.Status, f.Reason = Fails, fmt.Sprintf("it is a pointer, of which %d bytes are read", size)
		if k.has(linux(6, 13)) != present {
			f.Status = MayFail
		}
	}
	return f
}

// whole judges a place in the context (tracing_prog_is_valid_access in
// kernel/trace/bpf_trace.c, which programs of LSM do not pass, and the beginning of
// btf_ctx_access).
func (h *hook) whole(off int64, write bool) (Status, string) {
	lsm := h.sec.Kind == bpfprog.AttachLSM
	switch {
	case write && lsm:
		return OK, ""
	case write:
		return Fails, "programs cannot write to it"
	case off < 0, off >= 8*12 && !lsm:
		return Fails, fmt.Sprintf("there is nothing at offset %d", off)
	case off%8 != 0:
		return Fails, fmt.Sprintf("offset %d is not a multiple of 8", off)
	}
	return OK, ""
}

// through judges a read through an argument.
func (h *hook) through(p *pairing, a *bpfprog.Access, off int64, size int) (f Finding) {
	n := a.Arg
	s := h.slot(p.k, n)
	if s.status != OK || h.sec.Kind == bpfprog.AttachIter || h.wide(n) {
		return f // judged where it is read, or not at all
	}
	f = Finding{Status: Fails, Subject: h.argument(n)}
	switch isStruct := s.to.Kind().IsComposite(); {
	case !s.ptr:
		f.Reason = "it is a number, through which nothing can be read"
	case !isStruct:
		f.Reason = "it does not point to a struct, so nothing can be read through it"
	default:
		f.Status, f.Reason = p.member(s.to, a, off, size)
	}
	return f
}

// result judges a read of a struct of which a helper returned the address.
func (p *pairing) result(a *bpfprog.Access, off int64, size int) (f Finding) {
	if y, ok := p.k.find(a.Struct, btfenc.KindStruct); ok && y.module == "" {
		f.Subject = "struct " + a.Struct
		f.Status, f.Reason = p.member(y.typ(), a, off, size)
	}
	return f
}

// member judges a read of a struct of the kernel (btf_struct_walk in kernel/bpf/btf.c). A size of 0 is not known.
func (p *pairing) member(t rawbtf.Type, a *bpfprog.Access, off int64, size int) (Status, string) {
	if off < 0 || off+int64(max(size, 1)) > int64(t.Size()) && !openEnded(&t) {
		return Fails, fmt.Sprintf("offset %d is not in %s, to which it points", off, prototype(t.BTF(), t.ID))
	}
	if name := p.partOf(t, off, int64(size)); name != "" {
		return Fails, fmt.Sprintf("reading %s at offset %d takes only a part of %s, a pointer", logtext.Plural(size, "byte"), off, name)
	}
	if a.Given {
		return p.k.given()
	}
	return OK, ""
}

// partOf names the member of which a read has a part only, though it is a pointer; "" for none.
func (p *pairing) partOf(t rawbtf.Type, off, size int64) string {
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
		for e.Kind() == btfenc.KindArray { // it has an end, as it has a size
			e, _ = b.SkipMods(e.Array().Elem)
		}
		if n, err = b.SizeOf(e.ID); err != nil || n == 0 {
			return ""
		}
		off = (off - at) % int64(n) // in the member, or in an element of it
		switch {
		case e.Kind().IsComposite():
			t, i = e, 0
		case e.Kind() == btfenc.KindPtr && (off != 0 || size != int64(n)):
			return string(b.Name(m.NameOff))
		default:
			return ""
		}
	}
	return ""
}

// openEnded reports whether a struct ends with an array of no length.
func openEnded(t *rawbtf.Type) bool {
	n := t.Vlen()
	if n == 0 {
		return false
	}
	last, ok := t.BTF().SkipMods(t.Member(n - 1).Type)
	return !ok || last.Kind() == btfenc.KindArray && last.Array().Nelems == 0 || last.Kind().IsComposite()
}

// givesContext reports whether what programs of a kind read of their context is judged. Of
// others it is only whether they read it where it is.
func givesContext(kind bpfprog.AttachKind) bool {
	switch kind {
	case bpfprog.AttachFunc, bpfprog.AttachModRet, bpfprog.AttachBTFTP, bpfprog.AttachLSM, bpfprog.AttachIter, bpfprog.AttachRawTP, bpfprog.AttachTP:
		return true
	}
	return false
}

// contextAccesses returns what is judged of the accesses of a program to its context, and to what helpers return.
func contextAccesses(o *bpfprog.Object, pr *bpfprog.Program, steps *limits.Meter) []bpfprog.Access {
	s := pr.Attach
	known := s != nil && s.Kind != bpfprog.AttachOps && s.Kind != bpfprog.AttachExt
	l := o.Accesses(pr, steps)
	if known && givesContext(s.Kind) {
		return l
	}
	return slices.DeleteFunc(l, func(a bpfprog.Access) bool {
		return a.Map == nil && a.Struct == "" && (!known || !a.Moved && !a.Computed && !writesRegisters(s, &a))
	})
}

// writesRegisters reports whether an access is a write to the registers that programs of kprobes and uprobes are given.
func writesRegisters(s *bpfprog.Section, a *bpfprog.Access) bool {
	return s.ProgType == "KPROBE" && a.Struct == "" && a.Arg < 0 && a.Write
}

// The member of a struct of the kernel that came with writes to the registers, "bpf: Allow uprobe program to change context
// registers" (Linux 6.18).
const writeStruct, writeMember = "bpf_prog_aux", "kprobe_write_ctx"

// written judges a write to the registers (kprobe_prog_is_valid_access in kernel/trace/bpf_trace.c): since kernels accept
// it, they do so when they load a program, and refuse to attach it to anything but a uprobe.
func (e *evaluation) written() Finding {
	const what = "programs cannot write to the registers"
	f := Finding{Subject: "context"}
	switch e.k.hasMember(writeStruct, writeMember) {
	case lacking:
		f.Status, f.Reason = Fails, what+" before Linux 6.18"
	case untold:
		f.Status, f.Reason = e.k.refused(linux(6, 18), what)
	}
	if f.Status == OK && e.pr.Attach.Kind != bpfprog.AttachNone {
		f.Status, f.Reason, f.Attach = Fails, "only programs of uprobes can write to the registers", true
	}
	return f
}

// moved judges an access through an address of the context to which something was added
// (check_ptr_off_reg in kernel/bpf/verifier.c).
func (k *inventory) moved(s *bpfprog.Section) (Status, string) {
	const what = "it is read through an address to which something was added, which the verifier refuses"
	switch s.ProgType {
	case "KPROBE", "TRACEPOINT", "RAW_TRACEPOINT", "RAW_TRACEPOINT_WRITABLE", "TRACING", "LSM", "SYSCALL", "NETFILTER", "CGROUP_DEVICE":
		// Their ops have no convert_ctx_access. 7.2 was asked, but neither 7.0 nor 7.1.
		return k.refused(linux(7, 1), what)
	}
	return Fails, what
}

// given judges a read through a pointer that was on the stack when a helper was given that memory to read:
// whether it is a number since (check_stack_range_initialized in kernel/bpf/verifier.c).
func (k *inventory) given() (Status, string) {
	what := "the pointer was on the stack, where a helper was given it to read, which makes it a number to verifiers"
	switch {
	case k.has(linux(6, 14)) == present: // "bpf: verifier: Refactor helper access type tracking"
		return OK, ""
	case k.has(linux(6, 2)) == present, k.version.V > uint64(linux(6, 1))+1 && k.dated(): // "bpf: Clobber stack slot when writing over spilled PTR_TO_BTF_ID"
		return Fails, what + " before Linux 6.14"
	case k.has(linux(5, 15)) == lacking:
		return OK, ""
	}
	return MayFail, what + " from Linux 6.2 to 6.13, and in updates of some older kernels"
}

// inValue judges an access of a map's value beyond its end, unless the loader sets how large it is
// (check_mem_region_access in kernel/bpf/verifier.c).
func (e *evaluation) inValue(a *bpfprog.Access) (Finding, bool) {
	return Finding{
		Status: Fails, Topic: TopicBounds, Subject: "map " + a.Map.Name, Source: e.o.Source(a.At),
		Reason: fmt.Sprintf("%s at offset %d, which nothing bounds further, are beyond the end of a value of %s", logtext.Plural(a.Size, "byte"), a.Off, logtext.Plural(int(a.Map.ValueSize), "byte")),
	}, !e.setsMap(a.Map.Name)
}

// accesses judges all that program number n of the object reads of its context.
func (e *evaluation) accesses(n int) (l []absence) {
	for i := range e.o.accesses[n] {
		a := &e.o.accesses[n][i]
		off, size := a.Off, a.Size
		if a.Map != nil {
			if f, ok := e.inValue(a); ok {
				l = append(l, absence{at: a.At, f: f})
			}
			continue
		}
		if a.Moved || a.Computed {
			status, why := e.k.moved(e.pr.Attach)
			if f := (Finding{Status: status, Topic: TopicContext, Subject: "context", Reason: why, Source: e.o.Source(a.At)}); status != OK {
				l = append(l, absence{at: a.At, f: f, moved: a.Computed})
				continue
			}
		}
		writes := writesRegisters(e.pr.Attach, a)
		if a.Computed || a.Struct == "" && !givesContext(e.pr.Attach.Kind) && !writes {
			continue
		}
		if r := e.o.Funcs[a.At.Fn].Insns[a.At.Insn].Record; r != 0 {
			v, ok := e.loader.value(int(r - 1))
			if !ok {
				continue // judged as a relocation
			}
			off, size = off+int64(v), 0 // the loader may change the width
		}
		var f Finding
		switch {
		case writes:
			f = e.written()
		case a.Struct != "":
			f = e.result(a, off, size)
		case e.hook == nil:
			f = e.plain(a, off, size)
		case a.Arg < 0:
			f = e.hook.read(e.k, off, size, a.Write)
		default:
			f = e.hook.through(e.pairing, a, off, size)
		}
		if f.Status != OK {
			f.Topic, f.Source = TopicContext, e.o.Source(a.At)
			l = append(l, absence{at: a.At, f: f})
		}
	}
	return l
}

// plain judges an access to the context of a program that is not attached by BTF
// (raw_tp_prog_is_valid_access and tp_prog_is_valid_access in
// kernel/trace/bpf_trace.c, alike since Linux 4.17). What the record of a
// tracepoint has is looked at when the program is attached to it.
func (e *evaluation) plain(a *bpfprog.Access, off int64, size int) (f Finding) {
	s := e.pr.Attach
	if a.Arg >= 0 || s.Kind != bpfprog.AttachRawTP && s.Kind != bpfprog.AttachTP {
		return f
	}
	const args, most = 8 * 12, 8192 // PERF_MAX_TRACE_SIZE is 2048 in older kernels
	first, end := int64(0), int64(args)
	if s.Kind == bpfprog.AttachTP {
		first, end = 8, most
	}
	f = Finding{Status: Fails, Subject: "arguments of " + s.Target(e.pr.Section)}
	if s.Kind == bpfprog.AttachTP {
		f.Subject = "record of " + s.Target(e.pr.Section)
	}
	switch {
	case a.Write:
		f.Reason = "programs cannot write to it"
	case off < first, off+int64(size) > end:
		f.Reason = fmt.Sprintf("programs cannot read it at offset %d", off)
	case size > 0 && off%int64(size) != 0:
		f.Reason = fmt.Sprintf("offset %d is not a multiple of the width, %d", off, size)
	case e.given > 0 && off+int64(max(size, 1)) > e.given:
		f.Attach = true
		f.Reason = fmt.Sprintf("offset %d is beyond what there is on this kernel, %d bytes", off, e.given)
	default:
		return Finding{}
	}
	return f
}
