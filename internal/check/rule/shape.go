// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/flow"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Shape is what a hook gives to programs on a kernel: the arguments of a function or tracepoint, or the fields of a
// tracepoint's record. Programs that read the same argument or offset on two kernels may read different things: package
// check compares them.
type Shape struct {
	Text  string // in C; equal shapes have one text
	Slots []Slot // without an argument of more than 8 bytes and those behind it
}

// Slot is an argument, the result or a field.
type Slot struct {
	name      string // "" if it is not known
	Text      string // in C
	Number    bool   // it is no pointer
	To        string // the struct or union to which it points, "" for none
	Plain     bool   // a pointer to a number, a pointer or a function, so that it cannot point to a struct
	Off, Size int64  // bytes, of a field
}

// resultName is the name of a function's result among its arguments.
const resultName = "return"

// tracepointCaller begins the name of the function that calls the programs of a tracepoint, with the names of its
// arguments.
const tracepointCaller = "__traceiter_"

// recordPrefix begins the name of a tracepoint's record. A class of tracepoints has one record.
const recordPrefix = "trace_event_raw_"

// newSlot describes a type with a name.
func newSlot(b *btf.BTF, id btf.TypeID, name string) Slot {
	s := Slot{name: name, Text: prototype(b, id)}
	if name != "" && name != resultName {
		if !strings.HasSuffix(s.Text, "*") {
			s.Text += " "
		}
		s.Text += name
	}
	t, _ := b.SkipMods(id)
	if s.Number = t.Kind() != btf.KindPtr; s.Number {
		return s
	}
	switch to, ok := b.SkipMods(t.Ref()); {
	case !ok:
	case to.Kind().IsComposite(), to.Kind() == btf.KindFwd:
		s.To = string(to.Name())
	default:
		s.Plain = to.Kind() != btf.KindVoid
	}
	return s
}

// Shape describes the arguments of a hook, with the names that names has.
func (h *hook) shape(names *btf.Type) *Shape {
	out := new(Shape)
	for i := range h.params() {
		p := h.proto.Param(uint32(h.first + i))
		if h.wide(i) {
			break
		}
		name := string(h.view.Name(p.NameOff))
		if names != nil && int(names.Vlen()) == int(h.proto.Vlen()) {
			name = string(names.BTF().Name(names.Param(uint32(h.first + i)).NameOff))
		}
		out.Slots = append(out.Slots, newSlot(h.view, p.Type, name))
	}
	out.Text = "(" + strings.Join(out.texts(), ", ") + ")"
	if len(out.Slots) < h.params() {
		out.Text = strings.TrimSuffix(out.Text, ")") + ", …)"
	} else if h.result {
		out.Slots = append(out.Slots, newSlot(h.view, h.proto.Ref(), resultName))
		out.Text = out.Slots[len(out.Slots)-1].Text + " " + out.Text
	}
	return out
}

func (s *Shape) texts() (l []string) {
	for i := range s.Slots {
		l = append(l, s.Slots[i].Text)
	}
	return l
}

// recordShape describes the fields of a record; nil if their places are not known.
func recordShape(t btf.Type) *Shape {
	out, b := new(Shape), t.BTF()
	for i := range t.Vlen() {
		m := t.Member(i)
		size, err := b.SizeOf(m.Type)
		if err != nil || m.BitSize != 0 {
			return nil
		}
		s := newSlot(b, m.Type, string(b.Name(m.NameOff)))
		s.Off, s.Size = int64(m.BitOffset/8), int64(size)
		out.Slots = append(out.Slots, s)
		out.Text += fmt.Sprintf("%s at %d; ", s.Text, s.Off)
	}
	return out
}

// record is the name of the record of program i, "" if it is given none: that of its tracepoint, or the one that it
// takes its context for.
func (o *Object) record(i int) string {
	pr := &o.Programs[i]
	if s := pr.Attach; s == nil || s.Kind != bpfobj.AttachTP {
		return ""
	}
	if i < len(o.contexts) {
		if t := o.contexts[i]; strings.HasPrefix(string(t.Name()), recordPrefix) {
			return string(btf.Essential(t.Name()))
		}
	}
	return recordPrefix + path.Base(pr.Attach.Target(pr.Section))
}

// findContexts returns the struct to which the argument of each program points.
func (o *Object) findContexts() []btf.Type {
	out := make([]btf.Type, len(o.Programs))
	if o.records.Object == nil || o.records.types() == nil {
		return out
	}
	b, at := o.records.types(), make(map[string]int)
	for i := range o.Programs {
		if s := o.Programs[i].Attach; s != nil && s.Kind == bpfobj.AttachTP {
			at[o.Funcs[o.Programs[i].Fn].Name] = i
		}
	}
	eachPrototype(b, func(_ btf.TypeID, name string, proto btf.Type) {
		i, ok := at[name]
		if !ok || proto.Vlen() == 0 {
			return
		}
		if p, _ := b.SkipMods(proto.Param(0).Type); p.Kind() == btf.KindPtr {
			if t, _ := b.SkipMods(p.Ref()); t.Kind() == btf.KindStruct {
				out[i] = t
			}
		}
	})
	return out
}

// typed returns the CO-RE record by which an access uses an argument as a struct.
func (o *Object) typed(a *flow.Access) (record int, ok bool) {
	if a.Kind == flow.Typed {
		return a.Record, true
	}
	n := o.Funcs[a.At.Fn].Insns[a.At.Insn].Record
	return int(n - 1), a.Arg >= 0 && n != 0
}

// straight reports whether the verifier reaches an instruction on every path: no jump, call of a function or exit is
// before it.
func (o *Object) straight(pr *bpfobj.Program, at bpfobj.Site) bool {
	code := o.Funcs[at.Fn].Insns
	return at.Fn == pr.Fn && !slices.ContainsFunc(code[:at.Insn], func(in bpfobj.Insn) bool {
		_, jumps := in.Jump()
		return jumps || in.IsFuncCall() || !in.FallsThrough()
	})
}

// findShape describes what the program is given on the kernel.
func (e *Evaluation) findShape(n int) *Shape {
	switch {
	case e.pr.Attach == nil || len(e.o.accesses[n]) == 0:
	case e.pr.Attach.Kind == bpfobj.AttachTP:
		if y, ok := e.k.find(e.o.record(n), btf.KindStruct); ok {
			return recordShape(y.typ())
		}
	case e.pr.Attach.Kind == bpfobj.AttachIter:
	case e.hook != nil && e.hook.first == 0:
		return e.hook.shape(nil)
	case e.hook != nil:
		return e.hook.shape(e.k.caller(e.hook.name))
	case e.raw != nil && e.pr.Attach.Kind == bpfobj.AttachKprobe:
		return e.raw.shape(nil)
	case e.raw != nil:
		return e.raw.shape(e.k.caller(e.raw.name))
	}
	return nil
}

// caller returns the prototype of the function that calls the programs of a tracepoint.
func (k *Inventory) caller(tracepoint string) *btf.Type {
	y, ok := k.find(tracepointCaller+tracepoint, btf.KindFunc)
	if !ok {
		return nil
	}
	f := y.typ()
	proto := y.view.Type(f.Ref())
	if proto.Kind() != btf.KindFuncProto {
		return nil
	}
	return &proto
}

// reads returns what program n reads, as possible warnings. Package check keeps those on kernels with something else in
// the place that is read. The warnings depend on the kernel only as far as its own types show it, so that kernels share
// explorations.
func (e *Evaluation) reads(n int) (l []absence) {
	e.shape = e.findShape(n)
	if e.shape == nil {
		return nil
	}
	all := e.o.accesses[n]
	typed := make(map[int]bool) // by argument
	add := func(at bpfobj.Site, f Finding) {
		f.Source = e.o.Source(at)
		l = append(l, absence{at: at, f: f, anyhow: e.o.straight(e.pr, at)})
	}
	record, probe := e.pr.Attach.Kind == bpfobj.AttachTP, e.pr.Attach.Kind == bpfobj.AttachKprobe
	for i := range all {
		a := &all[i]
		r, ok := e.o.typed(a)
		arg := a.Arg
		if probe {
			arg = slices.Index(argumentRegisters[e.k.Arch], a.Arg)
		}
		if !ok || record || arg < 0 || arg >= len(e.shape.Slots) {
			continue
		}
		as := e.o.records.root(r)
		if s := &e.shape.Slots[arg]; as != "" {
			typed[arg] = true
			if s.Number || s.Plain || s.To != "" && !e.pointsTo(arg, as) {
				add(a.At, Finding{
					Code: ChangedArgument, Subject: e.argument(arg),
					Args: Args{Count: int64(arg), Name: e.shape.Text, Other: "struct " + as},
				})
			}
		}
	}
	for i := range all {
		if probe {
			break
		}
		a := &all[i]
		switch {
		case a.Arg >= 0 || a.Struct != "" || a.Moved || a.Computed || a.Chosen || a.Write || a.Kind == flow.Typed:
		case e.o.Funcs[a.At.Fn].Insns[a.At.Insn].Record != 0:
		case record:
			add(a.At, Finding{
				Code: ChangedField, Subject: "record of " + e.pr.Attach.Target(e.pr.Section),
				Args: Args{Offset: a.Off, Size: int64(a.Size)},
			})
		case a.Kind == flow.Direct && a.Off >= 0 && !typed[int(a.Off/8)]:
			add(a.At, Finding{Code: ChangedArgument, Subject: e.argument(int(a.Off / 8)), Args: Args{Count: a.Off / 8}})
		}
	}
	return l
}

// argumentRegisters are the registers of a function's arguments, by machine: their places in the struct that programs
// read them from, in words (PT_REGS_PARM1 and so on in libbpf's src/bpf_tracing.h).
var argumentRegisters = map[string][]int{
	"x86_64": {14, 13, 12, 11, 9, 8}, "arm64": {0, 1, 2, 3, 4, 5, 6, 7},
	"ppc64le": {3, 4, 5, 6, 7, 8, 9, 10}, "s390x": {5, 6, 7, 8, 9},
	"riscv64": {10, 11, 12, 13, 14, 15, 16, 17},
}

// syscallRecords are the records that a kernel has of the events of system calls for tracers, with what programs are
// given instead (perf_call_bpf_enter and perf_call_bpf_exit in kernel/trace/trace_syscalls.c), and its first field of
// the same meaning.
var syscallRecords = map[string]struct{ record, field string }{
	"trace_event_raw_sys_enter": {enterRecord, "args"}, "trace_event_raw_sys_exit": {exitRecord, "ret"},
}

// shiftedReads judges reads of the record of an event of a system call by CO-RE, through a struct whose fields are
// elsewhere on a kernel: on those with a longer struct trace_entry, as of PREEMPT_RT.
func (e *Evaluation) shiftedReads(n int) (l []absence) {
	if e.pr.Attach == nil || e.pr.Attach.Kind != bpfobj.AttachTP || systemCall(e.pr.Attach.Target(e.pr.Section)) == "" {
		return nil
	}
	for i := range e.o.accesses[n] {
		a := &e.o.accesses[n][i]
		r := e.o.Funcs[a.At.Fn].Insns[a.At.Insn].Record
		if a.Kind != flow.Direct || a.Arg >= 0 || a.Struct != "" || a.Write || r == 0 {
			continue
		}
		as := e.o.records.root(int(r - 1))
		v, ok := e.decisions.value(int(r - 1))
		given := syscallRecords[as]
		theirs, have := e.k.find(as, btf.KindStruct)
		y, gives := e.k.find(given.record, btf.KindStruct)
		if !ok || !have || !gives {
			continue
		}
		at, known := memberOffset(theirs.typ(), given.field)
		real, knows := memberOffset(y.typ(), given.field)
		if off := int64(v) + a.Off; known && knows && at != real && off >= at {
			word := int64(y.view.PointerSize())
			name := func(off int64) string {
				if given.field == "args" {
					return fmt.Sprintf("args[%d]", off/word)
				}
				return given.field
			}
			f := Finding{
				Code: ChangedSyscall, Subject: "record of " + e.pr.Attach.Target(e.pr.Section),
				Source: e.o.Source(a.At),
			}
			f.Offset, f.Name, f.Other, f.Max = off, name(off-real), name(off-at), off-at+real
			l = append(l, absence{at: a.At, f: f, anyhow: e.o.straight(e.pr, a.At)})
		}
	}
	return l
}

// memberOffset returns where a struct has a member, in bytes.
func memberOffset(t btf.Type, name string) (off int64, ok bool) {
	m, ok := memberNamed(t, name)
	return int64(m.BitOffset / 8), ok
}

// bitfields judges reads of whole fields that are bitfields on a kernel, unless the program also has what shifts them
// into place. aya's decisions do not show bitfields.
func (e *Evaluation) bitfields() (l []absence) {
	if e.loader == Aya {
		return nil
	}
	shifted := func(name string) bool {
		return slices.ContainsFunc(e.pr.Records, func(r int) bool {
			_, of := e.o.records.Object.Local(&e.o.records.Records()[r])
			k := e.o.records.Records()[r].Kind
			return of == name && (k == relo.LShiftU64 || k == relo.RShiftU64)
		})
	}
	for _, r := range e.pr.Records {
		if !e.decisions[r].Bitfield() {
			continue
		}
		f := e.o.records.finding(r, OK, relo.Reason{Code: ChangedBitfield})
		if !shifted(f.Subject) {
			f.Offset = int64(e.decisions[r].New)
			at := e.o.Sites[r]
			l = append(l, absence{at: at, f: f, anyhow: e.o.straight(e.pr, at)})
		}
	}
	return l
}

// argument names 8 bytes of the context, the same on all kernels.
func (e *Evaluation) argument(n int) string {
	return fmt.Sprintf("argument %d of %s", n+1, e.pr.Attach.Target(e.pr.Section))
}

// pointsTo reports whether an argument, a pointer to a struct, can be the address of a struct with a name: one begins
// with the other, or both with the same, as sockets do. A struct that the kernel does not have can be anything.
func (e *Evaluation) pointsTo(n int, name string) bool {
	h := e.hook
	if h == nil {
		h = e.raw
	}
	t, _ := h.slot(n)
	to, _ := h.view.SkipMods(t.Ref())
	as, ok := e.k.find(name, btf.KindStruct)
	if !ok || to.Kind() == btf.KindFwd {
		return true
	}
	x := beginning(to)
	return slices.ContainsFunc(beginning(as.typ()), func(s string) bool { return slices.Contains(x, s) })
}

// beginning returns the names of a struct and of the structs at its beginning, except small ones: many structs begin
// with those.
func beginning(t btf.Type) (l []string) {
	const few, deepest = 64, 8
	var visit func(t btf.Type, depth int)
	visit = func(t btf.Type, depth int) {
		if t.NameOff != 0 && (depth == 0 || t.Size() > few) {
			l = append(l, string(t.Name()))
		}
		for i := range t.Vlen() {
			m := t.Member(i)
			if in, ok := t.BTF().SkipMods(m.Type); ok && m.BitOffset == 0 && in.Kind().IsComposite() && depth < deepest {
				visit(in, depth+1)
			}
		}
	}
	visit(t, 0)
	return l
}

// Field is the name of a slot without the prefix of a field that has the place of a string instead of the string.
func (s *Slot) Field() string {
	_, name, ok := strings.Cut(s.name, "_loc_")
	if !ok || !strings.HasPrefix(s.name, "__") {
		return s.name
	}
	return name
}

// Named returns the one with the name of another.
func (s *Shape) Named(other *Slot) *Slot {
	for i := range s.Slots {
		if f := &s.Slots[i]; f.name != "" && f.Field() == other.Field() {
			return f
		}
	}
	return nil
}

// OwnRecord describes the record that program i takes its context for, by its own types; nil if these do not say.
func (o *Object) OwnRecord(i int) *Shape {
	if i < len(o.contexts) && o.contexts[i].Kind() == btf.KindStruct {
		return recordShape(o.contexts[i])
	}
	return nil
}
