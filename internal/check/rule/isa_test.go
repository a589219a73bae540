// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// instructions are those of each group as clang and the kernel encode them,
// and what looks alike but is older. They work on r7 and on the 8 bytes at r10-8.
var instructions = []struct {
	name   string // "" for old ones
	in     insn
	static bool
}{
	{"32-bit jump", insn{Op: 0x16, Dst: 7}, true},
	{"32-bit jump", insn{Op: 0x5e, Dst: 7, Src: 8}, true},
	{"atomic operation", insn{Op: 0xdb, Dst: 10, Src: 7, Off: -8, Imm: 0x01}, true}, // fetch_add
	{"atomic operation", insn{Op: 0xc3, Dst: 10, Src: 7, Off: -8, Imm: 0x50}, true}, // and
	{"atomic operation", insn{Op: 0xdb, Dst: 10, Src: 7, Off: -8, Imm: 0xe1}, true}, // xchg
	{"atomic operation", insn{Op: 0xdb, Dst: 10, Src: 7, Off: -8, Imm: 0xf1}, true}, // cmpxchg
	{"sign-extending load", insn{Op: 0x91, Dst: 7, Src: 10, Off: -8}, true},
	{"sign-extending load", insn{Op: 0x81, Dst: 7, Src: 10, Off: -8}, true},
	{"sign-extending move", insn{Op: 0xbf, Dst: 7, Src: 8, Off: 8}, false},
	{"sign-extending move", insn{Op: 0xbf, Dst: 7, Src: 8, Off: 32}, false},
	{"sign-extending move", insn{Op: 0xbc, Dst: 7, Src: 8, Off: 16}, false},
	{"bswap", insn{Op: 0xd7, Dst: 7, Imm: 32}, true},
	{"signed division", insn{Op: 0x34, Dst: 7, Off: 1, Imm: 3}, false},
	{"signed division", insn{Op: 0x9f, Dst: 7, Src: 8, Off: 1}, false},
	{"gotol", insn{Op: 0x06}, true},
	{"may_goto", insn{Op: 0xe5, Off: 1}, true},
	{"addr_space_cast", insn{Op: 0xbf, Dst: 7, Src: 8, Off: 1, Imm: 1}, false},
	{"load-acquire", insn{Op: 0xdb, Dst: 7, Src: 10, Off: -8, Imm: 0x100}, false},
	{"load-acquire", insn{Op: 0xd3, Dst: 7, Src: 10, Off: -8, Imm: 0x100}, true},
	{"store-release", insn{Op: 0xc3, Dst: 10, Src: 7, Off: -8, Imm: 0x110}, false},

	{in: insn{Op: 0xdb, Dst: 10, Src: 7, Off: -8}}, // lock *(u64 *)(r10 - 8) += r7
	{in: insn{Op: 0xdc, Dst: 7, Imm: 32}},          // be32
	{in: insn{Op: 0xd4, Dst: 7, Imm: 16}},          // le16
	{in: insn{Op: 0x37, Dst: 7, Imm: 3}},           // r7 /= 3
	{in: insn{Op: 0xbc, Dst: 7, Src: 8}},           // w7 = w8
	{in: insn{Op: 0x15, Dst: 7}},                   // if r7 == 0 goto
	{in: insn{Op: 0x05}},                           // goto
	{in: insn{Op: 0x79, Dst: 7, Src: 10, Off: -8}}, // r7 = *(u64 *)(r10 - 8)
	{in: insn{Op: 0x7b, Dst: 10, Src: 7, Off: -8}}, // *(u64 *)(r10 - 8) = r7
	{in: insn{Op: 0x85, Imm: 7}},                   // call bpf_get_prandom_u32
	{in: insn{Op: 0x65, Dst: 7, Off: 0, Imm: 4}},   // if r7 s> 4 goto
}

func TestNewer(t *testing.T) {
	for _, c := range instructions {
		n, ok := c.in.Newer()
		if ok != (c.name != "") || n.Name != c.name || n.Static != c.static {
			t.Errorf("op %#02x off %d imm %#x: %+v, %t, want %s, %t", c.in.Op, c.in.Off, c.in.Imm, n, ok, c.name, c.static)
		}
		if ok && facts.Instruction(n.Name) == facts.Every {
			t.Errorf("%s is no fact", n.Name)
		}
	}
}

// around makes a program of an instruction: where it is reached, or behind a
// branch that is never taken.
func around(in insn, reached bool, section string) *Object {
	code := []insn{
		{Op: 0xb7, Dst: 6, Imm: 1},                      // r6 = 1
		{Op: bpfobj.OpCall, Imm: 7},                     // r0 = unknown
		{Op: 0xbf, Dst: 7},                              // r7 = r0
		{Op: 0xbf, Dst: 8},                              // r8 = r0
		{Op: 0x47, Dst: 8, Imm: 1},                      // r8 |= 1
		{Op: 0x7b, Dst: 10, Src: 7, Off: -8},            // spill r7
		{Op: 0x15, Dst: 6, Off: 1, Imm: 1},              // if r6 == 1 goto +1
		in,                                              // 7
		{Op: 0xb7, Dst: 0, Imm: 0}, {Op: bpfobj.OpExit}, // return 0
	}
	if reached {
		code[6].Op = 0x55
	}
	return NewObject("", &bpfobj.Code{
		Order:    binary.LittleEndian,
		Funcs:    []bpfobj.Function{{Insns: code}},
		Programs: []bpfobj.Program{{Funcs: []int{0}, Section: section, Attach: bpfobj.SectionOf(section)}},
	}, nil)
}

// judgeCode is the verdict on the code of an object's first program.
func judgeCode(o *Object, k *Inventory) (Status, []Finding) {
	e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
	l := e.onCode(context.Background())
	return Worst(l), l
}

// TestInstructionVerdicts wants each instruction refused on the kernels of the
// corpus before it came, and on no later one. Where no witness decides, an older kernel may refuse it.
func TestInstructionVerdicts(t *testing.T) {
	raceflag.SkipSerial(t)
	want := &Wanted{names: make(map[string]int)}
	want.add(featureNames()...)
	counts := make(map[Status]int)
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		release := it.Key.Release
		if it.Key.ID != "debian" || release == "" {
			return
		}
		k := inspectItem(t, it, want)
		before := func(name string) bool {
			return name != "" && kernel.CompareVersions(release, facts.Instruction(name).Since().String()) < 0
		}
		for _, c := range instructions {
			for _, reached := range []bool{true, false} {
				status := OK
				switch n, _ := c.in.Newer(); {
				case !before(c.name):
				case !reached && !c.static && (!n.Atomic || !before("atomic operation")):
					status = Guarded
				case k.facts.Has(facts.Instruction(c.name)).Decided == ByRelease:
					status = MayFail
				default:
					status = Fails
				}
				got, l := judgeCode(around(c.in, reached, "socket"), k)
				if got != status {
					t.Errorf("%s: %s %#02x, reached %t: %s, want %s: %v", it.Name, c.name, c.in.Op, reached, got, status, l)
				}
				counts[got]++
			}
		}
	})
	t.Log(counts)
	if counts[OK] == 0 || counts[Fails] == 0 || counts[Guarded] == 0 || counts[MayFail] == 0 {
		t.Error("not every verdict came up")
	}
}

// TestVerifierInstructions lets the running kernel's verifier judge each
// instruction, reached and not.
func TestVerifierInstructions(t *testing.T) {
	k := runningKernel(t)
	counts := make(map[string]int)
	for _, c := range instructions {
		if c.name == "addr_space_cast" { // needs an arena, which is not judged
			continue
		}
		for _, reached := range []bool{true, false} {
			o := around(c.in, reached, "socket")
			got, l := judgeCode(o, k)
			err := load(t, o)
			switch {
			case got == Fails && err == nil, got < Unknown && err != nil:
				t.Errorf("%s %#02x imm %#x, reached %t: %s, but loading says %v: %v", c.name, c.in.Op, c.in.Imm, reached, got, err, l)
			case got == Fails && !slices.ContainsFunc([]string{"reserved field", "unknown opcode", "invalid atomic", "invalid BPF_", "unknown insn"}, func(s string) bool { return strings.Contains(err.Error(), s) }):
				t.Errorf("%s %#02x imm %#x, reached %t: refused, but not for the instruction: %v", c.name, c.in.Op, c.in.Imm, reached, err)
			}
			counts[got.String()]++
		}
	}
	t.Log(counts)
}

// load loads the first function of an object.
func load(t *testing.T, o *Object) error {
	t.Helper()
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL", Instructions: assemble(t, o)})
	if err != nil {
		return err
	}
	return p.Close()
}

// TestPoisonedCall checks that a call made invalid by a loader or library is reported as such, not as a missing helper.
func TestPoisonedCall(t *testing.T) {
	k := &Inventory{whole: true, want: new(Wanted), helpers: map[int64]bool{1: true, 7: true}}
	k.settle()
	for reached, want := range map[bool]Status{true: Fails, false: Guarded} {
		got, l := judgeCode(around(insn{Op: bpfobj.OpCall, Imm: 0xbad2310}, reached, "kprobe"), k)
		if got != want || len(l) != 1 || l[0].Code != HelperPoisoned {
			t.Errorf("reached %v: %s, want %s: %v", reached, got, want, l)
		}
	}
}
