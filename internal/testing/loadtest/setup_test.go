// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// object is a BPF object, and the running kernel minimized for it alone.
type object struct {
	testinput.Object
	small []byte
	ids   map[typeID]bool // results of its target_type_id relocations
}

// typeID is the ID of one type in the full and in the minimized BTF.
type typeID struct{ full, small int64 }

// setup returns the running kernel's BTF and the objects of its byte order, including
// those without relocations. It skips the test if programs cannot be loaded.
func setup(t *testing.T) (full []byte, objects []object) {
	t.Helper()
	full = Kernel(t)
	if err := loadable(); err != nil {
		t.Skipf("needs a kernel that loads programs for this process: %v", err)
	}
	target, err := testinput.NewKernel("running kernel", full)
	if err != nil {
		t.Fatal(err)
	}
	list := testinput.Objects(t)
	for _, name := range []string{"norelo", "noext", "nobtf"} {
		list = append(list, testinput.Named(t, name+".bpfel.o"))
	}
	for _, o := range list {
		if o.Order() == target.Order() {
			objects = append(objects, minimized(t, o, target))
		}
	}
	if len(objects) == 0 {
		t.Fatalf("no object is %s", target.Order())
	}
	return full, objects
}

// loadable loads the smallest of programs.
func loadable() error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.SocketFilter,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return err
	}
	return p.Close()
}

// minimized minimizes the kernel for one object. That keeps less than for all objects
// together.
func minimized(t *testing.T, o testinput.Object, full *core.Target) object {
	t.Helper()
	res, err := minimize.New([]*core.Object{o.Object}, minimize.Options{}).Minimize(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	small, err := testinput.NewKernel("minimized", res.BTF)
	if err != nil {
		t.Fatal(err)
	}
	a, err := core.NewSet(o.Object).Run(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	b, err := core.NewSet(o.Object).Run(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[typeID]bool)
	for i, e := range a.Entries {
		f := b.Entries[i]
		if e.Kind == relo.TargetTypeID && e.Target != nil && f.Target != nil && e.Target.Type == f.Target.Type {
			ids[typeID{int64(*e.New), int64(*f.New)}] = true
		}
	}
	return object{o, res.BTF, ids}
}

// outcome is the result of loading one program.
type outcome struct {
	failure   string           // errno or the loader's message, and the verifier's last line; "" if it loaded
	relocated asm.Instructions // as passed to the kernel, if known
	xlated    asm.Instructions // as the kernel has them, if it loaded
}

// diff compares the outcomes on the full and on the minimized BTF. It returns "" if they
// are equal.
func (o *object) diff(full, small *outcome) string {
	if full.failure != small.failure {
		return fmt.Sprintf("with the full BTF: %s\n\twith the minimized: %s",
			cmp.Or(full.failure, "loads"), cmp.Or(small.failure, "loads"))
	}
	if d := o.diffCode(full.relocated, small.relocated); d != "" {
		return "relocated " + d
	}
	if d := o.diffCode(full.xlated, small.xlated); d != "" {
		return "xlated " + d
	}
	return ""
}

// diffCode compares instructions. Immediates of target_type_id relocations may differ,
// because the minimized BTF has other IDs. Maps are numbered in order of use.
func (o *object) diffCode(full, small asm.Instructions) string {
	if len(full) != len(small) {
		return fmt.Sprintf("instructions: %d, %d", len(full), len(small))
	}
	inFull, inSmall := make(numbers), make(numbers)
	for i := range full {
		a, b := full[i], small[i]
		if a.IsLoadFromMap() && b.IsLoadFromMap() {
			inFull.replace(&a)
			inSmall.replace(&b)
		}
		if a.Constant != b.Constant && o.ids[typeID{a.Constant, b.Constant}] {
			b.Constant = a.Constant
		}
		if a.OpCode != b.OpCode || a.Dst != b.Dst || a.Src != b.Src || a.Offset != b.Offset || a.Constant != b.Constant {
			return fmt.Sprintf("instruction %d: %v, %v", i, full[i], small[i])
		}
	}
	return ""
}

// numbers replaces the descriptors or IDs of a program's maps by numbers.
type numbers map[uint32]uint32

func (n numbers) replace(ins *asm.Instruction) {
	id := uint32(ins.Constant)
	if _, ok := n[id]; !ok {
		n[id] = uint32(len(n))
	}
	ins.Constant = ins.Constant>>32<<32 | int64(n[id])
}

// tally counts equal outcomes on both BTFs.
type tally struct {
	loaded, relocated, instructions int
	kinds                           map[string]int // loaded programs that need the kernel's own BTF in any case, by section
	failed                          map[string]int // by reason
}

// add counts a program of the given section.
func (c *tally) add(section string, o *outcome) {
	if c.kinds == nil {
		c.kinds, c.failed = make(map[string]int), make(map[string]int)
	}
	if o.relocated != nil {
		c.relocated++
	}
	if o.failure != "" {
		c.failed[o.failure]++
		return
	}
	c.loaded++
	c.instructions += len(o.xlated)
	kind, _, _ := strings.Cut(strings.TrimPrefix(section, "?"), "/")
	switch kind {
	case "fentry", "fexit", "fmod_ret", "lsm", "tp_btf", "iter", "struct_ops":
		c.kinds[kind]++
	}
	if slices.ContainsFunc(o.xlated, func(i asm.Instruction) bool { return i.IsKfuncCall() }) {
		c.kinds["kfunc callers"]++
	}
}

// report logs the counts. The test fails if none was compared.
func (c *tally) report(t *testing.T) {
	t.Helper()
	failed := 0
	for _, n := range c.failed {
		failed += n
	}
	t.Logf("%d programs loaded, with identical instructions (%d); %d failed alike", c.loaded, c.instructions, failed)
	if c.relocated > 0 {
		t.Logf("%d programs were relocated identically, whether the kernel took them or not", c.relocated)
	}
	for _, k := range slices.Sorted(maps.Keys(c.kinds)) {
		t.Logf("%4d of those loaded are %s, which need the kernel's own BTF as well", c.kinds[k], k)
	}
	reasons := slices.SortedFunc(maps.Keys(c.failed), func(a, b string) int {
		return cmp.Or(-cmp.Compare(c.failed[a], c.failed[b]), cmp.Compare(a, b))
	})
	for _, r := range reasons {
		t.Logf("%4d failed: %s", c.failed[r], r)
	}
	if c.loaded == 0 {
		t.Error("no program loaded: nothing was compared")
	}
}
