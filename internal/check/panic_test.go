package check

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// reaches executes a program of one function per argument, and reports whether
// the last instruction of the first is reached.
func reaches(o *Object, funcs ...[]insn) bool {
	pr := program{}
	for i, code := range funcs {
		o.funcs = append(o.funcs, function{insns: code})
		o.funcs[i].findLeaders()
		pr.funcs = append(pr.funcs, i)
	}
	o.programs = []program{pr}
	x := explore(o, &o.programs[0], &inputs{
		features: features{rodata: true, partial: true, narrow: true, stImm: true},
		kconfig:  func(*extern) value { return unknown },
		settable: func(string) bool { return false },
	})
	_, ok := x.seen[site{0, len(funcs[0]) - 1}]
	return ok
}

// TestDeadFrame has a callee leave a pointer to its own frame where its caller
// finds it. Through it the caller, and what it calls next, read and write.
func TestDeadFrame(t *testing.T) {
	call := func(fn int) insn { return insn{op: opCall, src: pseudoCall, ref: ref{kind: refFunc, fn: fn}} }
	leave := []insn{
		{op: 0x7b, dst: 1, src: 10}, // *(u64 *)(r1 + 0) = r10
		{op: 0xbf, dst: 0, src: 10}, // r0 = r10
		{op: opExit},
	}
	for name, use := range map[string][]insn{
		"load":   {{op: 0x79, dst: 7, src: 6, off: -8}},
		"store":  {{op: 0x7b, dst: 6, src: 7, off: -8}},
		"atomic": {{op: 0xdb, dst: 6, src: 7, off: -8}},
		"helper": {{op: 0xbf, dst: 1, src: 6}, {op: 0xb7, dst: 2, imm: 8}, {op: opCall, imm: 4}},
		"kfunc":  {{op: 0xbf, dst: 1, src: 6}, {op: opCall, src: pseudoKfuncCall}},
		"callee": {{op: 0xbf, dst: 1, src: 6}, call(2)},
		"again":  {{op: 0xbf, dst: 1, src: 10}, {op: 0x07, dst: 1, imm: -16}, call(1), {op: 0x79, dst: 6, src: 10, off: -16}, {op: 0x7b, dst: 6, src: 7}},
	} {
		for _, from := range []insn{{op: 0x79, dst: 6, src: 10, off: -8}, {op: 0xbf, dst: 6, src: 0}} {
			main := append([]insn{
				{op: 0xbf, dst: 1, src: 10},
				{op: 0x07, dst: 1, imm: -8},
				call(1),
				from,
			}, use...)
			main = append(main, insn{op: opExit})
			third := []insn{{op: 0x7b, dst: 10, src: 1, off: -8}, {op: 0x7b, dst: 1, src: 1}, {op: 0x79, dst: 0, src: 1, off: -8}, {op: opExit}}
			if !reaches(new(Object), main, leave, third) {
				t.Errorf("%s, from %+v: the end is not reached", name, from)
			}
		}
	}
}

// TestDeadFrameIsReused writes through a pointer to a dead frame into the
// frame that has taken its place: what is known of that must be forgotten.
func TestDeadFrameIsReused(t *testing.T) {
	call := func(fn int) insn { return insn{op: opCall, src: pseudoCall, ref: ref{kind: refFunc, fn: fn}} }
	leave := []insn{{op: 0x7b, dst: 1, src: 10}, {op: opExit}}
	second := []insn{
		{op: 0xb7, dst: 2},                   // r2 = 0
		{op: 0x7b, dst: 10, src: 2, off: -8}, // *(u64 *)(r10 - 8) = 0
		{op: 0xb7, dst: 2, imm: 1},           // r2 = 1
		{op: 0x7b, dst: 1, src: 2, off: -8},  // *(u64 *)(r1 - 8) = 1
		{op: 0x79, dst: 0, src: 10, off: -8}, // r0 = *(u64 *)(r10 - 8)
		{op: opExit},
	}
	main := []insn{
		{op: 0xbf, dst: 1, src: 10},
		{op: 0x07, dst: 1, imm: -8},
		call(1),
		{op: 0x79, dst: 1, src: 10, off: -8},
		call(2),
		{op: 0x55, dst: 0, off: 1}, // if r0 != 0 goto +1
		{op: opExit},
		{op: opExit},
	}
	if !reaches(new(Object), main, leave, second) {
		t.Error("a store through a pointer to a dead frame is not seen")
	}
}

// TestManyPointees reads the last of more variables than 16 bits can number.
func TestManyPointees(t *testing.T) {
	const n = 70_000
	o := &Object{
		order: binary.LittleEndian, btf: new(rawbtf.BTF),
		externs: make(map[string]extern), kconfig: make(map[string]int),
	}
	for i := range n {
		name := fmt.Sprintf("CONFIG_%06d", i)
		o.pointees = append(o.pointees, name)
		o.externs[name] = extern{name: name, kconfig: true}
		o.kconfig[name] = 8
	}
	for _, i := range []int{0, math.MaxInt16, math.MaxInt16 + 1, math.MaxUint16 + 1, n - 1} {
		c := *o
		if !reaches(&c, []insn{
			{op: opLdImm64, dst: 1, ref: ref{kind: refExtern, name: o.pointees[i]}}, {},
			{op: 0x79, dst: 0, src: 1},
			{op: 0x15, dst: 0, off: 1, imm: int32(i)},
			{op: opExit},
			{op: opExit},
		}) {
			t.Errorf("%s is not read", o.pointees[i])
		}
	}
}

// TestFarOffset reads read-only data so far behind its beginning that the end
// of what is read has no 64-bit number.
func TestFarOffset(t *testing.T) {
	for _, off := range []int64{math.MaxInt64, math.MaxInt64 - 7, math.MinInt64, -1, 1 << 40} {
		o := &Object{order: binary.LittleEndian, btf: new(rawbtf.BTF), pointees: []string{".rodata"}, data: map[string][]byte{".rodata": make([]byte, 64)}}
		if !reaches(o, []insn{
			{op: opLdImm64, dst: 1, ref: ref{kind: refData, name: ".rodata"}}, {},
			{op: opLdImm64, dst: 2, imm64: off}, {},
			{op: 0x0f, dst: 1, src: 2}, // r1 += r2
			{op: 0x79, dst: 0, src: 1},
			{op: opExit},
		}) {
			t.Errorf("offset %d: the end is not reached", off)
		}
	}
}
