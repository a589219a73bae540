// SPDX-License-Identifier: Apache-2.0

// Package generate runs the dry run, the minimizer and its proof on every kernel of a corpus, with several workers.
package generate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Config configures a run.
type Config struct {
	Objects []*core.Object // objects in either byte order, for any machines
	Corpus  *corpus.Corpus
	Options minimize.Options
	Jobs    int           // workers, at least 1
	Shard   archive.Shard // the part of the corpus to process; the zero value is all of it
	Old     Old           // results of an earlier run to reuse, or nil
	Hash    bool          // hash source files, so that a later run can reuse the results
	Keyed   bool          // skip kernels that a host cannot find in an archive

	Done func(walk.Progress) // called after each file of the corpus, never concurrently; may be nil
}

// Kernel is the result for one kernel.
type Kernel struct {
	Key        kernel.Key
	Name, Path string // Name and Path of the corpus.Kernel
	SourceSize int64  // bytes on disk
	RawSize    int64  // bytes of its BTF, including modules
	Machine    string // from its key or its BTF; "" if unknown
	BTF        []byte // minimized; kernels with equal results share memory
	Resolved   int    // relocations, counted once per object
	Reused     bool   // taken from an earlier run
	Shared     bool   // the result of another kernel with the same relevant types

	// Sources are the hashes of the kernel's file and of its modules' files. They are only set if Config.Hash is set and
	// everything was read without an error.
	Sources []Sum

	none      error // why no object is for it, if that is so
	from      *corpus.File
	byFile    bool // the path does not contain the key
	issues    []*Issue
	unmatched []string // patterns of Options.Keep that match none of its types
}

// Issue is a relocation of an object that is not resolved.
type Issue struct {
	Object string      `json:"object"`
	Relo   string      `json:"relocation"`
	Result relo.Result `json:"result"`

	// Modules that define the type of an ambiguous relocation differently, if only modules have it, with commas between them.
	Modules string `json:"modules,omitempty"`
}

// compare orders issues.
func (is Issue) compare(o Issue) int {
	return cmp.Or(cmp.Compare(is.Object, o.Object), cmp.Compare(is.Relo, o.Relo), cmp.Compare(is.Result, o.Result), cmp.Compare(is.Modules, o.Modules))
}

// Unresolved is an issue with its kernels.
type Unresolved struct {
	Issue
	Kernels []string `json:"kernels"`
}

// Report is the result of a run.
type Report struct {
	Kernels    []Kernel // sorted by name
	Skipped    []*corpus.Error
	Unresolved []Unresolved // relocations without a result, except those whose result is Absent
	Unmatched  []Unmatched
	Stages     map[string]time.Duration // the time of all workers for each stage of their work

	Corpus *corpus.Corpus // the corpus that was read

	part bool // the run reads one shard of the corpus
}

// Run minimizes every kernel of the corpus. The report lists kernels that failed. Run returns an error only if it cannot
// continue, or when ctx ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &run{
		Config: cfg, minimizer: minimize.New(cfg.Objects, cfg.Options), files: inShard(cfg.Shard, cfg.Corpus.Files), parts: readParts(&cfg),
		used: make(map[*core.Object]bool), distinct: make(map[[sha256.Size]byte][]byte),
	}
	r.report.Stages = map[string]time.Duration{"hash": 0, "read": 0, "scan": 0, "minimize": 0}
	if len(r.files) < len(cfg.Corpus.Files) {
		cfg.Corpus.Unread()
	}
	var err error
	r.report.Skipped, err = walk.Files(ctx, r.files, walk.LargestFirst(r.files), cfg.Jobs, r.newWorker, func(ctx context.Context, w *worker, i int) error {
		return w.file(ctx, r.files[i])
	}, cfg.Done)
	if err != nil {
		return nil, err
	}
	r.same.Clear() // frees memory for the caller
	r.equal.Clear()
	if r.finish(ctx); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &r.report, nil
}

// One minimizes the only kernel of some sources, which are as for corpus.Open. The report's Skipped has only objects that are not for
// the kernel, modules that do not fit it, and another machine than its path says. If the last source is such a module, that is an error.
func One(ctx context.Context, sources []string, objects []*core.Object, modules *selection.Modules, opts minimize.Options) (*Report, error) {
	c, err := corpus.Open(ctx, sources, corpus.Options{Map: true, Modules: modules})
	if err != nil {
		return nil, err
	}
	n := len(c.Files)
	var rep *Report
	if n == 1 {
		if rep, err = Run(ctx, Config{Objects: objects, Corpus: c, Options: opts, Jobs: 1}); err != nil {
			return nil, err
		}
		for _, e := range rep.Skipped {
			if !errors.Is(e, corpus.ErrUnmet) && !errors.Is(e, corpus.ErrMachine) && (!errors.Is(e, corpus.ErrUnfit) || e.Path == sources[len(sources)-1]) {
				return nil, e
			}
		}
		n = len(rep.Kernels)
	}
	if n != 1 {
		return nil, fmt.Errorf("%s: holds %d kernels, want one", sources[len(sources)-1], n)
	}
	rep.Corpus = c
	return rep, nil
}

// run is the state that workers share.
type run struct {
	Config
	minimizer *minimize.Minimizer // cloned for each worker
	files     []*corpus.File
	parts     bool                                    // kernels of .btfc files are read in part
	same      workers.Once[[sha256.Size]byte, Kernel] // results by the sums of a kernel and its modules
	equal     workers.Once[[sha256.Size]byte, Kernel] // results by the bytes of parts

	mu       sync.Mutex
	report   Report
	used     map[*core.Object]bool        // objects used on some kernel
	distinct map[[sha256.Size]byte][]byte // minimized BTFs by their hash
}

// worker has the memory that is reused from kernel to kernel.
type worker struct {
	*run
	target    core.Target
	minimizer *minimize.Minimizer
}

func (r *run) newWorker() *worker { return &worker{run: r, minimizer: r.minimizer.Clone()} }

// spent adds the time since the beginning of a stage.
func (r *run) spent(stage string, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Stages[stage] += time.Since(began)
}

// file processes the kernels of one file.
func (w *worker) file(ctx context.Context, f *corpus.File) error {
	var sums []Sum
	if w.Hash || w.Old != nil {
		began := time.Now()
		all, err := f.Sums(ctx)
		w.spent("hash", began)
		if err != nil {
			return err
		}
		for _, s := range all {
			sums = append(sums, s)
		}
	}
	if k := w.Old.take(f, sums); k != nil {
		w.Corpus.Unread()
		return w.add(*k)
	}
	if done, err := w.packed(ctx, f, sums); done {
		return err
	}
	kernels, errs := w.read(ctx, f.Read)
	for _, k := range kernels {
		k.from = f
		if len(errs) == 0 && len(kernels) == 1 { // later runs must not reuse results from a damaged file
			k.Sources, k.byFile = sums, !f.Key.Known()
		}
		if err := w.add(k); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// reader is a function that reads kernels, such as corpus.File.Read.
type reader func(ctx context.Context, yield func(*corpus.Kernel) error) error

// read minimizes the kernels that a reader yields. A kernel that no object is for has no BTF.
func (w *worker) read(ctx context.Context, read reader) (kernels []Kernel, errs []error) {
	start, busy := time.Now(), time.Duration(0)
	err := read(ctx, func(it *corpus.Kernel) error {
		began := time.Now()
		if k, err := w.kernel(ctx, it); err == nil {
			kernels = append(kernels, *k)
		} else {
			errs = append(errs, &corpus.Error{Path: it.Path, Err: err})
		}
		busy += time.Since(began)
		return nil
	})
	w.spent("read", start.Add(busy))
	if err != nil {
		errs = append(errs, err)
	}
	return kernels, errs
}

// add adds a kernel to the report, or returns an error if no object is for it.
func (w *worker) add(k Kernel) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.BTF == nil {
		return &corpus.Error{Path: k.Path, Err: cmp.Or(k.none, minimize.ErrNoObject)}
	}
	for _, o := range core.OnMachine(k.Machine, w.Objects...) {
		w.used[o] = true
	}
	w.share(&k)
	w.report.Kernels = append(w.report.Kernels, k)
	return nil
}

// share lets kernels with equal minimized BTF share its memory. The caller holds mu.
func (r *run) share(k *Kernel) {
	sum := sha256.Sum256(k.BTF)
	if old, ok := r.distinct[sum]; ok {
		k.BTF = old
	} else {
		r.distinct[sum] = k.BTF
	}
}

// kernel minimizes one kernel. One that no object is for has no BTF.
func (w *worker) kernel(ctx context.Context, it *corpus.Kernel) (*Kernel, error) {
	if w.Keyed && !findable(it.Key) {
		return nil, naming.ErrNoKey
	}
	finished := false
	defer func() {
		if !finished { // a panic: the next kernel must not see the broken state
			w.target, w.minimizer = core.Target{}, w.run.minimizer.Clone()
		}
	}()
	k := &Kernel{Key: it.Key, Name: it.Name, Path: it.Path, SourceSize: it.SourceSize, RawSize: it.PartOf}
	if it.PartOf == 0 {
		k.RawSize = int64(len(it.BTF))
		for _, m := range it.Modules {
			k.RawSize += int64(len(m.BTF))
		}
	}
	err := output.CheckName(k.FileName())
	if err == nil {
		err = w.minimize(ctx, k, it)
	}
	finished = true
	if errors.Is(err, minimize.ErrNoObject) {
		k.none, err = err, nil
	}
	return k, err
}

func (w *worker) minimize(ctx context.Context, k *Kernel, it *corpus.Kernel) error {
	began := time.Now()
	err := it.Load(ctx, &w.target, "btf") // the kernel's types and names
	w.spent("scan", began)
	if err != nil {
		return fmt.Errorf("btf: %w", err)
	}
	k.Machine = w.target.Machine()
	defer w.spent("minimize", time.Now())
	if it.PartOf > 0 {
		w.target.SetPart()
	}
	res, err := w.minimizer.Minimize(ctx, &w.target)
	if err != nil {
		return err
	}
	k.BTF, k.unmatched = res.BTF, res.Unmatched
	for _, d := range res.Decisions {
		switch d.Result {
		case relo.Resolved, relo.Absent:
			k.Resolved++
		default:
			k.issues = append(k.issues, &Issue{d.Object, d.Relocation(), d.Result, strings.Join(d.Modules, ",")})
		}
	}
	slices.SortFunc(k.issues, func(a, b *Issue) int { return a.compare(*b) }) // whatever the order of the objects is
	return nil
}

// finish makes the order of the report independent of timing, completes Skipped, and drops kernels whose place another has.
func (r *run) finish(ctx context.Context) {
	rep := &r.report
	if first(r.Shard) {
		rep.Skipped = append(rep.Skipped, r.Corpus.Skipped...)
	}
	if r.Shard.N <= 1 && len(rep.Kernels) > 0 {
		for _, o := range r.Objects {
			// Objects for any machine of a byte order do not count: bpf2go makes two by default.
			if o.Empty() == nil && len(o.Machines()) > 0 && !r.used[o] {
				rep.Skipped = append(rep.Skipped, r.Corpus.Unmet(o.Name()))
			}
		}
	}
	sort.Slice(rep.Kernels, func(i, j int) bool {
		a, b := &rep.Kernels[i], &rep.Kernels[j]
		return cmp.Or(cmp.Compare(a.FileName(), b.FileName()), cmp.Compare(a.Path, b.Path)) < 0
	})
	kept := rep.Kernels[:0]
	for _, k := range rep.Kernels {
		if n := len(kept); n > 0 && kept[n-1].FileName() == k.FileName() {
			id, first := k.FileName(), &kept[n-1]
			if k.Key.Known() {
				id = k.Key.String()
			}
			rep.Skipped = append(rep.Skipped, &corpus.Error{Path: k.Path, Err: corpus.Second(id, first.Path, bytes.Equal(k.BTF, first.BTF))})
			continue
		}
		kept = append(kept, k)
	}
	rep.Kernels = kept
	slices.SortFunc(rep.Skipped, (*corpus.Error).Compare)
	rep.part = r.Shard.N > 1
	rep.collect()
}

// collect collects the issues and unmatched patterns of all kernels, those of most kernels first.
func (r *Report) collect() {
	on, without := make(map[Issue][]string), make(map[string][]string) // names of kernels
	for _, k := range r.Kernels {
		for _, is := range k.issues {
			on[*is] = append(on[*is], k.Name)
		}
		for _, p := range k.unmatched {
			without[p] = append(without[p], k.Name)
		}
	}
	for is, kernels := range on {
		r.Unresolved = append(r.Unresolved, Unresolved{Issue: is, Kernels: kernels})
	}
	sort.Slice(r.Unresolved, func(i, j int) bool {
		a, b := &r.Unresolved[i], &r.Unresolved[j]
		return cmp.Or(-cmp.Compare(len(a.Kernels), len(b.Kernels)), cmp.Compare(a.Relo, b.Relo), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Result, b.Result), cmp.Compare(a.Modules, b.Modules)) < 0
	})
	for p, kernels := range without {
		r.Unmatched = append(r.Unmatched, Unmatched{p, kernels})
	}
	sort.Slice(r.Unmatched, func(i, j int) bool {
		a, b := &r.Unmatched[i], &r.Unmatched[j]
		return cmp.Or(-cmp.Compare(len(a.Kernels), len(b.Kernels)), cmp.Compare(a.Pattern, b.Pattern)) < 0
	})
}

// FileName returns the name of the kernel's file in a tree: BTFHub's ID/VERSION_ID/ARCH/RELEASE.btf if the key is complete,
// otherwise the release or the name of its source.
func (k *Kernel) FileName() string {
	if k.Key.Known() {
		return k.Key.FileName()
	}
	base := cmp.Or(k.Key.Release, path.Base(filepath.ToSlash(k.Path)))
	return strings.TrimSuffix(base, kernel.FileSuffix) + kernel.FileSuffix
}

// findable reports whether a host can find a kernel with this key. It needs no distribution, only arch and release.
func findable(k kernel.Key) bool { return k.Arch != "" && k.Release != "" }

// OutputKey returns the kernel's key in an archive: its own, or the one parsed from FileName.
func (k *Kernel) OutputKey() kernel.Key {
	if findable(k.Key) {
		return k.Key
	}
	if key, err := kernel.ParseFileName(k.FileName()); err == nil {
		return key
	}
	return k.Key
}

// Archive returns the kernels in the form that an archive stores.
func (r *Report) Archive() []archive.Kernel {
	kernels := make([]archive.Kernel, len(r.Kernels))
	for i := range r.Kernels {
		kernels[i] = archive.Kernel{Key: r.Kernels[i].OutputKey(), BTF: r.Kernels[i].BTF}
	}
	return kernels
}
