// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Config says what to do.
type Config struct {
	Objects []*rule.Object
	Corpus  *corpus.Corpus
	Jobs    int                 // workers, at least 1
	Done    func(walk.Progress) // called after each file of the corpus, by one goroutine at a time; may be nil
	Doing   func(what string)   // called with OBJECT:PROGRAM before it is explored, by many goroutines; may be nil

	// Loaders are those that are judged. None are all of [rule.Loaders]. Aya is alone.
	Loaders []rule.Loader

	// Prefer has, by object, the loader whose verdict counts; "", or none at all, for the worst of Loaders.
	Prefer []rule.Loader

	// Policy says which programs of an object have to work.
	Policy verdict.Policy

	// Rodata are globs of the names of read-only variables that the loader may
	// set before it loads, so that their value in the object does not count.
	Rodata []string

	// NoOwnBTF says that kernels have no BTF of their own where nothing else shows whether they do.
	NoOwnBTF bool

	// Types are types that the loader adds to those of each kernel. A type that the kernel has goes before them. aya adds none.
	Types []Types
}

func (c *Config) settable(variable string) bool {
	return slices.ContainsFunc(c.Rodata, func(g string) bool { return isGlobOf(g, variable) })
}

func isGlobOf(glob, name string) bool {
	ok, _ := path.Match(glob, name)
	return ok
}

// UnmatchedRodata returns those of Rodata that match no variable of the objects.
func (c *Config) UnmatchedRodata() []string {
	unmatched := slices.Clone(c.Rodata)
	for _, o := range c.Objects {
		for i := range o.Data {
			for _, name := range o.Data[i].Variables() {
				unmatched = slices.DeleteFunc(unmatched, func(g string) bool { return isGlobOf(g, name) })
			}
		}
	}
	return unmatched
}

// Run judges every program of the objects on every kernel of the corpus. An
// error is returned only where there is no point in going on, or when ctx
// ends.
func Run(ctx context.Context, cfg Config) (*verdict.Report, error) {
	r := newRun(cfg)
	if err := r.loader.add(ctx, cfg.Types); err != nil {
		return nil, err
	}
	skipped, err := walk.Kernels(ctx, walk.Config{Corpus: cfg.Corpus, Jobs: cfg.Jobs, Progress: cfg.Done},
		func() *target { return new(target) },
		func(t *target, _ int, it *corpus.Kernel) error {
			r.item(ctx, t, it)
			return ctx.Err()
		})
	if err != nil {
		return nil, err
	}
	r.skipped = append(r.skipped, skipped...)
	return r.report(ctx)
}

// run is the state that workers share.
type run struct {
	Config
	setup  verdict.Setup
	loader dryRun
	want   *rule.Wanted

	found   *ledger
	equal   workers.Once[corpus.Identity, kernelResult] // keyed by contents, machine and version
	mu      sync.Mutex
	results results
	kernels []kernelResult

	exploring map[*bpfobj.Program]*sync.Mutex // held while a program is explored
	sets      map[string][]int                // sets of kernels, shared in the report
	verdicts  map[string][]rule.Status        // verdicts on each kernel, shared in the report
	shapes    map[string]*rule.Shape          // keyed by text
	skipped   []*corpus.Error

	inspected func(*rule.Inventory) // called with each kernel's inventory; nil except in tests
}

// kernelResult is one kernel and what became of each object on it. Equal kernels share slices.
type kernelResult struct {
	key      kernel.Key
	name     string
	path     string
	arch     string
	word     int      // size of pointers in bytes
	modules  []string // see verdict.Column
	programs []list   // findings on programs, per object: see programs
	whole    []list   // needs of each object, whichever of its programs are loaded
	shapes   []shapes // shapes of programs, per object
}

func newRun(cfg Config) *run {
	if len(cfg.Loaders) == 0 {
		cfg.Loaders = rule.Loaders()
	}
	r := &run{
		Config:    cfg,
		setup:     verdict.Setup{Objects: cfg.Objects, Loaders: cfg.Loaders, Prefer: cfg.Prefer, Policy: cfg.Policy},
		loader:    newDryRun(cfg.Objects, slices.Contains(cfg.Loaders, rule.Aya)),
		want:      rule.NewWanted(cfg.Objects),
		found:     newLedger(),
		exploring: make(map[*bpfobj.Program]*sync.Mutex),
		sets:      make(map[string][]int),
		verdicts:  make(map[string][]rule.Status),
		shapes:    make(map[string]*rule.Shape),
	}
	for _, o := range cfg.Objects {
		for i := range o.Programs {
			r.exploring[&o.Programs[i]] = new(sync.Mutex)
		}
	}
	return r
}

// item judges all programs on one kernel, or takes the results of an equal one.
func (r *run) item(ctx context.Context, t *target, it *corpus.Kernel) {
	var res *kernelResult
	err := it.Load(ctx, &t.Target, it.Path)
	if err == nil {
		// Of its name, results depend on the version and the machine.
		res, _ = r.equal.Do(it.Identity(fmt.Append(nil, rule.VersionOf(it.Key))), func() (res *kernelResult) {
			res, err = r.judge(ctx, t, it)
			return res
		})
		if res == nil && err == nil { // judging the equal kernel failed
			res, err = r.judge(ctx, t, it)
		}
	}
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.skipped = append(r.skipped, &corpus.Error{Path: it.Path, Err: err})
		return
	}
	own := *res
	own.key, own.name, own.path = it.Key, it.Name, it.Path
	r.kernels = append(r.kernels, own)
}

// judge judges all programs on one kernel, which is loaded.
func (r *run) judge(ctx context.Context, t *target, it *corpus.Kernel) (*kernelResult, error) {
	var bare, apart []rule.Decisions
	var on []*target
	loaded, err := r.loader.on(ctx, t)
	if err == nil {
		apart, on, err = r.loader.apart(ctx, t, it, loaded)
	}
	together := make([]rule.Decisions, len(loaded))
	for i := range apart {
		if apart[i] != nil {
			together[i], loaded[i] = loaded[i], apart[i]
		}
	}
	if err == nil {
		bare, err = r.loader.bare(ctx, t, it, loaded)
	}
	if err != nil {
		return nil, err
	}
	res := new(kernelResult)
	k := rule.Inspect(ctx, &t.Target, r.want, it, r.NoOwnBTF)
	if r.inspected != nil {
		r.inspected(k)
	}
	res.arch, res.word = k.Arch, t.PointerSize()
	all := make([][]*programCode, len(loaded)) // code of programs, per object
	for i, d := range loaded {
		for j := range d {
			res.modules = append(res.modules, d.Modules(j)...)
		}
		p := r.pair(i, k, d, cmp.Or(on[i], t), nil, together[i])
		res.whole = append(res.whole, r.found.note(p.scenes.Needs()))
		for j := 0; j < len(p.object.Programs) && ctx.Err() == nil; j++ {
			all[i] = append(all[i], r.program(p, j))
		}
		res.shapes = append(res.shapes, r.shapesOf(all[i]))
	}
	slices.Sort(res.modules)
	res.modules = slices.Compact(res.modules)
	r.explore(ctx, slices.Concat(all...))
	for i, d := range loaded {
		var without *objectCode
		if bare != nil && bare[i] != nil {
			without = r.pair(i, k, bare[i], t.bare, d, together[i])
		}
		res.programs = append(res.programs, r.programs(ctx, all[i], without))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return res, nil
}

// pair returns object i on a kernel.
func (r *run) pair(
	i int, k *rule.Inventory, d rule.Decisions, t *target, withModules, together rule.Decisions,
) *objectCode {
	o := r.Objects[i]
	c := rule.NewScenes(o, k, d, rule.Loading{
		SetsMap:     func(m string) bool { return r.Policy.SetsMap(o, m) },
		Added:       len(r.loader.adds) > 0,
		Tail:        func(j int) bool { return r.Policy.TailCalled(o, j) },
		Linked:      t.linked(o.Relocations()),
		WithModules: withModules,
		Together:    together,
	}, r.setup.LoadersOf(o))
	return &objectCode{
		scenes: c, object: o, settable: r.settable, results: &r.results, found: r.found, ahead: new(atomic.Int64),
		input: &memoInput{c.Input().Features, c.Value},
	}
}

// programs judges the code of all programs of an object. It returns a list of two lists for each: of the findings on it, and of
// those on its code. bare is the object on the kernel without modules, nil if that is the same.
func (r *run) programs(ctx context.Context, all []*programCode, bare *objectCode) list {
	var lists []int32
	for j, e := range all {
		if ctx.Err() != nil {
			return 0
		}
		own, code := e.own, list(0)
		if e.scenes.ForKernel() {
			code = r.code(ctx, e)
		}
		if bare != nil {
			own, code = r.withoutModules(ctx, bare, j, own, code)
		}
		lists = append(lists, int32(own), int32(code))
	}
	return r.found.keep(lists)
}

// program judges program j of an object without its code.
func (r *run) program(p *objectCode, j int) *programCode {
	e := p.scenes.Evaluate(j)
	return &programCode{objectCode: p, program: e, pr: &p.object.Programs[j], own: r.found.note(e.Findings)}
}

// explore explores programs whose code is not judged yet, where several workers can. A program is explored on one kernel
// after the other, so that kernels share what is found.
func (r *run) explore(ctx context.Context, all []*programCode) {
	var pending []*programCode
	for _, e := range all {
		if e.scenes.ForKernel() && e.dependsOnCode() {
			if _, known := e.results.programs.find(e.key(), e.input); !known {
				pending = append(pending, e)
			}
		}
	}
	explore := func(e *programCode, wait bool) {
		mu := r.exploring[e.pr]
		if wait {
			mu.Lock()
		} else if !mu.TryLock() {
			return
		}
		defer mu.Unlock()
		if e.exploration == nil && e.ahead.Load() <= limits.ObjectWork {
			if r.Doing != nil {
				r.Doing(path.Base(e.object.Name()) + ":" + e.object.Funcs[e.pr.Fn].Name)
			}
			e.exploration = e.explore(ctx, false)
			e.ahead.Add(int64(e.exploration.Work))
		}
	}
	workers.Together(r.perKernel(), func() {
		for _, wait := range []bool{false, true} {
			for _, e := range pending {
				explore(e, wait)
			}
		}
	})
}

// perKernel is how many workers explore the programs on one kernel.
func (r *run) perKernel() int {
	if r.Corpus == nil {
		return 1
	}
	return (r.Jobs + len(r.Corpus.Files) - 1) / max(len(r.Corpus.Files), 1)
}

// code judges the code of a program, or returns the earlier result for equal input.
func (r *run) code(ctx context.Context, e *programCode) list {
	if e.findings > limits.Findings {
		return r.found.note([]rule.Finding{{
			Status: rule.Unknown, Code: rule.AnalysisFindings, Subject: "findings", Args: rule.Args{Max: limits.Findings},
		}})
	}
	key := e.key()
	c, ok := e.results.programs.find(key, e.input)
	if !ok {
		var all []*interp.Result
		var r interp.Relevant
		c.findings, all = e.code(ctx)
		for _, x := range all {
			c.work += x.Work
			r.Add(x.Relevant())
		}
		if all != nil {
			e.results.programs.add(key, r, e.input, c)
		}
	}
	e.exploration = nil // an exploration is large
	e.work += c.work
	e.findings += len(r.found.of(c.findings))
	return c.findings
}

// report puts all together in an order that does not depend on timing. An error
// is ctx's.
func (r *run) report(ctx context.Context) (*verdict.Report, error) {
	slices.SortFunc(r.kernels, func(a, b kernelResult) int {
		return cmp.Or(a.key.Compare(b.key), cmp.Compare(a.name, b.name), cmp.Compare(a.path, b.path))
	})
	nameModules(r.found.all)
	rep := &verdict.Report{Version: verdict.ReportVersion, Skipped: r.skippedList()}
	for _, k := range r.kernels {
		rep.Kernels = append(rep.Kernels, verdict.NewColumn(k.name, k.key, k.arch, k.modules))
	}
	for i, o := range r.Objects {
		alike, loaders := r.alike(i), r.setup.LoadersOf(o)
		for j := range o.Programs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rep.Programs = append(rep.Programs, r.row(i, j, alike, loaders))
		}
	}
	needs := func(k, object int) []rule.Finding { return r.found.read(r.kernels[k].whole[object]) }
	if err := r.setup.Judge(ctx, rep, needs); err != nil {
		return nil, err
	}
	return rep, nil
}

func (r *run) skippedList() []*corpus.Error {
	out := slices.Clone(r.skipped)
	for i, o := range r.Objects {
		met := slices.ContainsFunc(r.kernels, func(k kernelResult) bool {
			return rule.Worst(r.found.read(k.whole[i])) != rule.Other
		})
		if !met && len(r.kernels) > 0 {
			out = append(out, r.Corpus.Unmet(o.Name()))
		}
	}
	slices.SortFunc(out, (*corpus.Error).Compare)
	return out
}

// row collects the results of program j of object i. alike is the result of alike for the object, and loaders have a verdict that counts.
func (r *run) row(i, j int, alike map[list]kernelSet, loaders []rule.Loader) verdict.ProgramRow {
	o := r.Objects[i]
	pr := &o.Programs[j]
	p := verdict.ProgramRow{
		Object: o.Name(), Name: o.ProgramName(j), Section: pr.Section,
		AutoLoad: pr.AutoLoad, Tail: r.Policy.TailCalled(o, j),
	}
	p.Notes = o.Notes(j, loaders, r.Loaders, func(m string) bool { return r.Policy.SetsMap(o, m) })
	p.Findings = r.tally(j, alike)
	blameLoader(p.Findings, len(r.kernels))
	p.Sum(len(r.kernels))
	p.Status, p.Load = r.kept(p.Status), r.kept(p.Load)
	p.Findings = r.changed(p.Findings, i, j, p.Status)
	verdict.SortFindings(p.Findings)
	return p
}
