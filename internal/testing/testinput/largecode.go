// SPDX-License-Identifier: Apache-2.0

package testinput

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/pkg/relo"
)

// largeFunc is an unfinished function.
type largeFunc struct {
	name  string
	code  asm.Instructions
	slots int // 8-byte parts of code
	relos []record
	calls []call
	lines []int // slots where a line of the source begins
}

// record is a CO-RE relocation of the instruction at a slot: a kind of value of q.
type record struct {
	slot     int
	kind     relo.Kind
	question *question
}

// call is an instruction that calls a function of .text.
type call struct {
	insn, slot int // the same instruction, as an index into code and as a slot
	callee     int
}

func (f *largeFunc) add(insns ...asm.Instruction) {
	for _, in := range insns {
		f.code = append(f.code, in)
		f.slots += int(in.Size() / asm.InstructionSize)
	}
}

// relocated adds an instruction with a record.
func (f *largeFunc) relocated(kind relo.Kind, q *question, in asm.Instruction) {
	f.relos = append(f.relos, record{f.slots, kind, q})
	f.add(in)
}

// call calls a function of .text with the base.
func (f *largeFunc) call(callee int) {
	f.line()
	f.add(asm.Mov.Reg(asm.R1, base))
	f.calls = append(f.calls, call{len(f.code), f.slots, callee})
	f.add(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoCall})
}

// line begins another line of the source.
func (f *largeFunc) line() { f.lines = append(f.lines, f.slots) }

// The registers and stack slots of the code.
const (
	base    = asm.R6 // address that members are relative to
	scratch = -8     // the last value read
	result  = -16    // the value of a type or an enumerator
)

// begin adds a function's first line. The base of a program is the current task, and the
// base of a function is its argument.
func (f *largeFunc) begin(program bool) {
	f.line()
	if program {
		f.add(asm.FnGetCurrentTask.Call(), asm.Mov.Reg(base, asm.R0))
	} else {
		f.add(asm.Mov.Reg(base, asm.R1))
	}
}

func (f *largeFunc) end() {
	f.line()
	f.add(asm.Mov.Imm(asm.R0, 0), asm.Return())
}

// read adds BPF_CORE_READ of a member. If sized, the size has a record, too.
func (f *largeFunc) read(q *question, sized bool) {
	f.add(asm.Mov.Reg(asm.R3, base))
	if sized {
		f.relocated(relo.ByteSize, q, asm.Mov.Imm(asm.R2, int32(q.size)))
		f.relocated(relo.ByteOffset, q, asm.Add.Imm(asm.R3, int32(q.value)))
	} else {
		f.add(asm.Mov.Imm(asm.R2, int32(q.size)))
		f.relocated(relo.ByteOffset, q, asm.Mov.Imm(asm.R1, int32(q.value)))
		f.add(asm.Add.Reg(asm.R3, asm.R1))
	}
	f.add(asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, scratch), asm.FnProbeReadKernel.Call())
}

// load adds a load of an integer of the current task whose type the verifier knows, if
// helper exists in the kernel. Its offset and width depend on the kernel.
func (f *largeFunc) load(q, helper *question) {
	size := map[byte]asm.Size{'1': asm.Byte, '2': asm.Half, '4': asm.Word, '8': asm.DWord}[q.shape]
	f.guarded(relo.EnumvalExists, helper, func(f *largeFunc) {
		f.add(asm.FnGetCurrentTaskBtf.Call())
		f.relocated(relo.ByteOffset, q, asm.LoadMem(asm.R1, asm.R0, int16(q.value), size))
		f.add(asm.StoreMem(asm.RFP, result, asm.R1, asm.DWord))
	}, func(f *largeFunc) { f.read(q, false) })
}

// guarded adds a branch to yes if q exists, and to no otherwise.
func (f *largeFunc) guarded(kind relo.Kind, q *question, yes, no func(*largeFunc)) {
	length := func(part func(*largeFunc)) int16 {
		var alone largeFunc
		part(&alone)
		return int16(alone.slots)
	}
	f.relocated(kind, q, asm.Mov.Imm(asm.R1, 1))
	f.add(asm.Instruction{OpCode: asm.JEq.Op(asm.ImmSource), Dst: asm.R1, Offset: length(yes) + 1})
	yes(f)
	f.add(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja), Offset: length(no)})
	no(f)
}

// keep adds a store of a relocated value.
func (f *largeFunc) keep(kind relo.Kind, q *question, in asm.Instruction) {
	f.relocated(kind, q, in)
	f.add(asm.StoreMem(asm.RFP, result, asm.R1, asm.Word))
}

// way is the way to read a member that every kernel has.
type way uint8

const (
	plain way = iota
	sized
	loaded
)

// cost is the number of records in the question's code.
func (q *question) cost(w way) int {
	switch {
	case q.about == aboutMember && (q.sometimes || w == loaded):
		return 3
	case q.about == aboutEnumerator && q.sometimes, q.about == aboutMember && w == sized:
		return 2
	}
	return 1
}

// asker cycles through the questions.
type asker struct {
	plan *largePlan
	at   int
}

// way alternates from one round to the next.
func (a *asker) way(q *question) way {
	switch {
	case a.at/len(a.plan.questions)%2 == 0:
		return plain
	case a.plan.helper != nil && q.root == "task_struct" && q.shape != 'p':
		return loaded
	}
	return sized
}

// ask adds code with n records.
func (a *asker) ask(f *largeFunc, n int) {
	for n > 0 {
		q := a.plan.questions[a.at%len(a.plan.questions)]
		w := a.way(q)
		if q.cost(w) > n { // a smaller one; this one comes in the next function
			q, w = a.plan.members[a.at%len(a.plan.members)], plain
		} else {
			a.at++
		}
		a.one(f, q, w)
		n -= q.cost(w)
	}
}

// one adds the code for one question.
func (a *asker) one(f *largeFunc, q *question, w way) {
	f.line()
	enumerator := func(f *largeFunc) {
		f.keep(relo.EnumvalValue, q, asm.LoadImm(asm.R1, q.value, asm.DWord))
	}
	switch {
	case q.about == aboutType && q.sometimes:
		f.keep(relo.TypeExists, q, asm.Mov.Imm(asm.R1, 1))
	case q.about == aboutType:
		f.keep(relo.TypeSize, q, asm.Mov.Imm(asm.R1, int32(q.size)))
	case q.about == aboutEnumerator && q.sometimes:
		f.guarded(relo.EnumvalExists, q, enumerator,
			func(f *largeFunc) { f.add(asm.StoreImm(asm.RFP, result, 0, asm.Word)) })
	case q.about == aboutEnumerator:
		enumerator(f)
	case q.sometimes:
		f.guarded(relo.FieldExists, q,
			func(f *largeFunc) { f.read(q, false) },
			func(f *largeFunc) { f.read(q.instead, false) })
	case w == loaded:
		f.load(q, a.plan.helper)
	default:
		f.read(q, w == sized)
	}
}

// resolve sets the constants of the calls of f, which starts at a slot of its section.
// Functions of .text start at slot start[callee]. The constant of a call within .text is
// relative to the call. Other calls have a relocation against .text, and their constant is
// relative to the section.
func (f *largeFunc) resolve(start []int, at int, text bool) {
	for _, c := range f.calls {
		to := start[c.callee] - 1
		if text {
			to -= at + c.slot
		}
		f.code[c.insn].Constant = int64(to)
	}
}

// bytes encodes the code.
func (f *largeFunc) bytes(order binary.ByteOrder) []byte {
	var b bytes.Buffer
	for _, in := range f.code {
		if _, err := in.Marshal(&b, order); err != nil {
			panic(fmt.Sprintf("%v: %v", in, err)) // a bug in this file
		}
	}
	return b.Bytes()
}
