// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
	"github.com/btfgen/btfgen/internal/check/interp"
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

// lsm returns the name of a hook of LSM.
func (h *hook) lsm() string { return strings.TrimPrefix(h.name, "bpf_lsm_") }

func (h *hook) params() int { return max(0, int(h.proto.Vlen())-h.first) }

// slot returns the type of 8 bytes of the context, and whether they can be read: btf_ctx_access in kernel/bpf/btf.c.
func (h *hook) slot(n int) (t btf.Type, f Finding) {
	id := h.proto.Ref()
	switch p := h.params(); {
	case h.wide(n):
		return t, f
	case n < p:
		id = h.proto.Param(uint32(h.first + n)).Type
	case n > p || !h.result:
		return t, Finding{Status: Fails, Code: ContextNoArgument, Args: Args{Name: h.name, Count: int64(p)}}
	}
	t, _ = h.view.SkipMods(id)
	return t, f
}

// wide reports whether an argument up to n takes more than 8 bytes. The argument
// at n is not known then.
func (h *hook) wide(n int) bool {
	for i := range min(n+1, h.params()) {
		if size, err := h.view.SizeOf(h.proto.Param(uint32(h.first + i)).Type); err == nil && size > 8 {
			return true
		}
	}
	return false
}

// argument names 8 bytes of the context.
func (h *hook) argument(n int) string {
	if n == h.params() && h.result {
		return "result of " + h.name
	}
	return fmt.Sprintf("argument %d of %s", n+1, h.name)
}

// read judges an access to the context itself.
func (h *hook) read(off int64) (f Finding) {
	_, f = h.slot(int(off / 8))
	f.Subject = h.argument(int(off / 8))
	return f
}

// traceArguments is how many arguments the verifier lets programs of tracepoints and functions read: MAX_BPF_FUNC_ARGS in include/linux/bpf.h.
const traceArguments = 12

// recordBytes is how much of a tracepoint's record programs can read at most: PERF_MAX_TRACE_SIZE in include/linux/trace_events.h, which was
// 2048 before Linux 5.19.
const recordBytes = 8192

// refusedAccess judges what no kernel lets programs do with a context that they can read from one byte up to another one: they cannot write to
// it, nor read across its parts. A size of 0 is not known. Arguments have 8 bytes each (bpf_tracing_ctx_access in include/linux/bpf.h). The
// record of a tracepoint begins with a pointer that is not for programs (tp_prog_is_valid_access in kernel/trace/bpf_trace.c).
func refusedAccess(a *flow.Access, off int64, size int, first, end int64) Finding {
	f := Finding{Status: Fails, Subject: wholeContext}
	switch {
	case a.Write:
		f.Code = ContextWrite
	case off < first || off >= end:
		f.Code, f.Args = ContextOutside, Args{Offset: off, Count: first, Max: end - 1}
	case size > 0 && off%int64(size) != 0:
		f.Code, f.Args = ContextPart, Args{Offset: off, Size: int64(size)}
	default:
		return Finding{}
	}
	return f
}

// refusedArgument judges what no kernel lets programs do with arguments that its BTF describes (btf_ctx_access in kernel/bpf/btf.c).
func refusedArgument(a *flow.Access, off int64, size int) Finding {
	f := refusedAccess(a, off, size, 0, 8*traceArguments)
	if f.Status == OK && off%8 != 0 {
		f = Finding{
			Status: Fails, Code: ContextPart, Subject: wholeContext,
			Args: Args{Offset: off, Size: int64(size)},
		}
	}
	return f
}

// argumentRead judges a read of a slot of the context by what a pointer in it leads to (btf_ctx_access in kernel/bpf/btf.c). Old kernels let
// programs have pointers to structs, void and char alone.
func (e *Evaluation) argumentRead(a *flow.Access, off int64, size int) Finding {
	if f := refusedArgument(a, off, size); f.Status != OK {
		return f
	}
	h := e.hook
	f := h.read(off)
	if f.Status != OK || h.sec.Kind == bpfobj.AttachIter {
		return f
	}
	n := int(off / 8)
	t, _ := h.slot(n)
	if t.Kind() != btf.KindPtr {
		return f
	}
	if size > 0 && size < 8 && e.k.has(facts.WholePointers) {
		return Finding{Status: Fails, Code: ContextPartOfPointer, Subject: h.argument(n), Args: Args{Size: int64(size)}}
	}
	if t.Ref() == 0 {
		return f
	}
	to, _ := h.view.SkipMods(t.Ref())
	direct := h.view.Type(t.Ref()) // the type at which the kernel looks first
	if direct.Kind() == btf.KindConst && direct.Ref() != 0 {
		direct = h.view.Type(direct.Ref())
	}
	switch {
	case to.Kind().IsComposite(), direct.Kind() == btf.KindInt && direct.Size() == 1:
		return f
	case direct.Kind() == btf.KindInt:
		f = e.k.judge(facts.ArgumentPointerToANumber, ContextArgument)
	case to.Kind() == btf.KindInt:
		f = e.k.judge(facts.ArgumentPointerToATypedefOfANumber, ContextArgument)
	case to.Kind() == btf.KindVoid:
		f = e.k.judgeLater(facts.ArgumentPointerToConstVoid, facts.NullArguments, Linux(6, 14), ContextArgument)
	default:
		f = e.k.judgeLater(facts.ArgumentPointerToAnything, facts.ContextMoved, Linux(7, 1), ContextArgument)
	}
	if f.Status != OK {
		f.Subject, f.Name = h.argument(n), prototype(h.view, t.ID)
	}
	return f
}

// through judges a read through an argument.
func (h *hook) through(s *Scene, a *flow.Access, off int64, size int) (f Finding) {
	n := a.Arg
	t, refused := h.slot(n)
	if refused.Status != OK || h.sec.Kind == bpfobj.AttachIter || h.wide(n) {
		return f // judged as a read of the argument, or not judged
	}
	if t.Kind() != btf.KindPtr {
		f = Finding{Status: Fails, Code: ContextNumber}
	} else if tag := h.tagOf(t); tag != "" {
		f = Finding{
			Status: Fails, Code: ContextTagged,
			Args: Args{Name: tag, Decided: ByWitness, Witness: "!type tag " + tag},
		}
	} else if to, _ := h.view.SkipMods(t.Ref()); to.Kind().IsComposite() {
		if f = s.unlicensed(); f.Status == OK {
			f = s.object(to, a, off, size)
		}
	}
	if f.Status == OK && h.sec.Kind == bpfobj.AttachBTFTP {
		f = s.k.nullable(h.name, n, a.Checked)
	}
	f.Subject = h.argument(n)
	return f
}

// unlicensed judges an access to a struct of the kernel by the object's license (check_ptr_to_btf_access in kernel/bpf/verifier.c).
func (s *Scene) unlicensed() (f Finding) {
	if !s.o.isGPL() && s.k.has(facts.StructsForTheGPLAlone) {
		f = Finding{Status: Fails, Code: ContextLicense, Args: Args{Name: s.o.License}}
	}
	return f
}

// nullable judges a read through an argument of a tracepoint that may be null, or an error (btf_ctx_access in kernel/bpf/btf.c).
func (k *Inventory) nullable(tracepoint string, n int, checked bool) (f Finding) {
	if !k.has(facts.NullArguments) {
		return f
	}
	key := fmt.Sprintf("%s/%d", tracepoint, n)
	if d, ok := denials()["errors"][key]; ok {
		return k.deny(d, ContextError)
	}
	if d, ok := denials()["null"][key]; ok && !checked {
		return k.deny(d, ContextNull)
	}
	return f
}

// tagOf returns which memory a pointer leads to that programs cannot read through it: "user" (Linux 5.18, c6f1bfe89ac9 bpf: reject
// program if a __user tagged memory accessed in kernel way) or "percpu" (5.18, 5844101a1be9 bpf: Reject programs that try to load
// __percpu memory). The tag is the witness: the releases that have it in their types refuse, and BTF of compilers without tags shows
// verifiers nothing.
func (h *hook) tagOf(pointer btf.Type) string {
	if to := pointer.Ref(); to != 0 {
		if t := h.view.Type(to); t.Kind() == btf.KindTypeTag {
			if name := string(t.Name()); name == "user" || name == "percpu" {
				return name
			}
		}
	}
	return ""
}

// result judges a read through a pointer to a struct that a helper returned.
func (e *Evaluation) result(a *flow.Access, off int64, size int) (f Finding) {
	if y, ok := e.k.find(a.Struct, btf.KindStruct); ok && y.module == "" {
		if a.Write && e.pr.Attach.Kind == bpfobj.AttachOps {
			f = e.stored(y.typ(), off, size)
		} else if f = e.unlicensed(); f.Status == OK {
			f = e.object(y.typ(), a, off, size)
		}
		f.Subject = "struct " + a.Struct
	}
	return f
}

// field judges an access to a context that is a struct of the kernel's interface. Fields are added at its end, and verifiers know those
// of their kernel's struct.
func (e *Evaluation) field(off int64, size int, write bool) (f Finding) {
	of := facts.ProgramType(e.pr.Attach.ProgType).Context
	if y, ok := e.k.find(of, btf.KindStruct); ok && y.module == "" {
		f = e.member(y.typ(), new(flow.Access), off, size)
	} else {
		if fact := facts.ContextField(of, off); fact != facts.Every {
			f = e.k.judge(fact, ContextBeyond)
		} else if when, known := facts.ContextSize(of, off+int64(max(size, 1))); known {
			f = e.k.later(when, ContextBeyond)
		}
		if f.Status != OK {
			f.Args.Offset, f.Args.Name = off, "struct "+of
		}
	}
	if f.Status == OK {
		if f = e.k.judge(facts.ContextFieldOf(e.pr.Attach.ProgType, of, off), ContextForbidden); f.Status != OK {
			f.Args.Offset, f.Args.Name = off, e.pr.Attach.ProgType
		}
	}
	if f.Status == OK && size > 0 && (write || size >= 4 || e.o.Code.Order == binary.LittleEndian) {
		f = e.fieldAccess(off, size, write)
	}
	f.Subject = wholeContext
	return f
}

// fieldAccess judges an access to a context that is a struct of the kernel's interface by what kernels let programs of the type do.
func (e *Evaluation) fieldAccess(off int64, size int, write bool) (f Finding) {
	s := e.pr.Attach
	a := facts.ContextAccess(e.k.Arch, s.ProgType, s.Type, off, size, write)
	// Programs for network cards may write rx_queue_index (xdp_is_valid_access). Whether it is one is not known here.
	offloaded := s.ProgType == "XDP" && write && off == 16
	if offloaded || !a.Known || !e.k.atLeast(a.Since) {
		return f
	}
	if a.May {
		if f = e.k.later(a.When, ContextForbidden); f.Status != OK {
			f.Args.Offset, f.Args.Name = off, s.ProgType
		}
		return f
	}
	f = Finding{Status: Fails, Code: ContextForbidden, Args: Args{Offset: off, Name: s.ProgType}}
	part := off%int64(size) != 0
	for _, n := range []int64{1, 2, 4, 8} {
		part = part || facts.ContextAccess(e.k.Arch, s.ProgType, s.Type, off-off%n, int(n), false).May
	}
	switch {
	case write:
		f.Code, f.Args = ContextWrite, Args{}
	case part:
		f.Code, f.Args = ContextPart, Args{Offset: off, Size: int64(size)}
	}
	if e.k.atLeast(facts.ContextsRead().Next()) {
		f.Status, f.Until = MayFail, facts.ContextsRead()
	}
	return f
}

// later judges by code what kernels have since a release, or had up to one.
func (k *Inventory) later(when facts.Period, code Code) (f Finding) {
	if when.Always() {
		return f
	}
	if f = k.permits(when, code); f.Status == MayFail && when.Since.After == 0 && when.Since.By != 0 {
		f.Since, f.Until, f.Doubt = when.Since.By, 0, OlderRelease
		if !k.dated() {
			f.Doubt = NoRelease
		}
	}
	return f
}

// member judges a read of a struct of the kernel (btf_struct_walk in kernel/bpf/btf.c). A size of 0 is not known.
func (s *Scene) member(t btf.Type, a *flow.Access, off int64, size int) Finding {
	if off < 0 || off+int64(max(size, 1)) > int64(t.Size()) && !openEnded(&t) {
		return Finding{Status: Fails, Code: ContextBeyond, Args: Args{Offset: off, Name: prototype(t.BTF(), t.ID)}}
	}
	if a.Given {
		return s.k.given()
	}
	return Finding{}
}

// object judges an access through a pointer to a struct of the kernel, as member does. No kernel lets programs that are not for a struct_ops write
// there, or programs read a part of a pointer.
func (s *Scene) object(t btf.Type, a *flow.Access, off int64, size int) Finding {
	if a.Write {
		return Finding{Status: Fails, Code: ContextWrite}
	}
	f := s.member(t, a, off, size)
	if f.Status == OK && size > 0 && off+int64(size) <= int64(t.Size()) && !readable(t, uint64(off), uint64(size), false) {
		f = Finding{
			Status: Fails, Code: ContextPart,
			Args: Args{Offset: off, Size: int64(size), Name: prototype(t.BTF(), t.ID)},
		}
	}
	return f
}

// readable reports whether the verifier lets programs read these bytes of a struct (btf_struct_walk in kernel/bpf/btf.c): a pointer as a whole,
// or bytes of one other member. In a union with several members, newer kernels take bytes behind a number, too.
func readable(t btf.Type, off, size uint64, union bool) bool {
	union = union || t.Kind() == btf.KindUnion && t.Vlen() != 1
	for i := range t.Vlen() {
		m := t.Member(i)
		at := uint64(m.BitOffset / 8)
		if off+size <= at {
			return false
		}
		if m.BitSize != 0 {
			if end := (uint64(m.BitOffset) + uint64(m.BitSize) + 7) / 8; off <= at && end <= off+size {
				return true
			}
			continue
		}
		if off < at {
			return false
		}
		whole, err := t.BTF().SizeOf(m.Type)
		if err != nil {
			return true // the size is not known
		}
		end := at + uint64(whole)
		if off >= end {
			continue
		}
		of, each, ok := elementOf(t.BTF(), m.Type)
		switch {
		case !ok:
			return true // the elements are not known
		case of.Kind().IsComposite() && (off-at)%each == 0:
			return true
		case of.Kind().IsComposite():
			return readable(of, (off-at)%each, size, union)
		case of.Kind() == btf.KindPtr:
			return size == each && (off-at)%each == 0
		}
		return union || off+size <= end
	}
	return false
}

// elementOf returns the type of the elements of an array of any depth, or of what is none, and how many bytes each has, which is not 0.
func elementOf(b *btf.BTF, id btf.TypeID) (of btf.Type, each uint64, ok bool) {
	of, ok = b.SkipMods(id)
	for ok && of.Kind() == btf.KindArray {
		of, ok = b.SkipMods(of.Array().Elem)
	}
	if !ok {
		return of, 0, false
	}
	size, err := b.SizeOf(of.ID)
	return of, uint64(size), err == nil && size != 0
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
	switch kind {
	case bpfobj.AttachRawTP, bpfobj.AttachTP, bpfobj.AttachFuncMulti:
		return true
	}
	return attachesByBTF(kind)
}

// contextAccesses returns the accesses of a program that are judged: to its context, and to what helpers return.
func contextAccesses(pr *bpfobj.Program, l []flow.Access) []flow.Access {
	s := pr.Attach
	known := s != nil && s.Kind != bpfobj.AttachOps && s.Kind != bpfobj.AttachExt
	return slices.DeleteFunc(l, func(a flow.Access) bool {
		switch {
		case s == nil, a.Kind == flow.Summed:
			return true
		case known && givesContext(s.Kind), known && a.Kind == flow.Typed && s.Kind == bpfobj.AttachKprobe:
			return false
		}
		judged := known && (a.Moved || a.Computed || writesRegisters(s, &a) || ofContext(s, &a))
		return a.Kind != flow.Direct || a.Struct == "" && !readsOps(s, &a) && !throughOps(s, &a) && !judged
	})
}

// writesRegisters reports whether an access is a write to the registers that programs of kprobes and uprobes are given.
func writesRegisters(s *bpfobj.Section, a *flow.Access) bool {
	return s.ProgType == "KPROBE" && a.Struct == "" && a.Arg < 0 && a.Write
}

// ofContext reports whether an access is to the context of a program that is a struct of the kernel's interface.
func ofContext(s *bpfobj.Section, a *flow.Access) bool {
	return facts.ProgramType(s.ProgType).Context != "" && a.Struct == "" && a.Arg < 0
}

// wholeContext is the subject of findings on any part of the context.
const wholeContext = "context"

// written judges a write to the registers (kprobe_prog_is_valid_access in kernel/trace/bpf_trace.c): since kernels accept
// it, they do so when they load a program, and refuse to attach it to anything but a uprobe.
func (e *Evaluation) written() (f Finding) {
	f = e.k.judge(facts.ContextRegisters, ContextRegisters)
	if f.Status == OK && e.pr.Attach.Kind != bpfobj.AttachNone {
		f = Finding{Status: Fails, Code: ContextUprobe, Attach: true}
	}
	f.Subject = wholeContext
	return f
}

// moved judges an access through an address of the context to which something was added
// (check_ptr_off_reg in kernel/bpf/verifier.c).
func (k *Inventory) moved(s *bpfobj.Section) Finding {
	if facts.ProgramType(s.ProgType).MovesContext {
		return k.judge(facts.ContextMoved, ContextMoved)
	}
	return Finding{Status: Fails, Code: ContextMoved}
}

// given judges a read through a pointer that was on the stack when a helper was given that memory to read:
// whether it is a number since (check_stack_range_initialized in kernel/bpf/verifier.c).
func (k *Inventory) given() Finding {
	if !k.has(facts.ContextGiven) {
		return Finding{}
	}
	return k.judge(facts.ContextKept, ContextSpilled)
}

// accesses judges what program number n of the object reads from its context.
func (e *Evaluation) accesses(n int) (l []absence) {
	for i := range e.o.accesses[n] {
		a := &e.o.accesses[n][i]
		if a.Kind != flow.Direct {
			continue
		}
		if a.Moved || a.Computed {
			if f := e.k.moved(e.pr.Attach); f.Status != OK {
				f.Subject, f.Source = wholeContext, e.o.Source(a.At)
				x := absence{at: a.At, f: f}
				if a.Computed {
					x.flaw = interp.Moved
				}
				l = append(l, x)
				continue
			}
		}
		s := e.pr.Attach
		writes := writesRegisters(s, a)
		judged := a.Struct != "" || readsOps(s, a) || throughOps(s, a) || givesContext(s.Kind) || writes || ofContext(s, a)
		if a.Computed || !judged {
			continue
		}
		in := &e.o.Funcs[a.At.Fn].Insns[a.At.Insn]
		var f Finding
		if r := in.Record; r != 0 {
			f = e.relocated(a, int(r-1), writes)
		} else {
			f = e.access(a, a.Off, a.Size, writes)
		}
		if f.Status == OK && a.Write && in.Op&classMask == classST && ofContext(s, a) {
			f = e.k.judge(facts.NumbersInContexts, FeatureMissing)
		}
		if f.Status != OK {
			f.Source = e.o.Source(a.At)
			l = append(l, absence{at: a.At, f: f})
		}
	}
	return l
}

// classST is the class of instructions that store a number.
const classMask, classST = 0x07, 0x02

// relocated judges an access whose offset a record changes.
func (e *Evaluation) relocated(a *flow.Access, record int, writes bool) (f Finding) {
	if v, ok := e.decisions.value(record); ok {
		size := 0 // the loader may change the width
		if ofContext(e.pr.Attach, a) {
			size = cmp.Or(int(e.decisions[record].Resized()), a.Size)
		}
		return e.access(a, a.Off+int64(v), size, writes)
	}
	// cilium/ebpf leaves the width alone.
	if d := e.decisions[record]; d.Unresizable() && e.loader == EbpfGo && a.Arg < 0 && a.Struct == "" {
		f = e.o.records.finding(record, MayFail, d.Reason())
		f.Loader, f.Doubt = EbpfGo, KeepsWidth
	}
	return f // other records are judged as relocations
}

// access judges an access at an offset. A size of 0 is not known.
func (e *Evaluation) access(a *flow.Access, off int64, size int, writes bool) Finding {
	switch {
	case writes:
		return e.written()
	case readsOps(e.pr.Attach, a):
		return e.opsArgument(a, off, size)
	case throughOps(e.pr.Attach, a):
		return e.opsThrough(a, off, size)
	case a.Struct != "":
		return e.result(a, off, size)
	case ofContext(e.pr.Attach, a):
		return e.field(off, size, a.Write)
	case e.hook == nil:
		return e.plain(a, off, size)
	case a.Arg < 0:
		return e.argumentRead(a, off, size)
	}
	return e.hook.through(e.Scene, a, off, size)
}

// plain judges an access to the context of a program that is not attached by BTF: the kernel compares it with
// what the tracepoint gives when the program is attached.
func (e *Evaluation) plain(a *flow.Access, off int64, size int) Finding {
	if a.Arg >= 0 {
		return Finding{}
	}
	var refused Finding
	switch e.pr.Attach.Kind {
	case bpfobj.AttachRawTP:
		refused = refusedAccess(a, off, size, 0, 8*traceArguments)
	case bpfobj.AttachTP:
		refused = refusedAccess(a, off, size, int64(e.k.pointer), recordBytes)
	}
	if refused.Status != OK {
		return refused
	}
	if e.given == 0 || off+int64(max(size, 1)) <= e.given {
		return Finding{}
	}
	subject, code := "arguments of ", ContextArguments
	to := e.pr.Attach.Target(e.pr.Section)
	if e.pr.Attach.Kind == bpfobj.AttachTP {
		subject, code = "record of ", ContextRecord
	}
	return Finding{
		Status: Fails, Code: code, Subject: subject + to, Attach: true,
		Args: Args{Offset: off, Size: e.given},
	}
}
