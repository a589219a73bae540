// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// FetchConfig configures Fetch.
type FetchConfig struct {
	Series  []*fetch.Series
	Path    string            // the .btfc file
	Keep    string            // instead of Path, a folder for the packages themselves
	Cache   string            // a folder for indexes and packages; the caller holds its lock, and that of Path or Keep
	Mirrors map[string]string // as in fetch.Series.Open
	Jobs    int               // packages on disk at once

	Options corpus.Options    // whose selectors choose kernels
	Prune   []corpus.Selector // of kernels to remove that no repository has

	Newest int   // newest kernels of each series; 0 for all
	One    bool  // only the newest kernel of all
	Limit  int64 // bytes of downloads; 0 for no limit
	Retry  bool  // also packages that had no usable kernel
	DryRun bool  // change nothing except the cache

	Progress func(FetchProgress) // may be nil
}

// FetchProgress says how far the downloads are.
type FetchProgress struct {
	Done, All           int // packages
	DoneBytes, AllBytes int64
	Current             string // package
}

// State is what happened to the packages of a kernel.
type State string

const (
	Wanted State = "wanted" // to be downloaded: in a dry run, and behind the limit
	New    State = "new"    // in the file or folder now
	Failed State = "failed"
)

// Fetched is a kernel that was not in the file or folder, and its first package.
type Fetched struct {
	Kernel  string `json:"kernel"`
	Package string `json:"package"`
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"` // of all its packages
	Debug   bool   `json:"debug"` // pahole makes its BTF
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"` // why it failed
	Later   bool   `json:"later,omitempty"`  // the next run tries again

	from *fetch.Repositories
	unit *fetch.Unit
	dir  string
}

// SeriesCount counts the kernels of a series.
type SeriesCount struct {
	Series    string `json:"series"` // as kernel.Key.Series
	New       int    `json:"new"`
	There     int    `json:"there"`             // already
	Wanted    int    `json:"wanted"`            // in a dry run, and behind the limit
	Withdrawn int    `json:"no_longer_offered"` // in the file
	Unusable  int    `json:"unusable"`          // whose packages had no usable kernel in an earlier run
	Failed    int    `json:"failed"`
}

// FetchResult describes what Fetch did.
type FetchResult struct {
	Kernels    []*Fetched        `json:"kernels"`
	Series     []*SeriesCount    `json:"series"`
	Unreadable map[string]string `json:"unreadable,omitempty"` // reasons, by series
	Downloads  int               `json:"packages_downloaded"`
	Bytes      int64             `json:"bytes_downloaded"`
	Kept       []string          `json:"files,omitempty"` // packages of selected kernels in FetchConfig.Keep
	Pruned     int               `json:"kernels_pruned"`
	Size       int64             `json:"file_bytes"`
	Seconds    struct {
		List     float64 `json:"list"`
		Download float64 `json:"download"`
		Import   float64 `json:"import"` // at the same time
	} `json:"seconds"`

	Selection corpus.Selection `json:"-"` // of the kernels of all repositories
	Skipped   []*corpus.Error  `json:"-"` // parts of packages whose kernel is in the file
}

// fetcher is a run of Fetch.
type fetcher struct {
	FetchConfig
	res    *FetchResult
	counts map[string]*SeriesCount
	work   string // a folder for packages
	gone   map[kernel.Key]bool
	byKey  map[kernel.Key]bool         // kernels of the file
	noted  map[[3]string]*btfc.Package // by series, name and version
}

// Fetch downloads the kernels of distributions that a .btfc file lacks and adds them to it. After each download the file is
// replaced, so an interrupted run keeps the kernels that were finished. With Keep, it
// moves their packages to Keep/ID/VERSION_ID/ARCH instead. A result and an error are returned together if the run ended early.
func Fetch(ctx context.Context, cfg FetchConfig) (*FetchResult, error) {
	f := &fetcher{
		FetchConfig: cfg, res: &FetchResult{Kernels: []*Fetched{}, Series: []*SeriesCount{}, Unreadable: make(map[string]string)},
		counts: make(map[string]*SeriesCount), gone: make(map[kernel.Key]bool),
	}
	if err := f.known(); err != nil {
		return nil, err
	}
	start := time.Now()
	if err := f.list(ctx); err != nil {
		return nil, err
	}
	f.res.Seconds.List = time.Since(start).Seconds()
	var err error
	if !f.DryRun {
		if err = f.download(ctx); err == nil {
			err = f.prune(ctx)
		}
		if fi, failed := os.Stat(f.Path); failed == nil {
			f.res.Size = fi.Size()
		}
	}
	for _, k := range f.res.Kernels {
		c := f.count(k.unit.Kernel)
		switch k.State {
		case New:
			c.New++
		case Failed:
			c.Failed++
		default:
			c.Wanted++
		}
	}
	f.res.Series = slices.SortedFunc(maps.Values(f.counts), func(a, b *SeriesCount) int { return kernel.CompareVersions(a.Series, b.Series) })
	return f.res, err
}

// known reads what the file has.
func (f *fetcher) known() error {
	f.byKey, f.noted = make(map[kernel.Key]bool), make(map[[3]string]*btfc.Package)
	if f.Path == "" {
		return nil
	}
	in, file, _, err := openPacked(f.Path)
	if err != nil || file == nil {
		return err
	}
	defer in.Close()
	for i := range file.Entries() {
		f.byKey[file.Entries()[i].Key.Canonical()] = true
	}
	for _, p := range file.Packages() {
		f.noted[[3]string{p.Series, p.Name, p.Version}] = &p
	}
	return nil
}

// count returns the counts of a kernel's series.
func (f *fetcher) count(k kernel.Key) *SeriesCount {
	name := k.Series().String()
	if f.counts[name] == nil {
		f.counts[name] = &SeriesCount{Series: name}
	}
	return f.counts[name]
}

// list finds out what is to be downloaded. A series whose repositories cannot be read does not affect the others.
func (f *fetcher) list(ctx context.Context) error {
	total := int64(0)
	var keys []kernel.Key
	for _, s := range f.Series {
		repos, err := s.Open(ctx, f.Cache, f.Mirrors)
		var units []*fetch.Unit
		if err == nil {
			units, err = repos.Units(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && len(units) == 0 {
			err = errors.New("the repositories have no package that the catalogue describes")
		}
		if err != nil {
			f.res.Unreadable[s.String()] = err.Error()
			continue
		}
		for _, u := range units {
			keys = append(keys, u.Kernel)
		}
		f.withdrawn(s, units)
		for _, u := range f.selected(units) {
			k := f.want(repos, u)
			if k == nil {
				continue
			}
			f.res.Kernels = append(f.res.Kernels, k)
			if total += k.Bytes; f.Limit > 0 && total > f.Limit {
				total, k.Later = total-k.Bytes, true
			}
		}
	}
	f.res.Selection = f.Options.Selection(slices.Values(keys))
	if len(f.res.Unreadable) == len(f.Series) {
		for series, reason := range f.res.Unreadable {
			return fmt.Errorf("%s: %s", series, reason)
		}
	}
	return nil
}

// withdrawn counts kernels of the file whose packages a series no longer has.
func (f *fetcher) withdrawn(s *fetch.Series, units []*fetch.Unit) {
	offered := make(map[[3]string]bool)
	for _, u := range units {
		for _, p := range u.Packages {
			offered[[3]string{s.String(), p.Name, p.Version}] = true
		}
	}
	kernels := make(map[kernel.Key]bool) // whether any package is offered
	for id, p := range f.noted {
		if id[0] == s.String() && p.Kernel != (kernel.Key{}) {
			kernels[p.Kernel] = kernels[p.Kernel] || offered[id]
		}
	}
	for _, u := range units {
		if _, ok := kernels[u.Kernel]; ok {
			kernels[u.Kernel] = true
		}
	}
	for k, there := range kernels {
		if !there {
			f.gone[k.Canonical()] = true
			f.count(k).Withdrawn++
		}
	}
}

// selected returns the units that the selectors keep, and the newest of each series.
func (f *fetcher) selected(units []*fetch.Unit) (kept []*fetch.Unit) {
	left := make(map[kernel.Key]int)
	for _, u := range slices.Backward(units) {
		if !f.Options.Selects(u.Kernel) {
			continue
		}
		s := u.Kernel.Series()
		if f.One {
			s = kernel.Key{}
		}
		if left[s]++; f.Newest == 0 || left[s] <= f.Newest {
			kept = append(kept, u)
		}
	}
	slices.Reverse(kept)
	return kept
}

// want returns what to do about a unit, or nil if nothing.
func (f *fetcher) want(from *fetch.Repositories, u *fetch.Unit) *Fetched {
	p := u.Packages[0]
	note := f.noted[[3]string{from.Series.String(), p.Name, p.Version}]
	same := note != nil && (p.Sum == "" || p.Sum == hex.EncodeToString(note.Sum[:]))
	switch {
	case f.Keep != "":
		paths := f.kept(u)
		if !slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err != nil }) {
			f.res.Kept = append(f.res.Kept, paths...)
			f.count(u.Kernel).There++
			return nil
		}
	case f.byKey[u.Kernel], same && note.Kernel != (kernel.Key{}):
		f.count(u.Kernel).There++
		return nil
	case same && !f.Retry:
		f.count(u.Kernel).Unusable++
		return nil
	}
	return &Fetched{
		Kernel: u.Kernel.String(), Package: p.Name, Version: p.Version, Bytes: u.Size(), Debug: u.Debug, State: Wanted, from: from, unit: u,
	}
}

// download downloads and imports what is wanted. While some packages are imported, the next ones are downloaded.
func (f *fetcher) download(ctx context.Context) error {
	var todo []*Fetched
	progress := FetchProgress{}
	for _, k := range f.res.Kernels {
		if !k.Later {
			todo = append(todo, k)
			progress.All += len(k.unit.Packages)
			progress.AllBytes += k.Bytes
		}
	}
	if len(todo) == 0 {
		return nil
	}
	f.work = filepath.Join(f.Cache, "packages")
	if f.Keep != "" { // whose file system may be another
		f.work = filepath.Join(f.Keep, ".btfgen-fetch")
	}
	if err := os.RemoveAll(f.work); err != nil { // of a run that was killed
		return err
	}
	if err := os.MkdirAll(f.work, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(f.work)
	dwarf := corpus.NewEncoder(f.work, f.Jobs)

	ctx, cancel := context.WithCancel(ctx)
	jobs := max(f.Jobs, 1)
	slots, done := make(chan struct{}, jobs), make(chan *Fetched, jobs)
	var downloading sync.WaitGroup
	defer func() { // before the folder is removed
		cancel()
		downloading.Wait()
	}()
	downloading.Go(func() {
		defer close(done)
		for i, k := range todo {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			progress.Current = k.Package
			start := time.Now()
			k.dir = filepath.Join(f.work, fmt.Sprintf("%06d", i))
			stop := f.follow(k.dir, progress)
			err := f.get(ctx, k)
			if stop(); ctx.Err() != nil {
				return
			} else if err != nil {
				k.fail(err.Error(), true)
			} else {
				f.res.Downloads += len(k.unit.Packages)
				f.res.Bytes += k.Bytes
			}
			f.res.Seconds.Download += time.Since(start).Seconds()
			progress.Done += len(k.unit.Packages)
			progress.DoneBytes += k.Bytes
			f.report(progress)
			done <- k
		}
	})
	for k := range done {
		batch := []*Fetched{k}
		for range len(done) { // so that the file is written once for all of them
			batch = append(batch, <-done)
		}
		for len(batch) > 0 {
			n := 1
			for n < len(batch) && batch[n].from == batch[0].from {
				n++
			}
			if err := f.add(ctx, dwarf, batch[:n], slots); err != nil {
				return err
			}
			batch = batch[n:]
		}
	}
	return ctx.Err()
}

// follow reports the bytes that are in a folder already, until stop is called.
func (f *fetcher) follow(dir string, p FetchProgress) (stop func()) {
	tick, quit := time.NewTicker(200*time.Millisecond), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			now := p
			filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					if fi, err := e.Info(); err == nil {
						now.DoneBytes += fi.Size()
					}
				}
				return nil
			})
			f.report(now)
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	})
	return func() {
		tick.Stop()
		close(quit)
		running.Wait()
	}
}

func (f *fetcher) report(p FetchProgress) {
	if f.Progress != nil {
		f.Progress(p)
	}
}

// fail notes why a kernel is not in the file. If later is set, the next run tries again.
func (k *Fetched) fail(reason string, later bool) { k.State, k.Reason, k.Later = Failed, reason, later }

// get downloads the packages of a kernel.
func (f *fetcher) get(ctx context.Context, k *Fetched) error {
	need := k.Bytes
	if k.Debug && f.Keep == "" {
		if _, err := exec.LookPath("pahole"); err != nil {
			return errors.New("needs pahole (package pahole or dwarves)")
		}
		need *= 5 // its vmlinux is unpacked
	}
	if fi, err := os.Stat(f.Path); err == nil {
		need += fi.Size()
	}
	if free, err := freeSpace(f.work); err == nil && free < need+spare {
		return fmt.Errorf("%s: %s free, %s needed: %w", f.work, words.Bytes(free), words.Bytes(need+spare), syscall.ENOSPC)
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	return k.from.Download(ctx, k.unit, k.dir)
}

// kept returns where the packages of a kernel are kept.
func (f *fetcher) kept(u *fetch.Unit) (paths []string) {
	for _, p := range u.Packages {
		paths = append(paths, filepath.Join(f.Keep, u.Kernel.ID, u.Kernel.VersionID, u.Kernel.Arch, p.File))
	}
	return paths
}

// keep moves the packages of a kernel to where they are kept.
func (f *fetcher) keep(k *Fetched) error {
	paths := f.kept(k.unit)
	if err := os.MkdirAll(filepath.Dir(paths[0]), 0o777); err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Rename(filepath.Join(k.dir, filepath.Base(path)), path); err != nil {
			return err
		}
	}
	k.State, f.res.Kept = New, append(f.res.Kept, paths...)
	return nil
}

// spare is the disk space that a run leaves, in bytes.
const spare = 64 << 20

// add adds downloaded kernels of one series to the file, and removes their packages.
func (f *fetcher) add(ctx context.Context, dwarf *corpus.Encoder, batch []*Fetched, slots chan struct{}) error {
	start := time.Now()
	defer func() {
		f.res.Seconds.Import += time.Since(start).Seconds()
		for _, k := range batch {
			os.RemoveAll(k.dir)
			<-slots
		}
	}()
	ready := slices.DeleteFunc(slices.Clone(batch), func(k *Fetched) bool { return k.State == Failed })
	if len(ready) == 0 {
		return nil
	}
	if f.Keep != "" {
		for _, k := range ready {
			if err := f.keep(k); err != nil {
				return err
			}
		}
		return nil
	}
	// All paths get the key of the series, whatever the names in a package say.
	as, err := corpus.ParseNaming(ready[0].from.Series.String())
	if err != nil {
		return err
	}
	var dirs []string
	for _, k := range ready {
		dirs = append(dirs, k.dir)
		if len(k.unit.Packages) > 1 {
			continue
		}
		// The release then comes from the content, which is right where the package's version is another, as for SUSE.
		name := k.unit.Packages[0].File
		if err := os.Rename(filepath.Join(k.dir, name), filepath.Join(k.dir, "package"+filepath.Ext(name))); err != nil {
			return err
		}
	}
	corp, err := corpus.Open(ctx, dirs, corpus.Options{As: []*corpus.Naming{as}, Extras: true, DWARF: dwarf})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		corp = new(corpus.Corpus)
	}
	opened := err
	var notes []btfc.Package
	_, err = Pack(ctx, walk.Config{Corpus: corp, Jobs: f.Jobs}, f.Path, func(res *Packed) []btfc.Package {
		for _, k := range ready {
			notes = append(notes, f.note(k, res, opened)...)
		}
		return notes
	})
	if err != nil && ctx.Err() == nil && len(notes) == 0 && errors.Is(err, ErrEmpty) {
		return nil
	}
	for _, k := range ready {
		if err != nil {
			k.fail(err.Error(), true)
		}
	}
	return err
}

// note returns the notes of a kernel's packages, after they were read.
func (f *fetcher) note(k *Fetched, res *Packed, opened error) (notes []btfc.Package) {
	below := filepath.ToSlash(k.dir) + "/"
	key, reason, later := kernel.Key{}, "", false
	for path, found := range res.Keys {
		if strings.HasPrefix(path, below) {
			key = found
		}
	}
	for _, e := range res.Skipped {
		if !strings.HasPrefix(e.Path, below) {
			continue
		}
		if key.Known() {
			e.Path = k.Package + "!" + strings.TrimPrefix(e.Path, below)
			f.res.Skipped = append(f.res.Skipped, e)
			continue
		}
		var defect *workers.Defect
		reason = cmp.Or(reason, e.Reason())
		later = later || errors.Is(e, syscall.ENOSPC) || errors.As(e, &defect)
	}
	if opened != nil {
		reason = strings.ReplaceAll(opened.Error(), below, "")
	}
	if key.Known() {
		k.State, k.Kernel = New, key.String()
		f.byKey[key.Canonical()] = true
	} else {
		reason = cmp.Or(reason, "no kernel found")
		k.fail(reason[:min(len(reason), 500)], later)
	}
	for _, p := range k.unit.Packages {
		n := btfc.Package{Series: k.from.Series.String(), Name: p.Name, Version: p.Version, Kernel: key, Reason: k.Reason}
		if sum, err := hex.DecodeString(p.Sum); err == nil {
			copy(n.Sum[:], sum)
		}
		if !later {
			notes = append(notes, n)
		}
	}
	return notes
}

// prune removes kernels that no repository offers any more and that a selector matches.
func (f *fetcher) prune(ctx context.Context) error {
	if len(f.Prune) == 0 || len(f.gone) == 0 {
		return nil
	}
	opts := corpus.Options{Select: f.Prune}
	corp, err := corpus.Open(ctx, []string{f.Path}, corpus.Options{})
	if err != nil {
		return err
	}
	all := len(corp.Files)
	corp.Files = slices.DeleteFunc(corp.Files, func(file *corpus.File) bool { return f.gone[file.Key.Canonical()] && opts.Selects(file.Key) })
	if f.res.Pruned = all - len(corp.Files); f.res.Pruned == 0 {
		return nil
	}
	_, err = pack(ctx, walk.Config{Corpus: corp, Jobs: f.Jobs}, f.Path, nil, 0, nil)
	return err
}

// ParseSize reads a number of bytes such as 500M or 2G.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(strings.ToUpper(text), "KMGTB")
	factor, ok := map[string]int64{"": 1, "B": 1, "K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12}[strings.ToUpper(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 1 || n > 1e18/factor {
		return 0, fmt.Errorf("%q: want a size such as 500M or 2G", text)
	}
	return n * factor, nil
}
