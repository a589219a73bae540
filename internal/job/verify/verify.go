// SPDX-License-Identifier: Apache-2.0

// Package verify proves that relocating against minimized BTF gives the same decisions as relocating against the kernels' own
// BTF. It compares the decisions of libbpf and aya, computed by package core, and those of cilium/ebpf, computed by its own code.
//
// For each kernel of the corpus:
//
//  1. pairs.find returns the minimized BTF for its key. A kernel or a minimized BTF without a counterpart is a finding.
//  2. compareLogs compares libbpf's decisions, record by record: the result, the new value, the target, and the candidates
//     that match with path, offset and value. It does not compare type IDs, candidates that do not match, or how many equal
//     candidates there are.
//  3. compareFixups compares cilium/ebpf's fixups. cilium/ebpf decides on all relocations of one local type in one program
//     together, including the functions linked into it. Such a group is relocated at once; equal groups only once.
//     Where libbpf and cilium/ebpf disagree on the full BTF, that is reported, but it is not a difference.
//  4. compareAya compares aya's decisions.
//  5. compareTables compares all outcomes. It finds what no log shows, such as the size of a load.
package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Object is a BPF object and its ELF file, which cilium/ebpf parses again.
type Object struct {
	*core.Object
	Data []byte
}

// Config configures a run.
type Config struct {
	Objects   []Object // in either byte order, for any machines, with relocations
	Minimized []Minimized
	Corpus    *corpus.Corpus      // the kernels with their full BTF
	Loader    string              // compare only its decisions; "" for all
	Jobs      int                 // workers, at least 1
	Done      func(walk.Progress) // called after each file of the corpus, never concurrently; may be nil
}

// Run compares every kernel of the corpus. The report has what cannot be compared. Run returns an error only if it cannot
// continue, or when ctx ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := newRun(ctx, cfg)
	skipped, err := walk.Kernels(ctx, walk.Config{Corpus: cfg.Corpus, Jobs: cfg.Jobs, Progress: cfg.Done},
		func() *worker { return &worker{run: r} },
		func(w *worker, _ walk.Rank, it *corpus.Kernel) error {
			w.kernel(ctx, it)
			return ctx.Err()
		})
	if err != nil {
		return nil, err
	}
	r.report.Skipped = append(r.report.Skipped, skipped...)
	for i, o := range r.Objects {
		if len(o.Machines()) > 0 && !r.used[i] {
			r.report.Skipped = append(r.report.Skipped, cfg.Corpus.Unmet(o.Name()))
		}
	}
	for _, m := range r.pairs.unused() {
		if len(core.OnMachine(m.Key.Arch, r.plain...)) > 0 {
			r.report.NoKernel = append(r.report.NoKernel, m.Name)
		} else {
			r.report.NoObject = append(r.report.NoObject, m.Name)
		}
	}
	r.report.sort()
	return &r.report, nil
}

// run is the state that workers share.
type run struct {
	Config
	pairs  *pairs
	plain  []*core.Object
	cilium []*ciliumObject // of each object
	sets   *core.Sets

	mu     sync.Mutex
	report Report
	used   []bool // whether each object is for some kernel
}

func newRun(ctx context.Context, cfg Config) *run {
	r := &run{Config: cfg, pairs: newPairs(cfg.Minimized), used: make([]bool, len(cfg.Objects))}
	for _, o := range r.Objects {
		c := readCilium(ctx, o.Object, o.Data)
		r.cilium = append(r.cilium, c)
		if c.note != "" || c.missed > 0 {
			r.report.Notes = append(r.report.Notes, Note{o.Name(), c.note, c.missed})
		}
		r.plain = append(r.plain, o.Object)
	}
	r.sets = core.NewSets(r.plain)
	return r
}

// worker has the memory that is reused from kernel to kernel.
type worker struct {
	*run
	full, small core.Kernel
	logs        []*relo.Log // of each object on full, nil until needed
	tables      [2]core.Table
}

// kernel compares one kernel and adds the result to the report.
func (w *worker) kernel(ctx context.Context, it *corpus.Kernel) {
	small := w.pairs.find(it.Key, it.Name, len(w.Corpus.Files) == 1)
	k := &Kernel{Name: it.Name}
	err := it.Load(ctx, &w.full, it.Name)
	var used []int
	for i, o := range w.Objects {
		if err == nil && o.IsFor(&w.full) {
			used = append(used, i)
		}
	}
	if err == nil && len(used) == 0 {
		err = corpus.ErrNoObject
	}
	if small != nil && err == nil {
		k.Minimized = small.Name
		w.logs = make([]*relo.Log, len(w.Objects))
		var full *ciliumTarget
		if full, err = readCiliumTarget(ctx, &w.full, it.BTF, it.Modules); err == nil {
			err = w.compare(ctx, k, full, small.BTF)
		}
		if err == nil {
			err = w.compareTables(ctx, k)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range used {
		w.used[i] = true
	}
	switch rep := &w.report; {
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

var errOrder = errors.New("byte order of the minimized BTF differs from the kernel's")

// compare compares the decisions of each loader on w.full, which is also full, with those on minimized BTF.
func (w *worker) compare(ctx context.Context, k *Kernel, full *ciliumTarget, minimized []byte) error {
	if err := w.small.Load(ctx, "minimized BTF", minimized); err != nil {
		return err
	}
	if w.full.Order() != w.small.Order() {
		return errOrder
	}
	small, err := readCiliumTarget(ctx, &w.small, minimized, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", w.small.Name(), err)
	}
	set := w.sets.For(&w.full)
	if set == nil {
		return corpus.ErrNoObject
	}
	// The tables come first, because Fill limits how deep cilium/ebpf recurses.
	for i, t := range []*core.Kernel{&w.full, &w.small} {
		if err := w.tables[i].Fill(ctx, set, t, nil); err != nil {
			return err
		}
	}
	for i, o := range w.Objects {
		if !o.IsFor(&w.full) {
			continue
		}
		if w.logs[i] == nil {
			if w.logs[i], err = core.Run(ctx, o.Object, &w.full); err != nil {
				return err
			}
		}
		log := w.logs[i]
		smallLog, err := core.Run(ctx, o.Object, &w.small)
		if err != nil {
			return err
		}
		if w.Loader == "" || w.Loader == Libbpf {
			compareLogs(k, log, smallLog)
		}
		if w.Loader == "" || w.Loader == Cilium {
			compareFixups(k, w.cilium[i], log, full, small)
		}
	}
	if w.Loader == "" || w.Loader == Aya {
		return w.compareAya(ctx, k, set)
	}
	return nil
}

// compareAya compares aya's decisions in both tables.
func (w *worker) compareAya(ctx context.Context, k *Kernel, set *core.Set) error {
	for i, o := range set.Objects() {
		records := o.Records()
		for n := range records {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			k.Aya++
			a, b := w.tables[0].Aya(i, n), w.tables[1].Aya(i, n)
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
func (w *worker) compareTables(ctx context.Context, k *Kernel) error {
	if len(k.Differences) > 0 {
		return nil
	}
	d, err := core.Compare(ctx, &w.tables[0], &w.tables[1])
	if d != nil {
		k.differ(Difference{
			Kernel: k.Name, Loader: Libbpf, Object: d.Object, Relocation: d.Relocation,
			What: WhatTable, Full: d.Full, Minimized: d.Minimized,
		})
	}
	return err
}

// Judge compares the decisions of all loaders on one kernel with those on any number of BTFs made from it. It does not use
// the comparison of tables, which is the proof of a minimized BTF. It is not safe for concurrent use.
type Judge struct {
	w      worker
	cilium *ciliumTarget
}

// NewJudge returns the Judge of a kernel without modules. The data must not change while it is in use.
func NewJudge(objects []Object, name string, btf []byte) (*Judge, error) {
	ctx := context.Background()
	j := &Judge{w: worker{run: newRun(ctx, Config{Objects: objects}), logs: make([]*relo.Log, len(objects))}}
	err := j.w.full.Load(ctx, name, btf)
	if err == nil {
		j.cilium, err = readCiliumTarget(ctx, &j.w.full, btf, nil)
	}
	return j, err
}

// Compare returns the relocations on which decisions differ. It fails if a loader cannot read the BTF, or if no object has its
// byte order.
func (j *Judge) Compare(minimized []byte) ([]Difference, error) {
	k := Kernel{Name: j.w.full.Name()}
	err := j.w.compare(context.Background(), &k, j.cilium, minimized)
	return k.Differences, err
}
