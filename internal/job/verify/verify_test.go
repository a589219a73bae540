// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// inputs returns the objects for Run and for generate.
func inputs(t *testing.T) (objs []Object, plain []*core.Object) {
	t.Helper()
	for _, o := range testinput.Objects(t) {
		objs, plain = append(objs, Object(o)), append(plain, o.Object)
	}
	return objs, plain
}

// minimizeAll minimizes a corpus as the command does.
func minimizeAll(t *testing.T, c *corpus.Corpus, objs []*core.Object) []Minimized {
	t.Helper()
	rep, err := generate.Run(t.Context(), generate.Config{Objects: objs, Corpus: c, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	var all []Minimized
	for _, k := range rep.Kernels {
		all = append(all, Minimized{k.Key, k.Name, k.BTF})
	}
	return all
}

// unused returns how many records of an object are in no program, or do not depend on the kernel.
func unused(t *testing.T, objs []Object, name string) (n int) {
	t.Helper()
	o := objs[slices.IndexFunc(objs, func(o Object) bool { return o.Name() == name })]
	units, err := o.LinkedPrograms()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range o.Records() {
		if r.Kind == relo.LocalTypeID || !slices.ContainsFunc(units, func(u core.LinkedProgram) bool { return slices.Contains(u.Records, i) }) {
			n++
		}
	}
	return n
}

// TestEquivalence verifies the output of generate for every object and kernel of a .btfc file.
func TestEquivalence(t *testing.T) {
	objs, plain := inputs(t)
	c := testinput.Few(t)
	from := c
	if !raceflag.Enabled { // packing would take most of the time
		from = testinput.Packed(t, c)
	}
	rep, err := Run(t.Context(), Config{Objects: objs, Minimized: minimizeAll(t, from, plain), Corpus: c, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	records, fixups := 0, 0
	for _, k := range rep.Kernels {
		records, fixups = records+k.Records, fixups+k.Fixups
		for _, d := range k.Differences {
			t.Errorf("%+v", d)
		}
	}
	t.Logf("%d objects on %d kernels: %d records under libbpf's rules, %d fixups of cilium/ebpf compared", len(objs), len(rep.Kernels), records, fixups)
	if records == 0 || fixups == 0 {
		t.Error("nothing was compared")
	}
	accounted := make(map[string]int)
	testinput.Each(t, c, func(it *corpus.Kernel) {
		for _, d := range disagreements(t, objs, it) {
			why := account(&d)
			if accounted[why]++; why == "" {
				t.Errorf("unexplained disagreement: %+v", d)
			}
		}
	})
	for _, r := range reasons {
		n := accounted[r.why]
		t.Logf("loaders disagree on %d: %s", n, r.why)
		if n == 0 && !r.rare {
			t.Errorf("no disagreement because: %s", r.why)
		}
	}
	for _, n := range rep.Notes {
		t.Logf("cilium/ebpf: %s: %d records in no program: %s", n.Object, n.Records, n.Reason)
		if got := unused(t, objs, n.Object); n.Records != got {
			t.Errorf("%s: %d records not compared, want the %d that are in no program", n.Object, n.Records, got)
		}
	}
	if len(rep.NotMinimized)+len(rep.NoKernel)+len(rep.Skipped) > 0 {
		t.Errorf("not compared: %v %v %v", rep.NotMinimized, rep.NoKernel, rep.Skipped)
	}
}

// Disagreement is a relocation on which libbpf and cilium/ebpf decide differently on the full BTF.
type Disagreement struct{ Kernel, Object, Program, Relocation, Libbpf, Cilium string }

// disagreements compares the decisions of libbpf and cilium/ebpf on a kernel.
func disagreements(t *testing.T, objs []Object, it *corpus.Kernel) (all []Disagreement) {
	t.Helper()
	target, err := testinput.NewKernel(it.Name, it.BTF, it.Modules...)
	if err != nil {
		t.Fatal(err)
	}
	full, err := readCiliumTarget(t.Context(), target, it.BTF, it.Modules, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objs {
		if !o.IsFor(target) {
			continue
		}
		log, err := core.NewSet(o.Object).Run(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		c := readCilium(t.Context(), o.Object, o.Data)
		for gi := range c.groups {
			g := &c.groups[gi]
			f := g.relocate(full, c.order)
			for i, rec := range g.records {
				if e := &log.Entries[rec]; loadersDiffer(e, &f, i) {
					all = append(all, Disagreement{it.Name, o.Name(), g.program, e.Relocation(), decision(e), f.text(i)})
				}
			}
		}
	}
	return all
}

// loadersDiffer compares libbpf's decision on a record with cilium/ebpf's fixup i, both on the full BTF.
func loadersDiffer(e *relo.Entry, f *fixups, i int) bool {
	if f.err != nil {
		return e.Result != relo.Ambiguous && e.Result != relo.Error
	}
	switch e.Result {
	case relo.Resolved, relo.Absent:
		local, target, ok := values(f.texts[i])
		shift := e.Kind == relo.LShiftU64 || e.Kind == relo.RShiftU64 // cilium/ebpf does not compute the local value
		return !ok || e.New == nil || target != *e.New || local != e.Old && !shift
	case relo.Poisoned:
		return !isPoison(f.texts[i])
	}
	return true // libbpf refuses the object, cilium/ebpf does not
}

// values returns the old and the new value of a fixup.
func values(fixup string) (local, target uint64, ok bool) {
	_, change, _ := strings.Cut(fixup, "=")
	a, b, ok := strings.Cut(change, "->")
	local, err1 := strconv.ParseUint(a, 10, 64)
	target, err2 := strconv.ParseUint(b, 10, 64)
	return local, target, ok && err1 == nil && err2 == nil
}

// reasons are the known differences of the loaders' rules, from their sources. The first that fits explains a disagreement.
var reasons = []struct {
	why  string
	rare bool // not seen with the objects and kernels of testdata
	fits func(d *disagreement) bool
}{
	{"the size and the ID of a type that does not exist are 0 for libbpf", false, func(d *disagreement) bool {
		return d.libbpf == "absent" && d.poison && (d.kind == "type_size" || d.kind == "target_type_id")
	}},
	{"cilium/ebpf has no type IDs of modules", true, func(d *disagreement) bool {
		return d.kind == "target_type_id" && d.poison
	}},
	{"the loaders have different rules for type_matches", false, func(d *disagreement) bool {
		return d.kind == "type_matches"
	}},
	{"libbpf looks at the width of a load", false, func(d *disagreement) bool {
		return d.kind == "byte_off" && strings.HasPrefix(d.Libbpf, "poisoned at")
	}},
	{"cilium/ebpf takes a struct for a union", false, func(d *disagreement) bool {
		return d.libbpf == "poisoned" && strings.HasPrefix(d.Relocation, "byte_off union ")
	}},
	{"values of an ENUM of 8 bytes: libbpf extends their sign, cilium/ebpf does not", false, func(d *disagreement) bool {
		return d.kind == "enumval_value" && strings.Contains(d.Relocation, "perf_callchain_context")
	}},
	{"pointers have 8 bytes for cilium/ebpf, whatever the kernel's", false, func(d *disagreement) bool {
		return d.kind == "type_size" && strings.Contains(d.Kernel, "/arm/")
	}},
	{"cilium/ebpf compares the elements of an array only if it is indexed", false, func(d *disagreement) bool {
		return d.kind == "field_exists" && d.libbpf == "absent" && strings.Contains(d.Relocation, "___chars.notes")
	}},
	{"cilium/ebpf decides about all relocations of a type in a program together, and one is ambiguous", true, func(d *disagreement) bool {
		return strings.HasPrefix(d.Cilium, "error: ") && strings.Contains(d.Cilium, "ambiguous")
	}},
	{"cilium/ebpf takes the candidate that most relocations of the type match", false, func(d *disagreement) bool {
		return d.libbpf == "ambiguous" && strings.Contains(d.Cilium, "->")
	}},
	{"a name that ends in ___ has no flavor for libbpf", false, func(d *disagreement) bool {
		return strings.HasPrefix(d.Relocation, "type_exists struct task_struct___")
	}},
}

// disagreement is a Disagreement with the fields that reasons test.
type disagreement struct {
	*Disagreement
	kind, libbpf string // of the relocation, and libbpf's result
	poison       bool   // cilium/ebpf poisons the instruction
}

// account returns the reason of a disagreement, or "" if it is unknown.
func account(d *Disagreement) string {
	in := disagreement{Disagreement: d, poison: strings.HasSuffix(d.Cilium, "=poison")}
	in.kind, _, _ = strings.Cut(d.Relocation, " ")
	in.libbpf, _, _ = strings.Cut(d.Libbpf, " ")
	for i := range reasons {
		if reasons[i].fits(&in) {
			return reasons[i].why
		}
	}
	return ""
}

// TestAccount checks that reasons do not explain disagreements that are mistakes.
func TestAccount(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, d := range []Disagreement{
		{Relocation: "byte_off struct task_struct.pid", Libbpf: "resolved 8 → 16", Cilium: "8->24"},
		{Relocation: "byte_off struct task_struct.pid", Libbpf: "resolved 8 → 16", Cilium: "8=poison"},
		{Relocation: "type_size struct task_struct", Libbpf: "resolved 8 → 16", Cilium: "8->24"},
		{Relocation: "field_exists struct task_struct.pid", Libbpf: "absent", Cilium: "1->1"},
		{Relocation: "enumval_value enum bpf_func_id.BPF_FUNC_unspec", Libbpf: "resolved 0 → 1", Cilium: "0->0"},
	} {
		if why := account(&d); why != "" {
			t.Errorf("%+v: %s", d, why)
		}
	}
}
