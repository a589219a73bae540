// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// withModules returns a kernel in the notation of testbtf. modules are named m0, m1, …
func withModules(tb testing.TB, vmlinux string, modules ...string) *corpus.Kernel {
	tb.Helper()
	k := &corpus.Kernel{Name: "kernel", BTF: testbtf.Types(tb, binary.LittleEndian, vmlinux)}
	for i, types := range modules {
		k.Modules = append(k.Modules, corpus.Module{Name: fmt.Sprint("m", i), BTF: testbtf.Module(tb, binary.LittleEndian, vmlinux, types)})
	}
	return k
}

// judge minimizes a kernel, compares the decisions of loaders on it with those on the output, and returns both.
func judge(tb testing.TB, k *corpus.Kernel, o Object) (out []byte, compared *Comparison, err error) {
	tb.Helper()
	var target core.Target
	if err := k.Load(tb.Context(), &target, k.Name); err != nil {
		tb.Fatal(err)
	}
	res, err := minimize.New([]*core.Object{o.Object}, minimize.Options{}).Minimize(tb.Context(), &target)
	if err != nil {
		return nil, nil, err
	}
	return res.BTF, compare(tb, k, res.BTF, Config{Objects: []Object{o}}), nil
}

func compare(tb testing.TB, k *corpus.Kernel, out []byte, cfg Config) *Comparison {
	tb.Helper()
	j := NewJudge(tb.Context(), cfg)
	if err := j.Load(tb.Context(), k); err != nil {
		tb.Fatal(err)
	}
	compared, err := j.Compare(tb.Context(), out)
	if err != nil {
		tb.Fatal(err)
	}
	return compared
}

// TestModules minimizes kernels whose modules have types that vmlinux has, too. cilium/ebpf looks at all of them, libbpf and aya
// at vmlinux's.
func TestModules(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, c := range []struct {
		name, local, asks string
		operands          []uint64
		vmlinux           string
		modules           []string
		refused           bool // loaders cannot all decide as on the full BTF
	}{
		{
			name:     "a field that only a module's struct has",
			local:    "struct opts 8: a int 0, b int 4",
			asks:     "byte_off struct opts.b",
			operands: []uint64{4},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 12: a int 0, b int 8"},
		},
		{
			name:     "a module's struct makes it ambiguous",
			local:    "struct opts 8: a int 0, b int 4",
			asks:     "byte_off struct opts.a",
			operands: []uint64{0},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 12: x int 0, a int 8"},
		},
		{
			name:     "the first of two that disagree is the only one in vmlinux",
			local:    "struct opts 8: a int 0, b int 4",
			asks:     "byte_off struct opts.a\n byte_off struct opts.b",
			operands: []uint64{0, 4},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 12: x int 0, a int 8", "struct opts 12: a int 4, b int 8"},
		},
		{
			name:     "a copy of vmlinux's struct",
			local:    "struct opts 8: a int 0",
			asks:     "byte_off struct opts.a\n target_type_id struct opts",
			operands: []uint64{0, 5},
			vmlinux:  "struct opts 4: a int 0",
			modules:  []string{"struct opts 4: a int 0", "struct opts 4: a int 0"},
		},
		{
			name:     "an enumerator",
			local:    "enum e 4: A 1, B 2",
			asks:     "enumval_value enum e::B",
			operands: []uint64{2},
			vmlinux:  "enum e 4: A 1",
			modules:  []string{"enum e 4: A 1, B 7"},
		},
		{
			name:     "a type that only modules have",
			local:    "struct opts 8: a int 0",
			asks:     "byte_off struct opts.a\n target_type_id struct opts\n type_exists struct opts",
			operands: []uint64{0, 5, 1},
			vmlinux:  "struct other 4: a int 0",
			modules:  []string{"struct opts 12: x int 0, a int 8"},
		},
		{
			name:     "the size of a typedef",
			local:    "typedef size int",
			asks:     "type_size size",
			operands: []uint64{4},
			vmlinux:  "typedef size int",
			modules:  []string{"typedef size u64"},
			refused:  true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := testbtf.Object(t, binary.LittleEndian, c.local, c.asks, c.operands...)
			o, err := core.ParseObject("o", data)
			if err != nil {
				t.Fatal(err)
			}
			_, compared, err := judge(t, withModules(t, c.vmlinux, c.modules...), Object{Object: o, Data: data})
			switch {
			case errors.Is(err, minimize.ErrProof) && c.refused:
				if !strings.Contains(err.Error(), "kernel") {
					t.Errorf("the error does not name the kernel: %v", err)
				}
			case err != nil:
				t.Error(err)
			case c.refused:
				t.Error("not refused")
			case compared.Fixups == 0 || len(compared.Differences) > 0:
				t.Errorf("%+v", compared)
			}
		})
	}
}

// TestDirEntry relocates a field of btrfs's struct dir_entry. vmlinux has a struct of that name without the field.
func TestDirEntry(t *testing.T) {
	raceflag.SkipSerial(t)
	if os.Getenv("BTFGEN_CORPUS") == "" {
		t.Skip("needs BTFGEN_CORPUS")
	}
	k := testinput.Kernels(t, "x86_64/6.1.0-47-amd64")[0]
	data := testbtf.Object(t, binary.LittleEndian, "struct dir_entry 8: ino u64 0", "byte_off struct dir_entry.ino", 0)
	o, err := core.ParseObject("o", data)
	if err != nil {
		t.Fatal(err)
	}
	out, compared, err := judge(t, &k, Object{Object: o, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if compared.Fixups != 1 || len(compared.Differences) > 0 {
		t.Errorf("%+v", compared)
	}
	target, err := testinput.NewKernel("output", out)
	if err != nil {
		t.Fatal(err)
	}
	c := readCilium(t.Context(), o, data)
	small, err := readCiliumTarget(t.Context(), target, out, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := c.groups[0].relocate(small, c.order); f.text(0) != "byte_off=0->0" {
		t.Errorf("on the output: %s", f.text(0))
	}
}

// randomPair is a random kernel with modules and an object for it, in the notation of testbtf.
type randomPair struct {
	rnd            *rand.Rand
	vmlinux, local string
	modules        []string
	programs       []string // relocations of each
	functions      string
}

// pick returns one of several strings.
func (p *randomPair) pick(of ...string) string { return of[p.rnd.IntN(len(of))] }

// types returns some types of few names.
func (p *randomPair) types(n int) string {
	var b strings.Builder
	count := make(map[string]int)
	for range n {
		kind, name := p.pick("struct", "struct", "struct", "union", "enum", "typedef"), p.pick("req", "req", "req", "req___x", "bar")
		if kind == "enum" {
			name = "e"
		}
		// The text after # is not part of the name.
		count[name]++
		fmt.Fprintf(&b, "%s %s#%d", kind, name, count[name])
		switch kind {
		case "enum":
			fmt.Fprintf(&b, " 4:%s\n", p.fields("A %d", "B %d", "C %d"))
		case "typedef":
			fmt.Fprintf(&b, " %s\n", p.pick("int", "u64", "*void"))
		default:
			fmt.Fprintf(&b, " %d:%s\n", 12+4*p.rnd.IntN(3), p.fields("a "+p.typ()+" %d", "b "+p.typ()+" %d", "c "+p.typ()+" %d"))
		}
	}
	return b.String()
}

func (p *randomPair) typ() string {
	return p.pick("u32", "u32", "u32", "int", "u64", "u8", "*void", "u32[2]")
}

// fields returns some of the fields, at offsets or with values that are mostly those of their places.
func (p *randomPair) fields(all ...string) string {
	out, sep := "", " "
	for i, f := range all {
		if p.rnd.IntN(4) > 0 {
			out += sep + fmt.Sprintf(f, 4*i+4*(p.rnd.IntN(6)/5))
			sep = ", "
		}
	}
	return out
}

func (p *randomPair) asks(n int) string {
	var b strings.Builder
	for range n {
		switch field := p.pick("a", "b", "c"); p.rnd.IntN(12) {
		case 0:
			b.WriteString(p.pick("type_exists", "type_size", "type_matches") + " struct req\n")
		case 1:
			if p.rnd.IntN(4) == 0 {
				b.WriteString("target_type_id struct req\n")
			}
		case 2:
			b.WriteString(p.pick("enumval_value", "enumval_exists") + " enum e::" + p.pick("A", "B") + "\n")
		case 3:
			b.WriteString("field_exists struct req." + field + "\n")
		case 4:
			b.WriteString(p.pick("byte_sz", "signed", "rshift_u64") + " struct req." + field + "\n")
		case 5:
			b.WriteString("type_exists bar#2\n")
		case 6:
			b.WriteString("byte_off struct bar." + p.pick("a", "b") + "\n")
		default:
			b.WriteString("byte_off struct req." + field + "\n")
		}
	}
	return b.String()
}

func newRandomPair(rnd *rand.Rand, modules int) *randomPair {
	p := &randomPair{rnd: rnd, local: "struct req 12: a u32 0, b u32 4, c u32 8\nstruct bar 8: a u32 0, b u64 4\nenum e 4: A 0, B 4\ntypedef bar#2 int"}
	p.vmlinux = p.types(1 + rnd.IntN(4))
	for range modules {
		p.modules = append(p.modules, p.types(1+rnd.IntN(3)))
	}
	for i := range 1 + rnd.IntN(3) {
		text := fmt.Sprintf("program p%d\n%s", i, p.asks(1+rnd.IntN(4)))
		if rnd.IntN(3) == 0 {
			text += "call f0\n"
		}
		p.programs = append(p.programs, text)
	}
	p.functions = "function f0\n" + p.asks(1)
	return p
}

func (p *randomPair) String() string {
	return fmt.Sprintf("vmlinux\n%smodules\n%s\n%s%s", p.vmlinux, strings.Join(p.modules, "--\n"), strings.Join(p.programs, ""), p.functions)
}

// object returns the object with some of the programs. Its instructions hold the local values.
func (p *randomPair) object(t *testing.T, programs ...string) Object {
	t.Helper()
	asks := strings.Join(programs, "") + p.functions
	parse := func(operands ...uint64) Object {
		data := testbtf.Object(t, binary.LittleEndian, p.local, asks, operands...)
		o, err := core.ParseObject("o", data)
		if err != nil {
			t.Fatal(err)
		}
		return Object{Object: o, Data: data}
	}
	o := parse()
	log, err := core.NewSet(o.Object).Run(t.Context(), core.NoTypes())
	if err != nil {
		t.Fatal(err)
	}
	var operands []uint64
	for i := range log.Entries {
		operands = append(operands, log.Entries[i].Old)
	}
	return parse(operands...)
}

// TestRandomModules minimizes random kernels with and without modules for random objects. cilium/ebpf's own code decides on
// vmlinux with modules and on the output. libbpf's decisions are also compared where one program is loaded. Only kernels with
// modules may be refused.
func TestRandomModules(t *testing.T) {
	raceflag.SkipSerial(t)
	rounds := 400
	if slow.Enabled() {
		rounds = 5000
	}
	if slow.Night() {
		rounds = 20000
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	refused, compared := 0, 0
	for round := range rounds {
		p := newRandomPair(rnd, rnd.IntN(4))
		o := p.object(t, p.programs...)
		k := withModules(t, p.vmlinux, p.modules...)
		out, all, err := judge(t, k, o)
		switch {
		case errors.Is(err, minimize.ErrProof) && len(p.modules) > 0:
			refused++
			continue
		case err != nil:
			t.Errorf("round %d: %v\n%s", round, err, p)
			continue
		}
		compared += all.Fixups
		differ := all.Differences
		for _, program := range p.programs {
			differ = append(differ, compare(t, k, out, Config{Objects: []Object{p.object(t, program)}, Loader: Libbpf}).Differences...)
		}
		for _, d := range differ {
			t.Errorf("round %d: %+v\n%s", round, d, p)
		}
	}
	t.Logf("%d pairs, %d refused; %d decisions of cilium/ebpf compared", rounds, refused, compared)
	if compared < rounds || refused > rounds/4 {
		t.Error("most were not compared")
	}
}
