// SPDX-License-Identifier: Apache-2.0

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

// Object is a BPF object and its ELF file, which cilium/ebpf reads again.
type Object struct {
	*core.Object
	Data []byte
}

// Config says what to do.
type Config struct {
	Objects   []Object // of either byte order, for any machines, with relocations
	Minimized []Minimized
	Corpus    *corpus.Corpus      // the kernels with their full BTF
	Loader    string              // the one whose decisions are compared; "" for all
	Jobs      int                 // workers, at least 1
	Done      func(walk.Progress) // called after each file of the corpus, by one goroutine at a time; may be nil
}

// Run compares every kernel of the corpus. What cannot be compared is in the
// report; an error is returned only where there is no point in going on, or
// when ctx ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &run{Config: cfg, pairs: newPairs(cfg.Minimized), met: make([]bool, len(cfg.Objects))}
	r.read(ctx)
	skipped, err := walk.Kernels(ctx, walk.Config{Corpus: cfg.Corpus, Jobs: cfg.Jobs, Progress: cfg.Done},
		func() *worker { return &worker{run: r} },
		func(w *worker, _ walk.Rank, it *corpus.Kernel) error {
			w.item(ctx, it)
			return ctx.Err()
		})
	if err != nil {
		return nil, err
	}
	r.report.Skipped = append(r.report.Skipped, skipped...)
	for i, o := range r.Objects {
		if len(o.Machines()) > 0 && !r.met[i] {
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
	met    []bool // the object is for some kernel
}

// read prepares the objects for both loaders.
func (r *run) read(ctx context.Context) {
	for _, o := range r.Objects {
		c := readCilium(ctx, o.Object, o.Data)
		r.cilium = append(r.cilium, c)
		if c.note != "" || c.missed > 0 {
			r.report.Notes = append(r.report.Notes, Note{o.Name(), c.note, c.missed})
		}
		r.plain = append(r.plain, o.Object)
	}
	r.sets = core.NewSets(r.plain)
}

// worker has the memory that is used again for each kernel.
type worker struct {
	*run
	full, small core.Kernel
	logs        []*relo.Log // of each object on full, nil where there is none yet
	tables      [2]core.Table
}

// item compares one kernel and adds the outcome to the report.
func (w *worker) item(ctx context.Context, it *corpus.Kernel) {
	name := it.Name
	small := w.pairs.find(it.Key, it.Name, len(w.Corpus.Files) == 1)
	k := &Kernel{Name: name}
	err := it.Load(ctx, &w.full, name)
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
		err = w.kernel(ctx, k, it, small)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range used {
		w.met[i] = true
	}
	switch rep := &w.report; {
	case errors.Is(err, corpus.ErrNoObject):
		rep.NoObject = append(rep.NoObject, name)
	case err != nil:
		rep.Skipped = append(rep.Skipped, &corpus.Error{Path: name, Err: err})
	case small == nil:
		rep.NotMinimized = append(rep.NotMinimized, name)
	default:
		rep.Kernels = append(rep.Kernels, *k)
	}
}

var errOrder = errors.New("byte order of the minimized BTF differs from the kernel's")

// kernel compares the decisions of both loaders on one kernel, which is w.full.
func (w *worker) kernel(ctx context.Context, k *Kernel, it *corpus.Kernel, m *Minimized) error {
	w.logs = make([]*relo.Log, len(w.Objects))
	full, err := readCiliumTarget(ctx, &w.full, it.BTF, it.Modules)
	if err != nil {
		return err
	}
	small, err := w.load(ctx, m.BTF)
	if err != nil {
		return err
	}
	if err := w.fillTables(ctx); err != nil { // first: it bounds how deep cilium/ebpf goes
		return err
	}
	if err := w.loaders(ctx, k, full, small); err != nil {
		return err
	}
	return w.compareTables(ctx, k)
}

// load makes w.small the minimized BTF.
func (w *worker) load(ctx context.Context, minimized []byte) (*ciliumTarget, error) {
	if err := w.small.Load(ctx, "minimized BTF", minimized); err != nil {
		return nil, err
	}
	if w.full.Order() != w.small.Order() {
		return nil, errOrder
	}
	small, err := readCiliumTarget(ctx, &w.small, minimized, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.small.Name(), err)
	}
	return small, nil
}

// compares reports whether the decisions of a loader are to be compared.
func (w *worker) compares(loader string) bool { return w.Loader == "" || w.Loader == loader }

// loaders compares the decisions of each loader on w.full with those on w.small.
func (w *worker) loaders(ctx context.Context, k *Kernel, full, small *ciliumTarget) (err error) {
	met := false
	for i, o := range w.Objects {
		if !o.IsFor(&w.full) {
			continue
		}
		met = true
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
		if w.compares(Libbpf) {
			k.Records += len(log.Entries)
			compareLogs(log, smallLog, func(d Difference) { k.Differences = append(k.Differences, d) })
		}
		if w.compares(Cilium) {
			w.compareFixups(k, w.cilium[i], log, full, small)
		}
	}
	if !met {
		return corpus.ErrNoObject
	}
	return w.compareAya(ctx, k)
}

// compareAya compares aya's decisions in both tables.
func (w *worker) compareAya(ctx context.Context, k *Kernel) error {
	if !w.compares(Aya) {
		return nil
	}
	for i, o := range w.sets.For(&w.full).Objects() {
		records := o.Records()
		for n := range records {
			if n%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			k.Aya++
			a, b := w.tables[0].Aya(i, n), w.tables[1].Aya(i, n)
			if r := &records[n]; !a.Same(&b) {
				k.Differences = append(k.Differences, Difference{
					Kernel: k.Name, Loader: Aya, Object: o.Name(), Program: r.Program, Section: r.Section, Index: r.Index,
					Relocation: o.Relocation(r), What: WhatDecision, Full: a.String(), Minimized: b.String(),
				})
			}
		}
	}
	return nil
}

// fillTables takes the outcomes on w.full and on w.small.
func (w *worker) fillTables(ctx context.Context) error {
	s := w.sets.For(&w.full)
	if s == nil {
		return corpus.ErrNoObject
	}
	for i, t := range []*core.Kernel{&w.full, &w.small} {
		if err := w.tables[i].Fill(ctx, s, t, nil); err != nil {
			return err
		}
	}
	return nil
}

// compareTables looks for what no log shows, and so reports nothing where they
// differ already.
func (w *worker) compareTables(ctx context.Context, k *Kernel) error {
	if len(k.Differences) > 0 {
		return nil
	}
	d, err := core.Compare(ctx, &w.tables[0], &w.tables[1])
	if d != nil {
		k.Differences = append(k.Differences, Difference{
			Kernel: k.Name, Loader: Libbpf, Object: d.Object, Relocation: d.Relocation,
			What: WhatTable, Full: d.Full, Minimized: d.Minimized,
		})
	}
	return err
}

// compareFixups compares cilium/ebpf's decisions on both BTFs, and on the full
// one with libbpf's.
func (w *worker) compareFixups(k *Kernel, c *ciliumObject, log *relo.Log, full, small *ciliumTarget) {
	for gi := range c.groups {
		g := &c.groups[gi]
		targets := full.vmlinux
		module := inModule(&log.Entries[g.records[0]])
		if module {
			targets = full.all
		}
		f, s := g.relocate(targets, c.order), g.relocate(small.vmlinux, c.order)
		for i, rec := range g.records {
			e := &log.Entries[rec]
			ids := e.Kind == relo.TargetTypeID
			k.Fixups++
			// cilium/ebpf has no type IDs for modules. In a merged BTF it cannot
			// know that a type is a module's.
			merged := ids && module && s.err == nil
			if !merged && !f.same(&s, i, ids) {
				d := difference(e, Cilium)
				d.Program, d.What, d.Full, d.Minimized = g.program, WhatDecision, f.text(i), s.text(i)
				k.Differences = append(k.Differences, d)
			}
			if loadersDiffer(e, &f, i) {
				k.Disagreements = append(k.Disagreements, Disagreement{
					Kernel: k.Name, Object: e.Object, Program: g.program, Section: e.Section, Index: e.Index,
					Relocation: e.Relocation(), Libbpf: decide(e).outcome, Cilium: f.text(i),
				})
			}
		}
	}
}

// inModule reports whether a relocation's candidates are a module's, which
// they are where vmlinux has none, here as in the merged BTF.
func inModule(e *relo.Entry) bool {
	return len(e.Candidates) > 0 && e.Candidates[0].Module != nil && *e.Candidates[0].Module != ""
}
