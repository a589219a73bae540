package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/rawbtf"
	kernelkey "github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// runningKernel returns the kernel whose verifier is to judge. Without one the
// test is skipped.
func runningKernel(t *testing.T) *kernel {
	t.Helper()
	raw, err := os.ReadFile("/sys/kernel/btf/vmlinux")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root, and a kernel with BTF")
	}
	target, err := relolog.NewTarget("running", raw)
	if err != nil {
		t.Fatal(err)
	}
	if target.Order() != binary.LittleEndian {
		t.Skip("the programs are written for little-endian machines")
	}
	want := &wanted{names: make(map[string]int)}
	want.add(featureNames...)
	return inspect(target, want, kernelkey.Key{}, "")
}

// TestVerifier lets the running kernel's verifier judge random programs with
// one bad call each. None that it refuses for that call may count as guarded;
// that the other way round happens too is the price of knowing less.
func TestVerifier(t *testing.T) {
	k := runningKernel(t)
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	counts := make(map[string]int)
	for n := range 3000 {
		g := generator{Rand: rnd}
		o := g.object()
		bad := g.bad
		x := explore(o, &o.programs[0], &inputs{features: k.features, settable: func(string) bool { return false }})
		_, reached := x.seen[bad]
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
	var code bytes.Buffer
	for i := range o.funcs {
		for _, in := range o.funcs[i].insns {
			var b [8]byte
			b[0], b[1] = in.op, in.dst|in.src<<4
			binary.LittleEndian.PutUint16(b[2:], uint16(in.off))
			binary.LittleEndian.PutUint32(b[4:], uint32(in.imm))
			code.Write(b[:])
		}
	}
	insns, err := asm.AppendInstructions(nil, &code, binary.LittleEndian, "linux")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL", Instructions: insns})
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

func dump(o *Object) string {
	var b strings.Builder
	for i := range o.funcs {
		for k, in := range o.funcs[i].insns {
			fmt.Fprintf(&b, "%d/%d: op %02x dst %d src %d off %d imm %d\n", i, k, in.op, in.dst, in.src, in.off, in.imm)
		}
	}
	return b.String()
}

// generator makes random programs: numbers that are known or not in r6 to r9
// and on the stack, computed with, compared, and handed to a function.
type generator struct {
	*rand.Rand
	code []insn
	bad  site
}

func (g *generator) emit(in insn) { g.code = append(g.code, in) }

func (g *generator) reg() uint8 { return uint8(6 + g.IntN(4)) }

func (g *generator) imm() int32 {
	return []int32{0, 1, 2, 3, 4, 8, -1, 255, 1 << 16}[g.IntN(9)]
}

func (g *generator) object() *Object {
	for i := range int16(4) {
		g.emit(insn{op: 0xb7, dst: 6 + uint8(i), imm: g.imm()}) // mov
		g.emit(insn{op: 0x7b, dst: 10, src: 6 + uint8(i), off: -8 * (i + 1)})
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
			g.bad = site{0, len(g.code)}
			g.emit(insn{op: opCall, imm: 9999})
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
		g.code[j.insn].off = int16(to - j.insn - 1)
	}
	g.emit(insn{op: 0xb7})
	g.emit(insn{op: opExit})
	for i := range g.code {
		if in := &g.code[i]; in.op == opCall && in.src == pseudoCall {
			in.imm = int32(len(g.code) - i - 1)
			in.ref = ref{kind: refFunc, fn: 1}
		}
	}
	callee := []insn{
		{op: 0xbf, src: 1}, {op: 0x57, imm: g.imm()}, {op: 0x15, dst: 1, off: 1, imm: g.imm()}, {op: 0x07, imm: 1}, {op: opExit},
	}
	o := &Object{funcs: []function{{insns: g.code}, {insns: callee}}, order: binary.LittleEndian, btf: new(rawbtf.BTF)}
	for i := range o.funcs {
		o.funcs[i].findLeaders()
	}
	o.programs = []program{{fn: 0, funcs: []int{0, 1}}}
	calls := false
	for _, in := range g.code {
		calls = calls || in.src == pseudoCall && in.op == opCall
	}
	if !calls {
		o.funcs, o.programs[0].funcs = o.funcs[:1], []int{0}
	}
	return o
}

func (g *generator) condition() insn {
	ops := []uint8{0x10, 0x50, 0x20, 0x30, 0xa0, 0xb0, 0x60, 0x70, 0xc0, 0xd0, 0x40, 0x10, 0x50, 0x10, 0x50}
	in := insn{op: ops[g.IntN(len(ops))] | classJMP, dst: g.reg(), imm: g.imm()}
	if g.IntN(4) == 0 {
		in.op = in.op&0xf0 | classJMP32
	}
	if g.IntN(4) == 0 {
		in.op, in.src, in.imm = in.op|srcReg, g.reg(), 0
	}
	return in
}

func (g *generator) step() {
	slot := func() int16 { return int16(-8 * (1 + g.IntN(4))) }
	sizes := []uint8{0x18, 0x18, 0x00, 0x08, 0x10}
	switch g.IntN(8) {
	case 0: // something unknown
		g.emit(insn{op: opCall, imm: 7})
		g.emit(insn{op: 0xbf, dst: g.reg(), src: 0})
	case 1: // store
		in := insn{op: 0x63&^0x18 | sizes[g.IntN(5)], dst: 10, src: g.reg(), off: slot()}
		if in.op&0x18 != 0x18 && g.IntN(2) == 0 {
			in.off += 4
			if in.op&0x18 == 0 && in.off%4 != 0 {
				in.off &^= 3
			}
		}
		if g.IntN(4) == 0 {
			in.op, in.src, in.imm = in.op&^7|classST, 0, g.imm()
		}
		g.emit(in)
	case 2: // load
		in := insn{op: 0x61&^0x18 | sizes[g.IntN(5)], dst: g.reg(), src: 10, off: slot()}
		if in.op&0x18 != 0x18 && g.IntN(3) == 0 {
			in.off += 4
		}
		g.emit(in)
	case 3:
		g.emit(insn{op: 0xbf, dst: 1, src: g.reg()})
		g.emit(insn{op: opCall, src: pseudoCall})
		g.emit(insn{op: 0xbf, dst: g.reg(), src: 0})
	case 4: // mov
		g.emit(insn{op: []uint8{0xb7, 0xb4}[g.IntN(2)], dst: g.reg(), imm: g.imm()})
	default:
		ops := []uint8{0x00, 0x10, 0x20, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xc0, 0xb0, 0x50, 0x40}
		in := insn{op: ops[g.IntN(len(ops))] | classALU64, dst: g.reg(), imm: g.imm()}
		if g.IntN(3) == 0 {
			in.op = in.op&0xf0 | classALU
		}
		if op := in.op & 0xf0; op == 0x60 || op == 0x70 || op == 0xc0 {
			in.imm = int32(g.IntN(32))
		}
		if g.IntN(2) == 0 {
			in.op, in.src, in.imm = in.op|srcReg, g.reg(), 0
		}
		g.emit(in)
	}
}
