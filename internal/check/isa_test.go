package check

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/testinput"
	kernelkey "github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// instructions are those of each group as clang and the kernel encode them,
// and what looks alike but is older. They work on r7 and on the 8 bytes at r10-8.
var instructions = []struct {
	name   string // "" for old ones
	in     insn
	group  isa
	static bool
}{
	{"32-bit jump", insn{op: 0x16, dst: 7}, isaJMP32, true},
	{"32-bit jump", insn{op: 0x5e, dst: 7, src: 8}, isaJMP32, true},
	{"atomic operation", insn{op: 0xdb, dst: 10, src: 7, off: -8, imm: 0x01}, isaAtomics, true}, // fetch_add
	{"atomic operation", insn{op: 0xc3, dst: 10, src: 7, off: -8, imm: 0x50}, isaAtomics, true}, // and
	{"atomic operation", insn{op: 0xdb, dst: 10, src: 7, off: -8, imm: 0xe1}, isaAtomics, true}, // xchg
	{"atomic operation", insn{op: 0xdb, dst: 10, src: 7, off: -8, imm: 0xf1}, isaAtomics, true}, // cmpxchg
	{"sign-extending load", insn{op: 0x91, dst: 7, src: 10, off: -8}, isaV4, true},
	{"sign-extending load", insn{op: 0x81, dst: 7, src: 10, off: -8}, isaV4, true},
	{"sign-extending move", insn{op: 0xbf, dst: 7, src: 8, off: 8}, isaV4, false},
	{"sign-extending move", insn{op: 0xbf, dst: 7, src: 8, off: 32}, isaV4, false},
	{"sign-extending move", insn{op: 0xbc, dst: 7, src: 8, off: 16}, isaV4, false},
	{"bswap", insn{op: 0xd7, dst: 7, imm: 32}, isaV4, true},
	{"signed division", insn{op: 0x34, dst: 7, off: 1, imm: 3}, isaV4, false},
	{"signed division", insn{op: 0x9f, dst: 7, src: 8, off: 1}, isaV4, false},
	{"gotol", insn{op: 0x06}, isaV4, true},
	{"may_goto", insn{op: 0xe5, off: 1}, isaMayGoto, true},
	{"addr_space_cast", insn{op: 0xbf, dst: 7, src: 8, off: 1, imm: 1}, isaArena, false},
	{"load-acquire", insn{op: 0xdb, dst: 7, src: 10, off: -8, imm: 0x100}, isaAcqRel, false},
	{"load-acquire", insn{op: 0xd3, dst: 7, src: 10, off: -8, imm: 0x100}, isaAcqRel, true},
	{"store-release", insn{op: 0xc3, dst: 10, src: 7, off: -8, imm: 0x110}, isaAcqRel, false},

	{in: insn{op: 0xdb, dst: 10, src: 7, off: -8}}, // lock *(u64 *)(r10 - 8) += r7
	{in: insn{op: 0xdc, dst: 7, imm: 32}},          // be32
	{in: insn{op: 0xd4, dst: 7, imm: 16}},          // le16
	{in: insn{op: 0x37, dst: 7, imm: 3}},           // r7 /= 3
	{in: insn{op: 0xbc, dst: 7, src: 8}},           // w7 = w8
	{in: insn{op: 0x15, dst: 7}},                   // if r7 == 0 goto
	{in: insn{op: 0x05}},                           // goto
	{in: insn{op: 0x79, dst: 7, src: 10, off: -8}}, // r7 = *(u64 *)(r10 - 8)
	{in: insn{op: 0x7b, dst: 10, src: 7, off: -8}}, // *(u64 *)(r10 - 8) = r7
	{in: insn{op: 0x85, imm: 7}},                   // call bpf_get_prandom_u32
	{in: insn{op: 0x65, dst: 7, off: 0, imm: 4}},   // if r7 s> 4 goto
}

func TestNewer(t *testing.T) {
	for _, c := range instructions {
		n, ok := c.in.newer()
		if want := (newer{c.group, c.name, c.static}); ok != (c.name != "") || ok && n != want {
			t.Errorf("op %#02x off %d imm %#x: %+v, %t, want %+v", c.in.op, c.in.off, c.in.imm, n, ok, want)
		}
	}
}

// around makes a program of an instruction: where it is reached, or behind a
// branch that is never taken.
func around(in insn, reached bool) *Object {
	code := []insn{
		{op: 0xb7, dst: 6, imm: 1},               // r6 = 1
		{op: opCall, imm: 7},                     // r0 = unknown
		{op: 0xbf, dst: 7},                       // r7 = r0
		{op: 0xbf, dst: 8},                       // r8 = r0
		{op: 0x47, dst: 8, imm: 1},               // r8 |= 1
		{op: 0x7b, dst: 10, src: 7, off: -8},     // spill r7
		{op: 0x15, dst: 6, off: 1, imm: 1},       // if r6 == 1 goto +1
		in,                                       // 7
		{op: 0xb7, dst: 0, imm: 0}, {op: opExit}, // return 0
	}
	if reached {
		code[6].op = 0x55
	}
	o := &Object{funcs: []function{{insns: code}}, order: binary.LittleEndian, btf: new(rawbtf.BTF), relo: new(relolog.Object)}
	o.funcs[0].findLeaders()
	o.programs = []program{{fn: 0, funcs: []int{0}, section: "socket"}}
	return o
}

// judgeCode is the verdict on the code of an object's first program.
func judgeCode(o *Object, k *kernel) (Status, []Finding) {
	e := evaluation{o: o, pr: &o.programs[0], k: k, log: new(relolog.Log), opts: new(Options)}
	l := e.code()
	return worst(l), l
}

// since is when the groups came, by the kernel's history.
var since = [isaCount]string{
	isaJMP32: "5.1", isaAtomics: "5.12", isaV4: "6.6", isaMayGoto: "6.9", isaArena: "6.9", isaAcqRel: "6.15",
}

// TestInstructionVerdicts wants each instruction refused on the kernels of the
// corpus before it came, and on no later one.
func TestInstructionVerdicts(t *testing.T) {
	want := &wanted{names: make(map[string]int)}
	want.add(featureNames...)
	counts := make(map[Status]int)
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		release := it.Key.Release
		if it.Key.ID != "debian" || release == "" {
			return
		}
		tg, err := relolog.NewTarget(it.Name, it.BTF)
		if err != nil {
			t.Fatal(err)
		}
		k := inspect(tg, want, it.Key, it.Arch)
		for _, c := range instructions {
			for _, reached := range []bool{true, false} {
				status := OK
				switch old := c.name != "" && kernelkey.CompareVersions(release, since[c.group]) < 0; {
				case !old:
				case c.name == gotol && kernelkey.CompareVersions(release, "5.15") >= 0:
					status = MayFail
				case reached, c.static, c.group == isaAcqRel && kernelkey.CompareVersions(release, "5.12") < 0:
					status = Fails
				default:
					status = Guarded
				}
				got, l := judgeCode(around(c.in, reached), k)
				if got != status {
					t.Errorf("%s: %s %#02x, reached %t: %s, want %s: %v", it.Name, c.name, c.in.op, reached, got, status, l)
				}
				counts[got]++
			}
		}
	})
	t.Log(counts)
	if counts[OK] == 0 || counts[Fails] == 0 || counts[Guarded] == 0 {
		t.Error("not every verdict came up")
	}
}

// TestInstructionReleases is what becomes of kernels whose BTF and name do not
// go together, or do not tell.
func TestInstructionReleases(t *testing.T) {
	all := [len(enumNames)]map[string]uint64{
		enumHelper: {"BPF_FUNC_spin_lock": 93}, enumMap: {"BPF_MAP_TYPE_ARENA": 33}, enumAttach: {"BPF_TRACE_UPROBE_MULTI": 48},
	}
	for _, c := range []struct {
		release string
		enums   [len(enumNames)]map[string]uint64
		group   isa
		want    presence
	}{
		{"6.12.1", all, isaV4, present},
		{"", all, isaV4, present},
		{"5.14.0-427.el9", all, isaV4, older},
		{"5.14.0-427.el9", all, isaArena, present},
		{"6.12.1", all, isaAtomics, lacking},
		{"6.12.1", all, isaMayGoto, lacking},
		{"6.12.1", [len(enumNames)]map[string]uint64{}, isaV4, present},
		{"5.10.1", [len(enumNames)]map[string]uint64{}, isaV4, oldUntold},
		{"", [len(enumNames)]map[string]uint64{}, isaV4, untold},
	} {
		k := &kernel{enums: c.enums, version: versionOf(kernelkey.Key{Release: c.release})}
		if got := k.knows(c.group); got != c.want {
			t.Errorf("%q: %s: %d, want %d", c.release, isas[c.group].name, got, c.want)
		}
	}
	k := &kernel{version: versionOf(kernelkey.Key{Release: "5.10.1"})}
	for i, want := range []Status{MayFail, Unknown} {
		if got, l := judgeCode(around(insn{op: 0xd7, dst: 7, imm: 32}, true), k); got != want {
			t.Errorf("%d: %s, want %s: %v", i, got, want, l)
		}
		k.version = versionOf(kernelkey.Key{})
	}
}

// TestVerifierInstructions lets the running kernel's verifier judge each
// instruction, reached and not.
func TestVerifierInstructions(t *testing.T) {
	k := runningKernel(t)
	counts := make(map[string]int)
	for _, c := range instructions {
		for _, reached := range []bool{true, false} {
			o := around(c.in, reached)
			got, l := judgeCode(o, k)
			err := load(o)
			if c.group == isaArena && got < Unknown && reached {
				continue // needs an arena
			}
			switch {
			case got == Fails && err == nil, got < Unknown && err != nil:
				t.Errorf("%s %#02x imm %#x, reached %t: %s, but loading says %v: %v", c.name, c.in.op, c.in.imm, reached, got, err, l)
			case got == Fails && !slices.ContainsFunc([]string{"reserved field", "unknown opcode", "invalid atomic", "invalid BPF_", "unknown insn"}, func(s string) bool { return strings.Contains(err.Error(), s) }):
				t.Errorf("%s %#02x imm %#x, reached %t: refused, but not for the instruction: %v", c.name, c.in.op, c.in.imm, reached, err)
			}
			counts[got.String()]++
		}
	}
	t.Log(counts)
}

// load loads the first function of an object.
func load(o *Object) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	var code bytes.Buffer
	for _, in := range o.funcs[0].insns {
		code.Write([]byte{in.op, in.dst | in.src<<4})
		_ = binary.Write(&code, binary.LittleEndian, in.off)
		_ = binary.Write(&code, binary.LittleEndian, in.imm)
	}
	insns, err := asm.AppendInstructions(nil, &code, binary.LittleEndian, "linux")
	if err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL", Instructions: insns})
	if err != nil {
		return err
	}
	return p.Close()
}
