// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	cbtf "github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/relo"
)

// group is what cilium/ebpf decides on together: the relocations of one local type in one program, including the functions
// linked into it.
type group struct {
	program  string // the first that has this group
	relos    []*cbtf.CORERelocation
	records  []int // index of each in Object.Records
	question int   // a number that equal groups of all objects share
}

// ciliumObject is an object as read by cilium/ebpf. It is immutable.
type ciliumObject struct {
	order  binary.ByteOrder
	groups []group
	note   string // why its loader refuses the object, or ""
	unread bool   // its loader refuses the object, for a reason that may differ from run to run
	missed int    // records that are in no group
}

// readCilium reads an object with cilium/ebpf. Package core knows which functions it links into a program.
func readCilium(ctx context.Context, o *core.Object, data []byte) *ciliumObject {
	c := &ciliumObject{order: o.Order()}
	if err := c.read(ctx, o, data); err != nil {
		c.note = err.Error()
	}
	grouped := make(map[int]bool)
	for _, g := range c.groups {
		for _, r := range g.records {
			grouped[r] = true
		}
	}
	c.missed = len(o.Records()) - len(grouped)
	return c
}

func (c *ciliumObject) read(ctx context.Context, o *core.Object, data []byte) error {
	if own := o.BTF(); own != nil {
		if err := btf.CheckRecursion(ctx, own); err != nil {
			return err
		}
	}
	_, ext, err := cbtf.LoadSpecAndExtInfosFromReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	type place struct {
		section string
		insn    asm.RawInstructionOffset
	}
	relos := make(map[place]*cbtf.CORERelocation)
	for section, all := range ext.CORERelos {
		for _, r := range all {
			relos[place{section, r.Offset}] = r.Relo
		}
	}
	units, err := o.LinkedPrograms()
	if err != nil {
		return err
	}
	seen := make(map[string]bool) // groups, by their records
	for _, u := range slices.SortedStableFunc(slices.Values(units), func(a, b core.LinkedProgram) int { return strings.Compare(a.Name, b.Name) }) {
		at := make(map[btf.TypeID]int) // indices of groups, by local type
		var groups []group
		for _, i := range u.Records {
			r := &o.Records()[i]
			relocation := relos[place{r.Section, asm.RawInstructionOffset(r.Offset / asm.InstructionSize)}]
			if relocation == nil || r.Kind == relo.LocalTypeID { // a local ID does not depend on the kernel
				continue
			}
			id := o.Root(r).ID
			if _, ok := at[id]; !ok {
				at[id] = len(groups)
				groups = append(groups, group{program: u.Name})
			}
			g := &groups[at[id]]
			g.relos, g.records = append(g.relos, relocation), append(g.records, i)
		}
		for _, g := range groups {
			if k := fmt.Sprint(g.records); !seen[k] {
				seen[k] = true
				c.groups = append(c.groups, g)
			}
		}
	}
	_, err = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	c.unread = err != nil
	return err
}

// ciliumTarget is vmlinux and the modules of a kernel, as read by cilium/ebpf. It is not safe for concurrent use.
type ciliumTarget []*cbtf.Spec

// readCiliumTarget reads the BTF of a loaded kernel, without copies of candidates unless r is nil.
func readCiliumTarget(ctx context.Context, loaded *core.Target, vmlinux []byte, modules []corpus.Module, r *roots) (ciliumTarget, error) {
	if err := loaded.CheckRecursion(ctx); err != nil {
		return nil, err
	}
	for module, b := range loaded.Views() {
		if module == "" && r != nil {
			var err error
			if vmlinux, err = r.withoutCopies(ctx, vmlinux, b); err != nil {
				return nil, err
			}
		}
	}
	base, err := cbtf.LoadSpecFromReader(bytes.NewReader(vmlinux))
	if err != nil {
		return nil, fmt.Errorf("cilium/ebpf: %w", err)
	}
	t := ciliumTarget{base}
	for _, m := range modules {
		s, err := cbtf.LoadSplitSpecFromReader(bytes.NewReader(m.BTF), base)
		if err != nil {
			return nil, fmt.Errorf("module %s: cilium/ebpf: %w", m.Name, err)
		}
		t = append(t, s)
	}
	return t, nil
}

// compareFixups compares cilium/ebpf's decisions on both BTFs. log is libbpf's, which names the records. agreed has the numbers of groups
// for which it found no difference on these BTFs.
func compareFixups(k *Comparison, c *ciliumObject, log *relo.Log, full, small ciliumTarget, agreed map[int]bool) {
	for gi := range c.groups {
		g := &c.groups[gi]
		k.Fixups += len(g.records)
		if agreed[g.question] {
			continue
		}
		before := len(k.Differences)
		f, s := g.relocate(full, c.order), g.relocate(small, c.order)
		for i, rec := range g.records {
			e := &log.Entries[rec]
			ids := e.Kind == relo.TargetTypeID
			// cilium/ebpf has no type IDs for modules, but a merged BTF does not show that a type is a module's.
			merged := ids && len(full) > 1 && f.err == nil && s.err == nil && isPoison(f.texts[i])
			if !merged && !f.same(&s, i, ids) {
				d := difference(e, Cilium)
				d.Program, d.What, d.Full, d.Minimized = g.program, WhatDecision, f.text(i), s.text(i)
				k.differ(d)
			}
		}
		agreed[g.question] = len(k.Differences) == before
	}
}

// fixups is the result for a group: a text for each record, or the error of the whole group.
type fixups struct {
	texts []string
	err   error
}

func (g *group) relocate(specs []*cbtf.Spec, order binary.ByteOrder) (out fixups) {
	fs, err := cbtf.CORERelocate(g.relos, specs, order, func(cbtf.Type) (cbtf.TypeID, error) { return 1, nil })
	for i := range fs {
		out.texts = append(out.texts, fs[i].String())
	}
	out.err = err
	return out
}

func (f *fixups) text(i int) string {
	if f.err != nil {
		return "error: " + f.err.Error()
	}
	return f.texts[i]
}

// same compares relocation i on two BTFs, apart from type IDs and the order of candidates in errors. ids is set if the
// relocation is for a type ID.
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
