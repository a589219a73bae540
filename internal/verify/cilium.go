// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/unwrap"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// group is what cilium/ebpf decides about together: the relocations of one
// local type in one program, functions linked into it included.
type group struct {
	program string // the first that has such a group
	relos   []*btf.CORERelocation
	records []int // index of each in Object.Relos
}

// place is where a record's instruction is. Where cilium/ebpf loads the object
// functions have names of their own, and the section is left out.
type place struct {
	section, function string
	insn              int
}

// ciliumObject is an object as cilium/ebpf reads it. It is immutable.
type ciliumObject struct {
	order  binary.ByteOrder
	groups []group
	note   string // why it could not be read in full, or ""
	missed int    // records that are in no group
}

// readCilium reads an object with cilium/ebpf. An object that its loader does
// not take is read without it: then functions stand alone, and the note says
// why.
func readCilium(ctx context.Context, o *relolog.Object, data []byte) *ciliumObject {
	c := &ciliumObject{order: o.Order()}
	if own := unwrap.Object(o).BTF(); own != nil {
		if err := rawbtf.CheckRecursion(ctx, own); err != nil {
			c.note, c.missed = err.Error(), len(unwrap.Object(o).Records())
			return c
		}
	}
	b := newGroupBuilder(c, unwrap.Object(o))
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	if err == nil {
		for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
			b.program(spec.Programs[name])
		}
	} else {
		c.note = err.Error()
		if err := b.functions(data); err != nil {
			c.note = err.Error()
		}
	}
	seen := make(map[int]bool)
	for _, g := range c.groups {
		for _, r := range g.records {
			seen[r] = true
		}
	}
	c.missed = len(b.o.Records()) - len(seen)
	return c
}

type groupBuilder struct {
	c     *ciliumObject
	o     *engine.Object
	at    map[place]int
	known map[string]bool // groups that exist already
}

func newGroupBuilder(c *ciliumObject, o *engine.Object) *groupBuilder {
	b := &groupBuilder{c: c, o: o, at: make(map[place]int), known: make(map[string]bool)}
	relos := o.Records()
	for i := range relos {
		r := &relos[i]
		b.at[place{"", r.Program, r.Insn}] = i
		b.at[place{r.Section, r.Program, r.Insn}] = i
	}
	return b
}

// program adds the groups of a program with all that is linked into it.
func (b *groupBuilder) program(p *ebpf.ProgramSpec) {
	relos, records := b.unit(p)
	b.add(p.Name, relos, records)
}

// unit returns the relocations of a program with all that is linked into it.
func (b *groupBuilder) unit(p *ebpf.ProgramSpec) (relos []*btf.CORERelocation, records []int) {
	function, start := "", asm.RawInstructionOffset(0)
	for it := p.Instructions.Iterate(); it.Next(); {
		if sym := it.Ins.Symbol(); sym != "" {
			function, start = sym, it.Offset
		}
		relo := btf.CORERelocationMetadata(it.Ins)
		if relo == nil {
			continue
		}
		if i, ok := b.at[place{"", function, int(it.Offset - start)}]; ok {
			relos, records = append(relos, relo), append(records, i)
		}
	}
	return relos, records
}

// functions adds the groups of each function by itself, for an object that
// cilium/ebpf refuses to load.
func (b *groupBuilder) functions(data []byte) error {
	_, ext, err := btf.LoadSpecAndExtInfosFromReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	for _, section := range slices.Sorted(maps.Keys(ext.CORERelos)) {
		funcs, _, all := ext.Section(section)
		var relos []*btf.CORERelocation
		var records []int
		function, start := "", asm.RawInstructionOffset(0)
		for _, r := range all {
			for len(funcs) > 0 && funcs[0].Offset <= r.Offset {
				b.add(function, relos, records)
				relos, records = nil, nil
				function, start, funcs = funcs[0].Func.Name, funcs[0].Offset, funcs[1:]
			}
			if i, ok := b.at[place{section, function, int(r.Offset - start)}]; ok {
				relos, records = append(relos, r.Relo), append(records, i)
			}
		}
		b.add(function, relos, records)
	}
	return nil
}

// add splits the relocations of a program by local type.
func (b *groupBuilder) add(program string, relos []*btf.CORERelocation, records []int) {
	byType := make(map[string]*group)
	var order []string
	for i, r := range relos {
		if b.o.Records()[records[i]].Kind == engine.KindLocalTypeID {
			continue // asks nothing of the kernel
		}
		id := localID(r)
		g := byType[id]
		if g == nil {
			g = &group{program: program}
			byType[id] = g
			order = append(order, id)
		}
		g.relos, g.records = append(g.relos, r), append(g.records, records[i])
	}
	for _, id := range order {
		g := byType[id]
		if k := fmt.Sprint(g.records); !b.known[k] {
			b.known[k] = true
			b.c.groups = append(b.c.groups, *g)
		}
	}
}

// localID returns the part of a relocation's text that has the ID of its local
// type. The fields are hidden, and nothing else tells types apart.
func localID(r *btf.CORERelocation) string {
	s := r.String()
	if i := strings.LastIndex(s, "local_id="); i >= 0 {
		return s[i:]
	}
	return s
}

// ciliumTarget is a kernel as cilium/ebpf reads it. It is not safe for
// concurrent use.
type ciliumTarget struct {
	vmlinux []*btf.Spec // one
	all     []*btf.Spec // with modules
}

// readCiliumTarget reads what has been loaded as a target.
func readCiliumTarget(ctx context.Context, loaded *relolog.Target, vmlinux []byte, modules []relolog.Module) (*ciliumTarget, error) {
	if err := unwrap.Kernel(loaded).CheckRecursion(ctx); err != nil {
		return nil, err
	}
	base, err := btf.LoadSpecFromReader(bytes.NewReader(vmlinux))
	if err != nil {
		return nil, fmt.Errorf("cilium/ebpf: %w", err)
	}
	t := &ciliumTarget{vmlinux: []*btf.Spec{base}, all: []*btf.Spec{base}}
	for _, m := range modules {
		s, err := btf.LoadSplitSpecFromReader(bytes.NewReader(m.BTF), base)
		if err != nil {
			return nil, fmt.Errorf("module %s: cilium/ebpf: %w", m.Name, err)
		}
		t.all = append(t.all, s)
	}
	return t, nil
}

// fixups is what cilium/ebpf makes of a group: a text for each record, or for
// all of them why the load fails.
type fixups struct {
	texts []string
	err   error
}

func (f *fixups) text(i int) string {
	if f.err != nil {
		return "error: " + f.err.Error()
	}
	return f.texts[i]
}

// same compares what two BTFs make of relocation i. Type IDs and the order of
// candidates, which errors tell of, are not compared. ids says that the
// relocation asks for a type ID.
func (f *fixups) same(o *fixups, i int, ids bool) bool {
	if f.err != nil || o.err != nil {
		return f.err != nil && o.err != nil && isAmbiguous(f.err) == isAmbiguous(o.err)
	}
	if ids {
		return isPoison(f.texts[i]) == isPoison(o.texts[i])
	}
	return f.texts[i] == o.texts[i]
}

func isPoison(fixup string) bool { return strings.HasSuffix(fixup, "=poison") }

// isAmbiguous looks at the text, because cilium/ebpf does not export the error.
func isAmbiguous(err error) bool { return strings.Contains(err.Error(), "ambiguous relocation") }

// values returns what a fixup replaces and what it puts in.
func values(fixup string) (local, target uint64, ok bool) {
	_, change, _ := strings.Cut(fixup, "=")
	a, b, ok := strings.Cut(change, "->")
	local, err1 := strconv.ParseUint(a, 10, 64)
	target, err2 := strconv.ParseUint(b, 10, 64)
	return local, target, ok && err1 == nil && err2 == nil
}

func (g *group) relocate(specs []*btf.Spec, order binary.ByteOrder) fixups {
	fs, err := btf.CORERelocate(g.relos, specs, order, func(btf.Type) (btf.TypeID, error) { return 1, nil })
	if err != nil {
		return fixups{err: err}
	}
	out := fixups{texts: make([]string, len(fs))}
	for i := range fs {
		out.texts[i] = fs[i].String()
	}
	return out
}
