// SPDX-License-Identifier: Apache-2.0

// Package verify proves that relocating against minimized BTF gives the same decisions as relocating against the kernels' own
// BTF. It compares the decisions of libbpf and aya, computed by package core, and those of cilium/ebpf, computed by its own code.
//
// For each kernel of the corpus:
//
//  1. pairs.find returns the minimized BTF for its key. A kernel or a minimized BTF without a counterpart is a finding.
//  2. compareLogs compares libbpf's decisions, record by record: the result, the new value and the target. It does not
//     compare type IDs.
//  3. compareFixups compares cilium/ebpf's fixups. cilium/ebpf decides on all relocations of one local type in one program
//     together, including the functions linked into it. Such a group is relocated at once. Of equal groups
//     of all objects (question.go) only one is, unless there is a difference. The full BTF is vmlinux's, without copies of
//     candidates (copies.go), and all modules', as in linker.go.
//  4. compareAya compares aya's decisions.
//  5. compareTables compares all outcomes of all candidates. It finds what no decision shows, such as the size of a load.
//
// Kernels with equal contents and equal minimized BTF are compared once, unless there are differences.
package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Object is a BPF object and its ELF file, which cilium/ebpf parses again.
type Object struct {
	*core.Object
	Data []byte
}

// Config configures a run.
type Config struct {
	Objects   []Object // objects with relocations, in either byte order, for any machines
	Minimized []Minimized
	Corpus    *corpus.Corpus      // the kernels with their full BTF
	Loader    string              // compare only its decisions; "" for all
	Jobs      int                 // workers, at least 1
	Done      func(walk.Progress) // called after each file of the corpus, never concurrently; may be nil
}

// Run compares every kernel of the corpus. The report has what cannot be compared. Run returns an error only if it cannot
// continue, or when ctx ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := NewJudge(ctx, cfg).run
	skipped, err := walk.Kernels(ctx, walk.Config{Corpus: cfg.Corpus, Jobs: cfg.Jobs, Progress: cfg.Done},
		func() *Judge { return &Judge{run: r} },
		func(j *Judge, _ int, it *corpus.Kernel) error {
			j.kernel(ctx, it)
			return ctx.Err()
		})
	if err != nil {
		return nil, err
	}
	r.report.Skipped = append(r.report.Skipped, skipped...)
	for i, o := range r.Objects {
		if len(o.Machines()) > 0 && !r.used[i] && r.loaded {
			r.report.Skipped = append(r.report.Skipped, cfg.Corpus.Unmet(o.Name()))
		}
	}
	present := make(map[kernel.Key]bool)
	for _, f := range cfg.Corpus.Files {
		present[f.Key.Canonical()] = f.Key.Known()
	}
	for _, m := range r.pairs.unused() {
		switch {
		case present[m.Key.Canonical()]: // but could not be read, which Skipped says
		case len(core.OnMachine(m.Key.Arch, r.plain...)) > 0:
			r.report.NoKernel = append(r.report.NoKernel, m.Name)
		default:
			r.report.NoObject = append(r.report.NoObject, m.Name)
		}
	}
	r.report.sort()
	return &r.report, nil
}

// run is the state that workers share.
type run struct {
	Config
	pairs   *pairs
	plain   []*core.Object
	objects []*ciliumObject // one for each of Objects, if cilium/ebpf is compared
	roots   roots           // those of objects
	sets    *core.Sets
	equal   workers.Once[corpus.Identity, Comparison] // results by the contents of a kernel and its minimized BTF

	mu     sync.Mutex
	report Report
	used   []bool // whether each object is for some kernel
	loaded bool   // some kernel
}

// compares reports whether the decisions of a loader are compared.
func (r *run) compares(loader string) bool { return r.Loader == "" || r.Loader == loader }

// Judge compares the decisions of all loaders on one kernel with those on any number of BTFs made from it. It reuses memory from
// kernel to kernel, and is not safe for concurrent use.
type Judge struct {
	*run
	source      *corpus.Kernel
	full, small core.Target
	cilium      ciliumTarget // full, nil until needed
	fill        core.Filler
	tables      [2]core.Table // tables of full and small
}

// NewJudge returns a Judge for the objects and the loader of a configuration.
func NewJudge(ctx context.Context, cfg Config) *Judge {
	r := &run{Config: cfg, pairs: newPairs(cfg.Minimized), used: make([]bool, len(cfg.Objects))}
	for _, o := range r.Objects {
		r.plain = append(r.plain, o.Object)
	}
	if r.compares(Cilium) {
		r.readCilium(ctx)
	}
	r.sets = core.NewSets(r.plain)
	return &Judge{run: r}
}

// readCilium reads the objects with cilium/ebpf, several at once, and numbers their groups.
func (r *run) readCilium(ctx context.Context) {
	r.objects = make([]*ciliumObject, len(r.Objects))
	unread := make([]rule.Finding, len(r.Objects))
	var next atomic.Int64
	workers.Together(min(r.Jobs, len(r.Objects)), func() {
		for i := int(next.Add(1)) - 1; i < len(r.Objects); i = int(next.Add(1)) - 1 {
			o := &r.Objects[i]
			r.objects[i] = readCilium(ctx, o.Object, o.Data)
			if r.objects[i].unread {
				if f, ok := rule.EbpfGoUnread(ctx, o.Name(), o.Data); ok {
					unread[i] = f
				}
			}
		}
	})
	numbers := make(questions)
	r.roots.number = make(map[string]int)
	for i, c := range r.objects {
		numbers.number(i, r.plain[i], c)
		r.roots.add(r.plain[i], c)
		if c.note != "" || c.missed > 0 {
			r.report.Notes = append(r.report.Notes, Note{Object: r.plain[i].Name(), Reason: c.note, Records: c.missed, Unread: unread[i]})
		}
	}
}

// Load loads the kernel for Compare. Its BTF must not change while it is in use.
func (j *Judge) Load(ctx context.Context, it *corpus.Kernel) error {
	j.source, j.cilium = it, nil
	return it.Load(ctx, &j.full, it.Name)
}

// kernel compares one kernel and adds the result to the report.
func (j *Judge) kernel(ctx context.Context, it *corpus.Kernel) {
	small := j.pairs.find(it.Key, it.Name, len(j.Corpus.Files) == 1)
	err := j.Load(ctx, it)
	loaded := err == nil
	var used []int
	for i, o := range j.Objects {
		if err == nil && o.IsFor(&j.full) {
			used = append(used, i)
		}
	}
	if err == nil && len(used) == 0 {
		err = corpus.ErrNoObject
	}
	var k *Comparison
	if small != nil && err == nil {
		k, err = j.shared(ctx, it, small)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.loaded = j.loaded || loaded
	for _, i := range used {
		j.used[i] = true
	}
	switch rep := &j.report; {
	case errors.Is(err, corpus.ErrNoObject):
		rep.NoObject = append(rep.NoObject, it.Name)
	case err != nil:
		rep.Skipped = append(rep.Skipped, &corpus.Error{Path: it.Name, Err: err})
	case small == nil:
		rep.NotMinimized = append(rep.NotMinimized, it.Name)
	default:
		rep.Kernels = append(rep.Kernels, *k)
	}
}

// ciliumSize is how many bytes cilium/ebpf may take for each byte of BTF: its copy, and the types that relocations refer to.
const ciliumSize = 10

// shared compares one kernel, or takes the result for an equal one if that has no differences: these name the kernel.
func (j *Judge) shared(ctx context.Context, it *corpus.Kernel, small *Minimized) (k *Comparison, err error) {
	give, err := it.Reserve(ciliumSize * it.Size()) // before an equal kernel waits for this one, because it may be that one's turn
	if err != nil {
		return nil, err
	}
	defer give()
	equal, _ := j.equal.Do(it.Identity(small.BTF), func() *Comparison {
		if k, err = j.whole(ctx, it, small); err != nil || len(k.Differences) > 0 {
			return nil
		}
		return k
	})
	switch {
	case equal != nil:
		own := *equal
		own.Name, own.Minimized = it.Name, small.Name
		return &own, nil
	case k == nil && err == nil:
		return j.whole(ctx, it, small)
	}
	return k, err
}

// whole compares decisions and tables.
func (j *Judge) whole(ctx context.Context, it *corpus.Kernel, small *Minimized) (*Comparison, error) {
	defer func() { j.cilium = nil }() // frees its memory
	k, err := j.Compare(ctx, small.BTF)
	if err != nil {
		return nil, err
	}
	k.Minimized = small.Name
	return k, j.compareTables(ctx, k)
}

var errOrder = errors.New("byte order of the minimized BTF differs from the kernel's")

// Compare compares the decisions of the loaders on the loaded kernel with those on minimized BTF. It fails if one of the loaders cannot
// read either, or if no object is for the kernel.
func (j *Judge) Compare(ctx context.Context, minimized []byte) (k *Comparison, err error) {
	if j.cilium == nil && j.compares(Cilium) {
		if j.cilium, err = readCiliumTarget(ctx, &j.full, j.source.BTF, j.source.Modules, &j.roots); err != nil {
			return nil, err
		}
	}
	if err := j.small.Load(ctx, "minimized BTF", minimized); err != nil {
		return nil, err
	}
	if j.full.Order() != j.small.Order() {
		return nil, errOrder
	}
	var small ciliumTarget
	if j.compares(Cilium) {
		if small, err = readCiliumTarget(ctx, &j.small, minimized, nil, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", j.small.Name(), err)
		}
	}
	set := j.sets.For(&j.full)
	if set == nil {
		return nil, corpus.ErrNoObject
	}
	k = &Comparison{Name: j.full.Name()}
	// Fill limits how deep cilium/ebpf recurses, so it comes before any call of that.
	for i, t := range []*core.Target{&j.full, &j.small} {
		if err := j.fill.Fill(ctx, &j.tables[i], set, t, nil); err != nil {
			return nil, err
		}
	}
	full, reduced := j.tables[0].Libbpf(), j.tables[1].Libbpf()
	agreed := make(map[int]bool)
	n := 0 // index of the object in the set
	for i, o := range j.Objects {
		if !o.IsFor(&j.full) || !j.compares(Libbpf) && !j.compares(Cilium) {
			continue
		}
		log, err := full.Log(ctx, n)
		if err != nil {
			return nil, err
		}
		if j.compares(Libbpf) {
			smallLog, err := reduced.Log(ctx, n)
			if err != nil {
				return nil, err
			}
			compareLogs(k, log, smallLog)
		}
		n++
		if j.compares(Cilium) {
			compareFixups(k, j.objects[i], log, j.cilium, small, agreed)
		}
	}
	if j.compares(Aya) {
		err = j.compareAya(ctx, k, set)
	}
	return k, err
}

// compareAya compares aya's decisions in both tables.
func (j *Judge) compareAya(ctx context.Context, k *Comparison, set *core.Set) error {
	full, small := j.tables[0].Aya(), j.tables[1].Aya()
	for i, o := range set.Objects() {
		records := o.Records()
		for n := range records {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			k.Aya++
			a, b := full.Decision(i, n), small.Decision(i, n)
			if r := &records[n]; !a.Same(&b) {
				k.differ(Difference{
					Kernel: k.Name, Loader: Aya, Object: o.Name(), Program: r.Program, Section: r.Section, Index: r.Index,
					Relocation: o.Relocation(r), What: WhatDecision, Full: a.String(), Minimized: b.String(),
				})
			}
		}
	}
	return nil
}

// compareTables compares all outcomes, unless decisions differ already.
func (j *Judge) compareTables(ctx context.Context, k *Comparison) error {
	if len(k.Differences) > 0 {
		return nil
	}
	d, err := core.Compare(ctx, &j.tables[0], &j.tables[1])
	if d != nil {
		k.differ(Difference{
			Kernel: k.Name, Loader: Libbpf, Object: d.Object, Relocation: d.Relocation,
			What: WhatTable, Full: d.Full, Minimized: d.Minimized,
		})
	}
	return err
}
