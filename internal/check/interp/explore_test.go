// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

type insn = bpfobj.Insn

func call(fn int) insn {
	return insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, fn)}
}

// run executes a program of these functions, from the first on.
func run(o *bpfobj.Code, funcs ...[]insn) *Result {
	return runIn(context.Background(), o, funcs...)
}

func runIn(ctx context.Context, o *bpfobj.Code, funcs ...[]insn) *Result {
	pr := bpfobj.Program{}
	for i, code := range funcs {
		o.Funcs = append(o.Funcs, bpfobj.Function{Insns: code})
		pr.Funcs = append(pr.Funcs, i)
	}
	return Explore(ctx, o, &pr, allFeatures())
}

func allFeatures() *Input {
	return &Input{
		Features: Constants | Rodata | NonNull | Partly | Partial | Narrow | StImm,
		Record:   func(int) (uint64, bool) { return 0, true },
		Ksym:     func(*bpfobj.Extern) Number { return Number{} },
		Kconfig:  func(*bpfobj.Extern) Number { return Number{Unknown: math.MaxUint64} },
		Settable: func(string) bool { return false },
	}
}

// TestOdd has code that cannot be followed.
func TestOdd(t *testing.T) {
	exit := insn{Op: bpfobj.OpExit}
	for want, code := range map[Odd][]insn{
		NothingOdd:     {exit},
		LeavesFunction: {{Op: asm.Mov.Op(asm.ImmSource)}},
		UnnamedAddress: {{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefFunc, -1)}, {}, exit},
		UnnamedCall:    {call(-1), exit},
		CallsNest:      {call(0), exit},
	} {
		if r := run(new(bpfobj.Code), code); r.Odd != want || r.GaveUp {
			t.Errorf("odd: %d, want %d; gave up: %t", r.Odd, want, r.GaveUp)
		}
	}
}

// reaches reports whether the last instruction of the first function is reached.
func reaches(o *bpfobj.Code, funcs ...[]insn) bool {
	return run(o, funcs...).Reached(bpfobj.Site{Insn: len(funcs[0]) - 1}) != Unreached
}

// TestDeadFrame has a callee leave a pointer to its own frame to its caller, which reads and writes through it, as do
// later callees.
func TestDeadFrame(t *testing.T) {
	leave := []insn{
		{Op: 0x7b, Dst: 1, Src: 10}, // *(u64 *)(r1 + 0) = r10
		{Op: 0xbf, Dst: 0, Src: 10}, // r0 = r10
		{Op: bpfobj.OpExit},
	}
	for name, use := range map[string][]insn{
		"load":   {{Op: 0x79, Dst: 7, Src: 6, Off: -8}},
		"store":  {{Op: 0x7b, Dst: 6, Src: 7, Off: -8}},
		"atomic": {{Op: 0xdb, Dst: 6, Src: 7, Off: -8}},
		"helper": {{Op: 0xbf, Dst: 1, Src: 6}, {Op: 0xb7, Dst: 2, Imm: 8}, {Op: bpfobj.OpCall, Imm: 4}},
		"kfunc":  {{Op: 0xbf, Dst: 1, Src: 6}, {Op: bpfobj.OpCall, Src: asm.PseudoKfuncCall}},
		"callee": {{Op: 0xbf, Dst: 1, Src: 6}, call(2)},
		"again":  {{Op: 0xbf, Dst: 1, Src: 10}, {Op: 0x07, Dst: 1, Imm: -16}, call(1), {Op: 0x79, Dst: 6, Src: 10, Off: -16}, {Op: 0x7b, Dst: 6, Src: 7}},
	} {
		for _, from := range []insn{{Op: 0x79, Dst: 6, Src: 10, Off: -8}, {Op: 0xbf, Dst: 6, Src: 0}} {
			main := append([]insn{
				{Op: 0xbf, Dst: 1, Src: 10},
				{Op: 0x07, Dst: 1, Imm: -8},
				call(1),
				from,
			}, use...)
			main = append(main, insn{Op: bpfobj.OpExit})
			third := []insn{{Op: 0x7b, Dst: 10, Src: 1, Off: -8}, {Op: 0x7b, Dst: 1, Src: 1}, {Op: 0x79, Dst: 0, Src: 1, Off: -8}, {Op: bpfobj.OpExit}}
			if !reaches(new(bpfobj.Code), main, leave, third) {
				t.Errorf("%s, from %+v: the end is not reached", name, from)
			}
		}
	}
}

// TestDeadFrameIsReused writes through a pointer to a dead frame into the frame that has taken its place, whose slots
// must be forgotten.
func TestDeadFrameIsReused(t *testing.T) {
	leave := []insn{{Op: 0x7b, Dst: 1, Src: 10}, {Op: bpfobj.OpExit}}
	second := []insn{
		{Op: 0xb7, Dst: 2},                   // r2 = 0
		{Op: 0x7b, Dst: 10, Src: 2, Off: -8}, // *(u64 *)(r10 - 8) = 0
		{Op: 0xb7, Dst: 2, Imm: 1},           // r2 = 1
		{Op: 0x7b, Dst: 1, Src: 2, Off: -8},  // *(u64 *)(r1 - 8) = 1
		{Op: 0x79, Dst: 0, Src: 10, Off: -8}, // r0 = *(u64 *)(r10 - 8)
		{Op: bpfobj.OpExit},
	}
	main := []insn{
		{Op: 0xbf, Dst: 1, Src: 10},
		{Op: 0x07, Dst: 1, Imm: -8},
		call(1),
		{Op: 0x79, Dst: 1, Src: 10, Off: -8},
		call(2),
		{Op: 0x55, Dst: 0, Off: 1}, // if r0 != 0 goto +1
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}
	if !reaches(new(bpfobj.Code), main, leave, second) {
		t.Error("a store through a pointer to a dead frame is not seen")
	}
}

// TestPointerSomewhere loads a stack pointer from an unknown place on the stack and stores through it: the stack must
// be forgotten.
func TestPointerSomewhere(t *testing.T) {
	if !reaches(new(bpfobj.Code), []insn{
		{Op: bpfobj.OpCall, Imm: 7},            // r0 = get_prandom_u32()
		{Op: 0x57, Dst: 0, Imm: 8},             // r0 &= 8
		{Op: 0xbf, Dst: 7, Src: 10},            // r7 = r10
		{Op: 0x07, Dst: 7, Imm: -16},           // r7 -= 16
		{Op: 0x0f, Dst: 7, Src: 0},             // r7 += r0
		{Op: 0x7b, Dst: 10, Src: 10, Off: -8},  // *(u64 *)(r10 - 8) = r10
		{Op: 0x7b, Dst: 10, Src: 10, Off: -16}, // *(u64 *)(r10 - 16) = r10
		{Op: 0x7a, Dst: 10, Off: -24},          // *(u64 *)(r10 - 24) = 0
		{Op: 0x79, Dst: 8, Src: 7},             // r8 = *(u64 *)r7, which is r10
		{Op: 0x7a, Dst: 8, Off: -24, Imm: 1},   // *(u64 *)(r8 - 24) = 1
		{Op: 0x79, Dst: 9, Src: 10, Off: -24},  // r9 = *(u64 *)(r10 - 24)
		{Op: 0x55, Dst: 9, Off: 1},             // if r9 != 0 goto +1
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}) {
		t.Error("the store is not seen")
	}
}

// TestCallbackFollows has a callback store through a pointer to a frame that it finds in another frame.
func TestCallbackFollows(t *testing.T) {
	main := []insn{
		{Op: 0x7a, Dst: 10, Off: -8}, // *(u64 *)(r10 - 8) = 0
		{Op: 0xbf, Dst: 1, Src: 10},
		{Op: 0x07, Dst: 1, Imm: -16},
		call(1),
		{Op: 0x79, Dst: 9, Src: 10, Off: -8},
		{Op: 0x55, Dst: 9, Off: 1}, // if r9 != 0 goto +1
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}
	loops := []insn{
		{Op: 0x7b, Dst: 10, Src: 1, Off: -8}, // *(u64 *)(r10 - 8) = r1
		{Op: bpfobj.OpLdImm64, Dst: 2, Ref: bpfobj.RefTo(bpfobj.RefFunc, 2)}, {},
		{Op: 0xbf, Dst: 3, Src: 10},
		{Op: 0x07, Dst: 3, Imm: -8},
		{Op: 0xb7, Dst: 1, Imm: 1},
		{Op: bpfobj.OpCall, Imm: int64(asm.FnLoop)},
		{Op: bpfobj.OpExit},
	}
	callback := []insn{
		{Op: 0x79, Dst: 6, Src: 2},         // r6 = *(u64 *)r2
		{Op: 0x7a, Dst: 6, Off: 8, Imm: 1}, // *(u64 *)(r6 + 8) = 1
		{Op: bpfobj.OpExit},
	}
	if !reaches(new(bpfobj.Code), main, loops, callback) {
		t.Error("the store is not seen")
	}
}

// TestContradiction follows branches that cannot be taken, which the named verifiers do not notice. They then assume
// other values of the registers.
func TestContradiction(t *testing.T) {
	unknown := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)} // r0
	const big = 65536
	half := func(op asm.JumpOp, source asm.Source) asm.OpCode {
		return op.Op(source)&^7 | asm.OpCode(asm.Jump32Class)
	}
	for name, code := range map[string][]insn{
		"5.10: a bit that is set is not": {
			unknown,
			{Op: asm.Mov.Op(asm.ImmSource), Dst: 7, Imm: big},
			{Op: half(asm.JNE, asm.RegSource), Dst: 0, Src: 7, Off: 3},
			{Op: asm.JSet.Op(asm.RegSource), Dst: 7, Src: 0, Off: 2},
			{Op: half(asm.JSGE, asm.ImmSource), Dst: 0, Imm: big, Off: 1},
			{Op: asm.Ja.Op(asm.ImmSource), Off: 1},
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		},
		"6.18: less than itself": {
			unknown,
			{Op: asm.And.Op(asm.ImmSource), Dst: 0, Imm: 4},
			{Op: half(asm.JGE, asm.RegSource), Dst: 0, Src: 0, Off: 2},
			{Op: asm.JSGE.Op(asm.ImmSource), Dst: 0, Off: 1},
			{Op: asm.Ja.Op(asm.ImmSource), Off: 1},
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		},
		"5.10: equal to another number": {
			unknown,
			{Op: asm.And.Op(asm.ImmSource), Dst: 0, Imm: 4},
			{Op: asm.Mov.Op(asm.RegSource), Dst: 6, Src: 0},
			unknown,
			{Op: asm.And.Op(asm.ImmSource), Dst: 0, Imm: 1},
			{Op: asm.Add.Op(asm.ImmSource), Dst: 0, Imm: 16},
			{Op: asm.JNE.Op(asm.RegSource), Dst: 6, Src: 0, Off: 2},
			{Op: asm.JLE.Op(asm.ImmSource), Dst: 6, Imm: 4, Off: 1},
			{Op: asm.Ja.Op(asm.ImmSource), Off: 1},
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		},
	} {
		if !reaches(new(bpfobj.Code), code) {
			t.Errorf("%s: the end is not reached", name)
		}
	}
}

// TestManyPointees reads variables with numbers of more than 16 bits.
func TestManyPointees(t *testing.T) {
	const n = 70_000
	o := &bpfobj.Code{Order: binary.LittleEndian}
	values := make(map[string]uint64)
	for i := range n {
		name := fmt.Sprintf("CONFIG_%d", i)
		o.Externs = append(o.Externs, bpfobj.Extern{Name: name, Kind: bpfobj.ExternKconfig, Size: 8})
		values[name] = uint64(i)
	}
	for _, i := range []int{0, math.MaxInt16, math.MaxInt16 + 1, math.MaxUint16 + 1, n - 1} {
		code := []insn{
			{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefExtern, i)}, {},
			{Op: 0x79, Dst: 0, Src: 1},
			{Op: 0x55, Dst: 0, Off: 1, Imm: int64(i)},
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		}
		x := Explore(t.Context(), &bpfobj.Code{Order: o.Order, Externs: o.Externs, Funcs: []bpfobj.Function{{Insns: code}}}, &bpfobj.Program{Funcs: []int{0}}, &Input{
			Features: Rodata,
			Kconfig:  func(e *bpfobj.Extern) Number { return Number{V: values[e.Name]} },
		})
		if x.Reached(bpfobj.Site{Insn: 4}) != Certain || x.Reached(bpfobj.Site{Insn: 5}) != Unreached {
			t.Errorf("%s is not read", o.Externs[i].Name)
		}
	}
}

// TestFarOffset reads read-only data at offsets so large that the end of the access overflows 64 bits.
func TestFarOffset(t *testing.T) {
	for _, off := range []int64{math.MaxInt64, math.MaxInt64 - 7, math.MinInt64, -1, 1 << 40} {
		o := &bpfobj.Code{Order: binary.LittleEndian, Data: []bpfobj.Data{{Bytes: make([]byte, 64)}}}
		if !reaches(o, []insn{
			{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefData, 0)}, {},
			{Op: bpfobj.OpLdImm64, Dst: 2, Imm: off}, {},
			{Op: 0x0f, Dst: 1, Src: 2}, // r1 += r2
			{Op: 0x79, Dst: 0, Src: 1},
			{Op: bpfobj.OpExit},
		}) {
			t.Errorf("offset %d: the end is not reached", off)
		}
	}
}

// TestPartOfPointer stores half of a pointer, which is then an ordinary number.
func TestPartOfPointer(t *testing.T) {
	o := &bpfobj.Code{Order: binary.LittleEndian, Data: []bpfobj.Data{{Bytes: make([]byte, 64)}}}
	if !reaches(o, []insn{
		{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefData, 0)}, {},
		{Op: asm.StoreMemOp(asm.Word), Dst: asm.RFP, Src: 1, Off: -8},
		{Op: asm.LoadMemOp(asm.Word), Dst: 2, Src: asm.RFP, Off: -8},
		{Op: asm.JEq.Op(asm.ImmSource), Dst: 2, Off: 1},
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}) {
		t.Error("half a pointer cannot be 0")
	}
}

// TestManyPaths executes a program with too many paths to distinguish: it must end, and no reached instruction may
// count as unreached.
func TestManyPaths(t *testing.T) {
	var code []insn
	for i := range 40 { // r6 gets a bit of an unknown number each time
		code = append(code,
			insn{Op: bpfobj.OpCall, Imm: 7},
			insn{Op: 0x67, Dst: 6, Imm: 1},
			insn{Op: 0x15, Dst: 0, Off: 1, Imm: int64(i)},
			insn{Op: 0x07, Dst: 6, Imm: 1})
	}
	code = append(code, insn{Op: 0x15, Dst: 6, Off: 1, Imm: 12345}, insn{Op: bpfobj.OpCall, Imm: 9999}, insn{Op: bpfobj.OpExit})
	x := run(new(bpfobj.Code), code)
	if x.Reached(bpfobj.Site{Insn: len(code) - 2}) == Unreached && !x.GaveUp {
		t.Error("what is reached counts as unreachable")
	}
}
