package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/testinput"
)

// FuzzParse feeds damaged objects to the parser and executes whatever comes
// out of it, with every instruction that has a relocation poisoned.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob(testinput.Path(f, "testdata", "bpf", "*.bpfel.o"))
	if err != nil || len(paths) == 0 {
		f.Fatal("no objects", err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse("fuzz", data)
		if (o == nil) == (err == nil) {
			t.Fatal("neither an object nor an error, or both")
		}
		if err != nil {
			return
		}
		for i := range o.programs {
			execute(o, i)
		}
	})
}

func execute(o *Object, i int) *explorer {
	x := explore(o, &o.programs[i], &inputs{
		features: features{rodata: true, partial: true, stImm: true, globals: true, lazyGlobals: i%2 == 0},
		relo:     func(int) (uint64, bool, bool) { return 0, true, false },
		ksym:     func(*extern) bool { return i%2 == 0 },
		kconfig:  func(*extern) value { return unknown },
		settable: func(string) bool { return false },
	})
	e := evaluation{o: o, pr: &o.programs[i]}
	e.external()
	o.slotsRead(&o.programs[i])
	return x
}

// TestCutShort parses every beginning of an object, in steps.
func TestCutShort(t *testing.T) {
	in := testinput.Named(t, "subprogs.bpfel.o")
	for n := 0; n < len(in.Data); n += 7 {
		if o, err := Parse("cut", in.Data[:n]); err == nil {
			for i := range o.programs {
				execute(o, i)
			}
		}
	}
}

// TestManyPaths executes a program with far more paths than can be told apart:
// it must end, and must not call unreachable what is reached.
func TestManyPaths(t *testing.T) {
	var code []insn
	for i := range 40 { // r6 gets a bit of an unknown number each time
		code = append(code,
			insn{op: opCall, imm: 7},
			insn{op: 0x67, dst: 6, imm: 1},
			insn{op: 0x15, dst: 0, off: 1, imm: int32(i)},
			insn{op: 0x07, dst: 6, imm: 1})
	}
	bad := len(code) + 1
	code = append(code, insn{op: 0x15, dst: 6, off: 1, imm: 12345}, insn{op: opCall, imm: 9999}, insn{op: opExit})
	o := &Object{funcs: []function{{insns: code}}, order: nil, btf: new(rawbtf.BTF)}
	o.funcs[0].findLeaders()
	o.programs = []program{{funcs: []int{0}}}
	x := explore(o, &o.programs[0], &inputs{settable: func(string) bool { return false }})
	if _, ok := x.seen[site{0, bad}]; !ok && !x.gaveUp {
		t.Error("what is reached counts as unreachable")
	}
	t.Logf("%d steps, gave up: %t", x.steps, x.gaveUp)
}
