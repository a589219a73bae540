// SPDX-License-Identifier: Apache-2.0

// Package generate is the main job: every kernel of a corpus through the dry
// run, the minimizer and its proof, on several workers.
package generate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Config says what to do.
type Config struct {
	Objects []*core.Object // of either byte order, for any machines
	Corpus  *corpus.Corpus
	Options minimize.Options
	Jobs    int           // workers, at least 1
	Shard   archive.Shard // which part of the corpus, the zero value is all of it
	Old     *Old          // what an earlier run made, or nil
	Hash    bool          // note the hashes of source files, for a later run to compare
	Keyed   bool          // leave out kernels that no host would find in an archive

	Done func(walk.Progress) // called after each file of the corpus, by one goroutine at a time; may be nil
}

// Stages is what workers spent their time on, added up over all of them.
type Stages struct {
	Hash     time.Duration // of source files
	Read     time.Duration // and decompress
	Scan     time.Duration // types and names of the kernel
	Minimize time.Duration // match, emit, prove
}

// Stage is one of the stages by its name.
type Stage struct {
	Name string
	Time time.Duration
}

// All returns the stages in their order.
func (s *Stages) All() []Stage {
	return []Stage{{"hash", s.Hash}, {"read", s.Read}, {"scan", s.Scan}, {"minimize", s.Minimize}}
}

// Kernel is what became of one kernel.
type Kernel struct {
	Key        kernel.Key
	Name, Path string // as in corpus.Kernel
	SourceSize int64  // bytes on disk
	RawSize    int64  // bytes of its BTF, modules included
	Machine    string // its key's or else as its BTF shows, "" if nothing tells
	BTF        []byte // minimized; equal ones share memory
	Resolved   int    // relocations, each once per object
	Reused     bool   // taken over from an earlier run
	Shared     bool   // made of another kernel, in which relocations look at the same

	// SHA256 of the files that it was read from: the kernel's, then those of
	// modules. Only if Config.Hash is set and all of them were read whole.
	Sources [][sha256.Size]byte

	from      *corpus.File
	byFile    bool // the path does not tell the key
	issues    []issue
	unmatched []string // patterns of Options.Keep that name nothing in it
}

// issue is a relocation that was not resolved.
type issue struct {
	object, relo string
	result       relo.Result
}

// Count returns how many relocations, each once per object, came to a result
// that is a failure: relo.Resolved and Absent are not counted.
func (k *Kernel) Count(r relo.Result) (n int) {
	for _, is := range k.issues {
		if is.result == r {
			n++
		}
	}
	return n
}

// Unresolved is a relocation of an object that some kernels do not resolve.
type Unresolved struct {
	Object  string      `json:"object"`
	Relo    string      `json:"relocation"`
	Result  relo.Result `json:"result"`
	Kernels []string    `json:"kernels"`

	// Where it is poisoned: the kernels on which the verifier can reach it, and those where it cannot, if [Reach] was asked.
	Reached []string `json:"reached,omitempty"`
	Guarded []string `json:"guarded,omitempty"`
}

// Report is the outcome of a run.
type Report struct {
	Kernels    []Kernel // in order of name
	Skipped    []*corpus.Error
	Unresolved []Unresolved // absent ones are no failure and not listed
	Unmatched  []Unmatched
	Stages     Stages

	noObject []Kernel // skipped because no object is for their machine
	part     bool     // of a corpus
}

// Run minimizes every kernel of the corpus. Kernels that cannot be done are
// listed in the report; an error is returned only where there is no point in going on,
// or when ctx ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &run{
		Config: cfg, minimizer: minimize.New(cfg.Objects, cfg.Options), files: inShard(cfg.Shard, cfg.Corpus.Files), parts: partsFor(&cfg),
		met: make(map[*core.Object]bool), distinct: make(map[[sha256.Size]byte][]byte), outcomes: make(map[[sha256.Size]byte]*outcome),
	}
	var err error
	r.report.Skipped, err = walk.Files(ctx, r.files, r.order(), cfg.Jobs, r.newWorker, func(ctx context.Context, w *worker, i int) error {
		return w.file(ctx, r.files[i])
	}, cfg.Done)
	if err != nil {
		return nil, err
	}
	if first(cfg.Shard) {
		r.report.Skipped = append(r.report.Skipped, cfg.Corpus.Skipped...)
	}
	for _, w := range r.workers {
		r.report.Stages.add(w.stages)
	}
	r.workers, r.parts, r.outcomes = nil, nil, nil // what follows takes memory, too
	r.unmet()
	if r.finish(ctx); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &r.report, nil
}

// unmet tells of objects for some machines that no kernel is for. A part of a corpus need not have one, and one that is
// for any machine of a byte order is there by default: bpf2go makes two.
func (r *run) unmet() {
	if r.Shard.N > 1 || len(r.report.Kernels) == 0 {
		return
	}
	for _, o := range r.Objects {
		if o.Empty() == "" && len(o.Machines()) > 0 && !r.met[o] {
			r.report.Skipped = append(r.report.Skipped, r.Corpus.Unmet(o.Name()))
		}
	}
}

// One minimizes the only kernel of some sources, which are as for corpus.Open. Its report has that kernel. What it
// has as skipped are objects that are not for the kernel.
func One(ctx context.Context, sources []string, objects []*core.Object, opts minimize.Options) (*Report, error) {
	c, err := corpus.Open(ctx, sources, corpus.Options{Map: true})
	if err != nil {
		return nil, err
	}
	several := func(n int) error {
		return fmt.Errorf("%s: holds %d kernels, want one", sources[len(sources)-1], n)
	}
	if n := len(c.Files); n != 1 {
		return nil, several(n)
	}
	rep, err := Run(ctx, Config{Objects: objects, Corpus: c, Options: opts, Jobs: 1})
	if err != nil {
		return nil, err
	}
	for _, e := range rep.Skipped {
		if !errors.Is(e, corpus.ErrUnmet) {
			return nil, e
		}
	}
	if n := len(rep.Kernels); n != 1 {
		return nil, several(n)
	}
	return rep, nil
}

// order returns the numbers of the files as they are best done: what an earlier
// run did not do comes first, as the others probably need not be read.
func (r *run) order() []int {
	var done, todo []int
	for _, i := range walk.LargestFirst(r.files) {
		if r.Old.find(r.files[i]).Kernel == nil {
			todo = append(todo, i)
		} else {
			done = append(done, i)
		}
	}
	return append(todo, done...)
}

// run is the state that workers share.
type run struct {
	Config
	minimizer *minimize.Minimizer // to be cloned
	files     []*corpus.File
	parts     *corpus.Parts // nil if kernels are to be read as a whole

	mu       sync.Mutex
	outcomes map[[sha256.Size]byte]*outcome
	workers  []*worker
	report   Report
	met      map[*core.Object]bool        // used on some kernel
	distinct map[[sha256.Size]byte][]byte // minimized BTFs by their hash
}

// worker has the memory that is used again for each kernel.
type worker struct {
	*run
	scratch   corpus.Scratch
	target    core.Kernel
	minimizer *minimize.Minimizer
	stages    Stages
}

func (r *run) newWorker() *worker {
	w := &worker{run: r, minimizer: r.minimizer.Clone()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = append(r.workers, w)
	return w
}

// file does the kernels of one file.
func (w *worker) file(ctx context.Context, f *corpus.File) error {
	var sums [][sha256.Size]byte
	if w.Hash || w.Old != nil {
		start := time.Now()
		var err error
		sums, err = f.Sums(ctx)
		w.stages.Hash += time.Since(start)
		if err != nil {
			return err
		}
	}
	if k := w.Old.take(f, sums); k != nil {
		return w.add(*k)
	}
	if done, err := w.packed(ctx, f, sums); done {
		return err
	}
	var kernels []Kernel
	var failed []error
	start, busy := time.Now(), time.Duration(0)
	err := f.Read(ctx, &w.scratch, func(it *corpus.Kernel) error {
		if w.Keyed && !findable(it.Key) {
			failed = append(failed, &corpus.Error{Path: it.Path, Err: corpus.ErrNoKey})
			return nil
		}
		if err := checkFileName(it); err != nil {
			failed = append(failed, &corpus.Error{Path: it.Path, Err: err})
			return nil
		}
		began := time.Now()
		k, err := w.kernel(ctx, it)
		if err == nil || errors.Is(err, minimize.ErrNoObject) {
			kernels = append(kernels, *k)
		} else {
			failed = append(failed, err)
		}
		busy += time.Since(began)
		return nil
	})
	w.stages.Read += time.Since(start) - busy
	for _, k := range kernels {
		k.from = f
		// What was damaged once is not to be taken over silently.
		if err == nil && len(failed) == 0 && len(kernels) == 1 {
			k.Sources, k.byFile = sums, !f.Key.Known()
		}
		if err := w.add(k); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, err)...)
}

// add puts a kernel into the report. One without BTF is one that no object is
// for.
func (w *worker) add(k Kernel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.BTF == nil {
		w.report.noObject = append(w.report.noObject, k)
		return &corpus.Error{Path: k.Path, Err: minimize.ErrNoObject}
	}
	for _, o := range core.OnMachine(k.Machine, w.Objects...) {
		w.met[o] = true
	}
	w.share(&k)
	w.report.Kernels = append(w.report.Kernels, k)
	return nil
}

// share makes equal minimized BTFs one. The caller holds mu.
func (r *run) share(k *Kernel) {
	sum := sha256.Sum256(k.BTF)
	if old, ok := r.distinct[sum]; ok {
		k.BTF = old
	} else {
		r.distinct[sum] = k.BTF
	}
}

// add adds what a worker spent its time on.
func (s *Stages) add(o Stages) {
	s.Hash += o.Hash
	s.Read += o.Read
	s.Scan += o.Scan
	s.Minimize += o.Minimize
}

// kernel minimizes one kernel. Errors name its path.
func (w *worker) kernel(ctx context.Context, it *corpus.Kernel) (*Kernel, error) {
	sound := false
	defer func() {
		if !sound { // a panic: what they are in the middle of must not show in the next kernel
			w.target, w.minimizer = core.Kernel{}, w.run.minimizer.Clone()
		}
	}()
	k := &Kernel{Key: it.Key, Name: it.Name, Path: it.Path, SourceSize: it.SourceSize, RawSize: int64(len(it.BTF))}
	for _, m := range it.Modules {
		k.RawSize += int64(len(m.BTF))
	}
	err := w.minimize(ctx, k, it)
	if sound = true; err != nil {
		return k, &corpus.Error{Path: k.Path, Err: err}
	}
	return k, nil
}

func (w *worker) minimize(ctx context.Context, k *Kernel, it *corpus.Kernel) error {
	start := time.Now()
	err := it.Load(ctx, &w.target, "btf")
	w.stages.Scan += time.Since(start)
	if err != nil {
		return fmt.Errorf("btf: %w", err)
	}
	k.Machine = w.target.Machine()
	start = time.Now()
	w.target.Part = it.Part
	res, err := w.minimizer.Minimize(ctx, &w.target)
	w.stages.Minimize += time.Since(start)
	if err != nil {
		return err
	}
	k.BTF, k.unmatched = res.BTF, res.Unmatched
	for _, d := range res.Decisions {
		switch d.Result {
		case relo.Resolved, relo.Absent:
			k.Resolved++
		default:
			k.issues = append(k.issues, issue{d.Object, d.Relocation(), d.Result})
		}
	}
	return nil
}

// finish puts the report in an order that does not depend on timing, and
// drops kernels that stand in the way of another one.
func (r *run) finish(ctx context.Context) {
	rep := &r.report
	slices.SortFunc(rep.Kernels, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(a.FileName(), b.FileName()), cmp.Compare(a.Path, b.Path))
	})
	kept := rep.Kernels[:0]
	for _, k := range rep.Kernels {
		if n := len(kept); n > 0 && kept[n-1].FileName() == k.FileName() {
			id, first := k.FileName(), &kept[n-1]
			if k.Key.Known() {
				id = k.Key.String()
			}
			same := corpus.SameContent(ctx, first.from, first.Path, k.from, k.Path)
			rep.Skipped = append(rep.Skipped, &corpus.Error{Path: k.Path, Err: corpus.Second(id, first.Path, same)})
			continue
		}
		kept = append(kept, k)
	}
	rep.Kernels = kept
	slices.SortFunc(rep.Skipped, (*corpus.Error).Compare)
	r.unresolved()
	rep.Unmatched, rep.part = unmatchedOf(rep.Kernels), r.Shard.N > 1
}

// unresolved collects the issues of all kernels, those of most kernels first.
func (r *run) unresolved() {
	rep := &r.report
	at := make(map[issue]int)
	for _, k := range rep.Kernels {
		for _, is := range k.issues {
			i, ok := at[is]
			if !ok {
				i = len(rep.Unresolved)
				at[is] = i
				rep.Unresolved = append(rep.Unresolved, Unresolved{Object: is.object, Relo: is.relo, Result: is.result})
			}
			rep.Unresolved[i].Kernels = append(rep.Unresolved[i].Kernels, k.Name)
		}
	}
	slices.SortFunc(rep.Unresolved, func(a, b Unresolved) int {
		return cmp.Or(-cmp.Compare(len(a.Kernels), len(b.Kernels)), cmp.Compare(a.Relo, b.Relo), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Result, b.Result))
	})
}

// FileName returns where the kernel's BTF stands in a tree: BTFHub's
// ID/VERSION_ID/ARCH/RELEASE.btf as far as it is known.
func (k *Kernel) FileName() string {
	if k.Key.Known() {
		return k.Key.FileName()
	}
	base := path.Base(filepath.ToSlash(k.Path))
	if k.Key.Release != "" {
		base = k.Key.Release
	}
	return strings.TrimSuffix(base, kernel.FileSuffix) + kernel.FileSuffix
}

// checkFileName returns an error if a kernel's file cannot have the name that FileName returns.
func checkFileName(it *corpus.Kernel) error {
	k := Kernel{Key: it.Key, Path: it.Path}
	return output.CheckName(k.FileName())
}

// findable says whether a host finds a kernel of this key: without the distribution it does, by arch and release.
func findable(k kernel.Key) bool { return k.Arch != "" && k.Release != "" }

// OutputKey returns the key under which an archive has the kernel: its own or,
// where that is not known, what its file's name tells.
func (k *Kernel) OutputKey() kernel.Key {
	if findable(k.Key) {
		return k.Key
	}
	if key, err := kernel.ParseFileName(k.FileName()); err == nil {
		return key
	}
	return k.Key
}

// Archive returns the kernels as an archive has them.
func (r *Report) Archive() []archive.Kernel {
	kernels := make([]archive.Kernel, len(r.Kernels))
	for i := range r.Kernels {
		kernels[i] = archive.Kernel{Key: r.Kernels[i].OutputKey(), BTF: r.Kernels[i].BTF}
	}
	return kernels
}

// Distinct returns the number of different minimized BTFs, and the bytes of
// all together.
func (r *Report) Distinct() (n int, bytes int64) {
	seen := make(map[*byte]bool)
	for _, k := range r.Kernels {
		bytes += int64(len(k.BTF))
		if !seen[&k.BTF[0]] {
			seen[&k.BTF[0]] = true
			n++
		}
	}
	return n, bytes
}
