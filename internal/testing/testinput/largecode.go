// SPDX-License-Identifier: Apache-2.0

package testinput

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/pkg/relo"
)

// largeFunc is a function in the making.
type largeFunc struct {
	name  string
	code  asm.Instructions
	slots int // 8-byte parts of code
	relos []record
	calls []call
	lines []int // slots where a line of the source begins
}

// record is a CO-RE relocation: the instruction at a slot asks q for a kind of value.
type record struct {
	slot int
	kind relo.Kind
	q    *question
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

// relocated adds an instruction that has a record.
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

// Registers and places in the frame that the code uses.
const (
	base    = asm.R6 // address that members are relative to
	scratch = -8     // what was read last
	result  = -16    // what a type or an enumerator came to
)

// begin is a function's first line: a program starts with the current task, a
// function is given its base.
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

// read is BPF_CORE_READ of a member. With sized it asks for the size too.
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

// load reads an integer of the current task as the type that the verifier knows
// it to have, where helper says that the kernel can: a load whose offset and
// width depend on the kernel.
func (f *largeFunc) load(q, helper *question) {
	size := map[byte]asm.Size{'1': asm.Byte, '2': asm.Half, '4': asm.Word, '8': asm.DWord}[q.shape]
	f.guarded(relo.EnumvalExists, helper, func(f *largeFunc) {
		f.add(asm.FnGetCurrentTaskBtf.Call())
		f.relocated(relo.ByteOffset, q, asm.LoadMem(asm.R1, asm.R0, int16(q.value), size))
		f.add(asm.StoreMem(asm.RFP, result, asm.R1, asm.DWord))
	}, func(f *largeFunc) { f.read(q, false) })
}

// guarded runs yes where q has the kind of existence asked for, else no.
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

// keep stores a relocated value.
func (f *largeFunc) keep(kind relo.Kind, q *question, in asm.Instruction) {
	f.relocated(kind, q, in)
	f.add(asm.StoreMem(asm.RFP, result, asm.R1, asm.Word))
}

// way is how a member that every kernel has is read.
type way uint8

const (
	plain way = iota
	sized
	loaded
)

// cost is the number of records that the question's code makes.
func (q *question) cost(w way) int {
	switch {
	case q.about == aboutMember && (q.sometimes || w == loaded):
		return 3
	case q.about == aboutEnumerator && q.sometimes, q.about == aboutMember && w == sized:
		return 2
	}
	return 1
}

// asker goes through the questions again and again.
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

// ask adds the code that makes n records.
func (a *asker) ask(f *largeFunc, n int) {
	for n > 0 {
		q := a.plan.questions[a.at%len(a.plan.questions)]
		w := a.way(q)
		if q.cost(w) > n { // something smaller, and this one in the next function
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

// resolve fills in what the calls of f, which starts at a slot of its section,
// have as their constant. Functions of .text are start[callee] slots into it.
// A call within .text is relative; one from elsewhere has a relocation against
// the section, and a constant from its start.
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
			panic(fmt.Sprintf("%v: %v", in, err)) // a mistake in this file
		}
	}
	return b.Bytes()
}
