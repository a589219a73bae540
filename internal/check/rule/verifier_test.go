// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/pkg/kernel"
)

type insn = bpfobj.Insn

// runningKernel returns the kernel whose verifier is to judge, in which other names are looked for, too. Without one the
// test is skipped.
func runningKernel(t *testing.T, names ...string) *Inventory {
	t.Helper()
	raw := loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	tg := new(core.Target)
	if why := tg.Load(t.Context(), "running", raw); why != nil {
		t.Fatal(why)
	}
	if tg.Order() != binary.LittleEndian {
		t.Skip("needs a little-endian machine, for which the programs are written")
	}
	want := &Wanted{names: make(map[string]int), walks: true}
	want.add(featureNames()...)
	want.add(names...)
	for _, p := range probes {
		want.add(p.to)
	}
	return inspectBTF(t.Context(), tg, want, kernel.Key{}, "")
}

// TestVerifier lets the running kernel's verifier judge random programs with
// one bad call each. A program that it refuses for this call must not be guarded.
// The opposite happens, too: package interp knows less than the verifier.
func TestVerifier(t *testing.T) {
	raceflag.SkipSerial(t)
	k := runningKernel(t)
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	counts := make(map[string]int)
	for n := range 5000 {
		g := generator{Rand: rnd}
		o := g.object()
		bad := g.bad
		reached := interp.Explore(t.Context(), o.Code, &o.Programs[0], &interp.Input{Features: k.features}).Reached(bad) != interp.Unreached
		refused, other := verify(t, o)
		switch {
		case other != "":
			counts["refused for another reason"]++
		case refused && !reached:
			t.Fatalf("program %d of seed %d: the bad call at %v is reached, but counts as guarded\n%s", n, seed, bad, dump(o))
		default:
			counts[fmt.Sprintf("refused %t, reached %t", refused, reached)]++
		}
	}
	t.Log(counts)
	if both, none := counts["refused true, reached true"], counts["refused false, reached false"]; both < 300 || none < 300 {
		t.Error("the programs are too much alike")
	} else if counts["refused false, reached true"] > (both+none)/10 {
		t.Error("far less is known than the verifier knows")
	}
}

// verify loads a program, and says whether the bad call was what the verifier
// refused, or what else.
func verify(t *testing.T, o *Object) (refused bool, other string) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL", Instructions: assemble(t, o)})
	if err == nil {
		p.Close()
		return false, ""
	}
	var ve *ebpf.VerifierError
	if errors.As(err, &ve) && strings.Contains(strings.Join(ve.Log, "\n"), "#9999") {
		return true, ""
	}
	return false, err.Error()
}

// assemble converts an object's functions for cilium/ebpf.
func assemble(t *testing.T, o *Object) asm.Instructions {
	t.Helper()
	var code []byte
	for i := range o.Funcs {
		for _, in := range o.Funcs[i].Insns {
			code = append(code, byte(in.Op), byte(in.Dst|in.Src<<4))
			code = binary.LittleEndian.AppendUint16(code, uint16(in.Off))
			code = binary.LittleEndian.AppendUint32(code, uint32(in.Imm))
		}
	}
	insns, err := asm.AppendInstructions(nil, bytes.NewReader(code), binary.LittleEndian, "linux")
	if err != nil {
		t.Fatal(err)
	}
	return insns
}

func dump(o *Object) string {
	var b strings.Builder
	for i := range o.Funcs {
		for k, in := range o.Funcs[i].Insns {
			fmt.Fprintf(&b, "%d/%d: op %02x dst %d src %d off %d imm %d\n", i, k, uint8(in.Op), in.Dst, in.Src, in.Off, in.Imm)
		}
	}
	return b.String()
}

// generator makes random programs: numbers that are known or not in r6 to r9
// and on the stack, computed with, compared, and handed to a function.
type generator struct {
	*rand.Rand
	code []insn
	bad  bpfobj.Site
	regs int // number of registers in use
}

func (g *generator) emit(in insn) { g.code = append(g.code, in) }

func (g *generator) reg() asm.Register { return asm.R6 + asm.Register(g.IntN(g.regs)) }

func (g *generator) imm() int64 {
	return []int64{0, 1, 2, 3, 4, 8, 9, 12, -1, 200, 255, 1 << 16, math.MaxInt32, math.MinInt32}[g.IntN(14)]
}

func (g *generator) object() *Object {
	g.regs = []int{1, 2, 4}[g.IntN(3)] // with fewer registers, more is known of each
	for i := range int16(4) {
		g.emit(insn{Op: 0xb7, Dst: asm.R6 + asm.Register(i), Imm: g.imm()}) // mov
		g.emit(insn{Op: 0x7b, Dst: 10, Src: asm.R6 + asm.Register(i), Off: -8 * (i + 1)})
	}
	body := 12 + g.IntN(16)
	at := body/2 + g.IntN(body/2)
	type jump struct{ insn, step int }
	var jumps []jump
	starts := make([]int, body+1)
	for i := range body {
		starts[i] = len(g.code)
		switch {
		case i == at:
			g.bad = bpfobj.Site{Insn: len(g.code)}
			g.emit(insn{Op: bpfobj.OpCall, Imm: 9999})
		case g.IntN(3) == 0:
			jumps = append(jumps, jump{len(g.code), i})
			g.emit(g.condition())
		default:
			g.step()
		}
	}
	starts[body] = len(g.code)
	for _, j := range jumps {
		to := starts[j.step+1+g.IntN(body-j.step)]
		g.code[j.insn].Off = int16(to - j.insn - 1)
	}
	g.emit(insn{Op: 0xb7})
	g.emit(insn{Op: bpfobj.OpExit})
	calls := false
	for i := range g.code {
		if in := &g.code[i]; in.IsFuncCall() {
			calls = true
			in.Imm = int64(len(g.code) - i - 1)
			in.Ref = bpfobj.RefTo(bpfobj.RefFunc, 1)
		}
	}
	callee := []insn{
		{Op: 0xbf, Src: 1}, {Op: 0x57, Imm: g.imm()}, {Op: 0x15, Dst: 1, Off: 1, Imm: g.imm()}, {Op: 0x07, Imm: 1}, {Op: bpfobj.OpExit},
	}
	o := &bpfobj.Code{
		Order:    binary.LittleEndian,
		Funcs:    []bpfobj.Function{{Insns: g.code}, {Insns: callee}},
		Programs: []bpfobj.Program{{Funcs: []int{0, 1}}},
	}
	if !calls {
		o.Funcs, o.Programs[0].Funcs = o.Funcs[:1], []int{0}
	}
	return NewObject("", o, nil)
}

func (g *generator) condition() insn {
	ops := []asm.OpCode{0x10, 0x50, 0x20, 0x30, 0xa0, 0xb0, 0x60, 0x70, 0xc0, 0xd0, 0x40, 0x10, 0x50, 0x10, 0x50}
	in := insn{Op: ops[g.IntN(len(ops))] | asm.OpCode(asm.JumpClass), Dst: g.reg(), Imm: g.imm()}
	if g.IntN(4) == 0 {
		in.Op = in.Op&0xf0 | asm.OpCode(asm.Jump32Class)
	}
	if g.IntN(4) == 0 {
		in.Op, in.Src, in.Imm = in.Op|asm.OpCode(asm.RegSource), g.reg(), 0
	}
	return in
}

func (g *generator) step() {
	slot := func() int16 { return int16(-8 * (1 + g.IntN(4))) }
	sizes := []asm.OpCode{0x18, 0x18, 0x00, 0x08, 0x10}
	switch g.IntN(9) {
	case 0, 8: // something unknown
		g.emit(insn{Op: bpfobj.OpCall, Imm: 7})
		g.emit(insn{Op: 0xbf, Dst: g.reg(), Src: 0})
		if g.IntN(3) == 0 { // in both halves
			g.emit(insn{Op: 0x67, Dst: 0, Imm: int64(g.IntN(64))})
			g.emit(insn{Op: 0x4f, Dst: g.reg(), Src: 0})
		}
	case 1: // store
		in := insn{Op: 0x63&^0x18 | sizes[g.IntN(5)], Dst: 10, Src: g.reg(), Off: slot()}
		if in.Op&0x18 != 0x18 && g.IntN(2) == 0 {
			in.Off += 4
			if in.Op&0x18 == 0 && in.Off%4 != 0 {
				in.Off &^= 3
			}
		}
		if g.IntN(4) == 0 {
			in.Op, in.Src, in.Imm = in.Op&^7|asm.OpCode(asm.StClass), 0, g.imm()
		}
		g.emit(in)
	case 2: // load
		in := insn{Op: 0x61&^0x18 | sizes[g.IntN(5)], Dst: g.reg(), Src: 10, Off: slot()}
		if in.Op&0x18 != 0x18 && g.IntN(3) == 0 {
			in.Off += 4
		}
		g.emit(in)
	case 3:
		g.emit(insn{Op: 0xbf, Dst: 1, Src: g.reg()})
		g.emit(insn{Op: bpfobj.OpCall, Src: asm.PseudoCall})
		g.emit(insn{Op: 0xbf, Dst: g.reg(), Src: 0})
	case 4: // mov
		g.emit(insn{Op: []asm.OpCode{0xb7, 0xb4}[g.IntN(2)], Dst: g.reg(), Imm: g.imm()})
	default:
		ops := []asm.OpCode{0x00, 0x10, 0x20, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xc0, 0xb0, 0x50, 0x40, 0x30, 0x90}
		in := insn{Op: ops[g.IntN(len(ops))] | asm.OpCode(asm.ALU64Class), Dst: g.reg(), Imm: g.imm()}
		if g.IntN(3) == 0 {
			in.Op = in.Op&0xf0 | asm.OpCode(asm.ALUClass)
		}
		if op := in.Op & 0xf0; op == 0x60 || op == 0x70 || op == 0xc0 {
			in.Imm = int64(g.IntN(32))
		} else if op == 0x30 || op == 0x90 { // a divisor other than 0
			in.Imm |= 1
		}
		if g.IntN(2) == 0 {
			in.Op, in.Src, in.Imm = in.Op|asm.OpCode(asm.RegSource), g.reg(), 0
		}
		g.emit(in)
	}
}
