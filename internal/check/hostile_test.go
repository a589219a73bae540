// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

const absentHelper, presentHelper = 400, int64(asm.FnGetPrandomU32)

func helperCall(n int64) insn { return insn{Op: bpfobj.OpCall, Imm: n} }

// crowded fills the stack with known bytes, takes paths on which they differ in ever more places, and
// calls an absent helper.
func crowded() (code []insn) {
	for off := -512; off < 0; off++ {
		code = append(code, insn{Op: asm.StoreImmOp(asm.Byte), Dst: asm.RFP, Off: int16(off)})
	}
	for i := range 60 {
		code = append(code,
			helperCall(presentHelper),
			insn{Op: asm.JSet.Op(asm.ImmSource), Dst: 0, Imm: 1, Off: 1},
			insn{Op: asm.StoreImmOp(asm.Byte), Dst: asm.RFP, Off: int16(-8 - 8*i), Imm: 1})
	}
	return append(code,
		insn{Op: asm.Mov.Op(asm.RegSource), Dst: 1, Src: asm.RFP}, // code may read what is on the stack
		insn{Op: asm.JNE.Op(asm.ImmSource), Dst: asm.RFP, Off: 1},
		helperCall(absentHelper),
		insn{Op: bpfobj.OpExit})
}

// guarded is n instructions that nothing reaches, and absent helpers at the end
// of them.
func guarded(n, absent int) []insn {
	return slices.Concat(
		[]insn{{Op: asm.Mov.Op(asm.ImmSource), Dst: 6}, {Op: asm.JEq.Op(asm.ImmSource), Dst: 6, Off: 1}, {Op: bpfobj.OpGotol, Imm: 1}, {Op: bpfobj.OpGotol, Imm: int64(n + absent)}},
		slices.Repeat([]insn{{Op: asm.Add.Op(asm.ImmSource), Dst: 6}}, n),
		slices.Repeat([]insn{helperCall(absentHelper)}, absent),
		[]insn{{Op: bpfobj.OpExit}})
}

// settings tests n variables of the kernel's configuration, each before a helper
// that is absent.
func settings(n int) (code []insn, externs []bpfobj.Extern) {
	for i := range n {
		externs = append(externs, bpfobj.Extern{Name: fmt.Sprintf("LINUX_%d", i), Kind: bpfobj.ExternKconfig, Weak: true, Size: 8, Type: 5}) // types 1 to 4 are int, u8, u32 and u64
		code = append(code,
			insn{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefExtern, i)}, insn{},
			insn{Op: asm.LoadMemOp(asm.DWord), Dst: 0, Src: 1},
			insn{Op: asm.JNE.Op(asm.ImmSource), Dst: 0, Imm: 1, Off: 1},
			helperCall(absentHelper+int64(i)))
	}
	return append(code, insn{Op: bpfobj.OpExit}), externs
}

// differing calls n helpers that are all absent, each another one.
func differing(n int) (code []insn) {
	for i := range n {
		code = append(code, helperCall(absentHelper+int64(i)))
	}
	return append(code, insn{Op: bpfobj.OpExit})
}

// objectOf is an object of n programs that have the same code.
func objectOf(t *testing.T, n int, code []insn, externs ...bpfobj.Extern) *rule.Object {
	o := &bpfobj.Code{Externs: externs}
	for i := range n {
		o.Funcs = append(o.Funcs, bpfobj.Function{Name: fmt.Sprint("p", i), Insns: code})
		o.Programs = append(o.Programs, bpfobj.Program{Fn: i, Funcs: []int{i}})
	}
	return rule.NewObject("hostile", o, noRecords(t))
}

// different makes the programs of an object differ, so that none shares the exploration of another one.
func different(o *rule.Object) *rule.Object {
	for i := range o.Funcs {
		code := slices.Clone(o.Funcs[i].Insns)
		code[0].Imm = int64(i) // store i
		o.Funcs[i].Insns = code
	}
	return o
}

// TestHostile bounds what hostile objects cost on a kernel that has one helper,
// and wants a verdict on the last program of each all the same.
func TestHostile(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	types := new(btf.BTF)
	if err := types.Load(t.Context(), testbtf.Types(t, binary.LittleEndian, "var x u64"), nil); err != nil {
		t.Fatal(err)
	}
	code, externs := settings(20_000)
	long := append(slices.Repeat([]insn{{Op: asm.Add.Op(asm.ImmSource), Dst: 6}}, limits.ExploreSteps+1), helperCall(absentHelper), insn{Op: bpfobj.OpExit})
	tg := new(core.Target)
	if err := tg.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, fmt.Sprintf("enum bpf_func_id 4: BPF_FUNC_get_prandom_u32 %d", presentHelper))); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]struct {
		o    *rule.Object
		last rule.Status
		says rule.Finding
	}{
		"a block behind a guard":      {objectOf(t, 1, guarded(4_000, 50)), rule.Guarded, rule.Finding{}},
		"a large block":               {objectOf(t, 1, guarded(400_000, 50_000)), rule.Guarded, rule.Finding{}},
		"facts":                       {objectOf(t, 1, code, externs...), rule.MayFail, rule.Finding{Args: rule.Args{Reach: rule.BySettings}}},
		"crowded":                     {different(objectOf(t, 20, crowded())), rule.Fails, rule.Finding{}},
		"programs that take too long": {objectOf(t, 2, long), rule.Unknown, rule.Finding{Args: rule.Args{Reach: rule.TooLarge}}},
		"findings":                    {objectOf(t, 30, differing(10_000)), rule.Unknown, rule.Finding{Code: rule.AnalysisFindings, Args: rule.Args{Max: 131072}}},
	} {
		h.o.BTF = types
		r := newRun(Config{Objects: []*rule.Object{h.o}})
		k := rule.Inspect(t.Context(), tg, r.want, &corpus.Kernel{Key: kernel.Key{Release: "6.12.1"}, Arch: "x86_64"}, false)
		p := r.pair(0, k, rule.Decisions{}, new(target), nil, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var last []rule.Finding
		for i := range h.o.Programs {
			last = r.found.read(r.code(t.Context(), r.program(p, i)))
		}
		runtime.ReadMemStats(&after)
		if len(last) == 0 || rule.Worst(last) != h.last || last[0].Reach != h.says.Reach || last[0].Max != h.says.Max || h.says.Code != "" && last[0].Code != h.says.Code {
			t.Errorf("%s: %d findings, %s: %v", name, len(last), rule.Worst(last), last[:min(1, len(last))])
		}
		if p.work > limits.ObjectWork+limits.ExploreWork {
			t.Errorf("%s: %d units of work", name, p.work)
		}
		n := after.TotalAlloc - before.TotalAlloc
		if n > 360<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		t.Logf("%s: %d units of work, %d bytes", name, p.work, n)
	}
}

// TestCanceled wants nothing to be done under a context that has ended.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := objectOf(t, 3, crowded())
	r := newRun(Config{Objects: []*rule.Object{o}, Corpus: new(corpus.Corpus)})
	tg := new(target)
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) { r.item(ctx, tg, it) })
	if len(r.kernels) > 0 {
		t.Errorf("verdicts on %d kernels", len(r.kernels))
	}
	if _, err := r.report(ctx); err != context.Canceled {
		t.Errorf("report: %v", err)
	}
	data := testinput.Named(t, "subprogs.bpfel.o").Data
	if _, err := rule.Parse(ctx, "o", data); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
