// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/words"
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

	Newest int  // newest kernels of each series; 0 for all
	One    bool // only the newest kernel of all
	Retry  bool // also packages that had no usable kernel
	DryRun bool // change nothing except the cache

	Progress func(done, all int, next string) // called before each kernel's packages are downloaded, and at the end; may be nil
}

// State is what happened to the packages of a kernel.
type State string

const (
	Wanted State = "wanted" // to be downloaded, in a dry run
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
	dir  string // of its packages, below fetcher.work
}

// FetchResult describes what Fetch did.
type FetchResult struct {
	Kernels    []*Fetched        `json:"kernels"`
	There      int               `json:"kernels_there"`             // already
	Unusable   int               `json:"kernels_unusable"`          // whose packages had no usable kernel in an earlier run
	Withdrawn  int               `json:"kernels_no_longer_offered"` // in the file
	Unreadable map[string]string `json:"unreadable,omitempty"`      // reasons, by series
	Downloads  int               `json:"packages_downloaded"`
	Bytes      int64             `json:"bytes_downloaded"`
	Kept       []string          `json:"files,omitempty"` // packages of selected kernels in FetchConfig.Keep
	Pruned     int               `json:"kernels_pruned"`
	Size       int64             `json:"file_bytes"`

	Selection corpus.Selection `json:"-"` // of the kernels of all repositories
	Skipped   []*corpus.Error  `json:"-"` // parts of packages whose kernel is in the file
}

// Count returns the number of kernels in a state.
func (r *FetchResult) Count(s State) (n int) {
	for _, k := range r.Kernels {
		if k.State == s {
			n++
		}
	}
	return n
}

// packageID identifies a package of a series.
type packageID struct{ series, name, version string }

// fetcher is a run of Fetch.
type fetcher struct {
	FetchConfig
	res   *FetchResult
	work  string                      // a folder for packages
	gone  map[kernel.Key]bool         // kernels of the file that no repository has
	byKey map[kernel.Key]bool         // kernels of the file
	noted map[packageID]*btfc.Package // in the file
}

// Fetch downloads the kernels of distributions that a .btfc file lacks and adds them to it. After each download the file is
// replaced, so an interrupted run keeps the kernels that were finished. With Keep, it
// moves their packages to Keep/ID/VERSION_ID/ARCH instead. A result and an error are returned together if the run ended early.
func Fetch(ctx context.Context, cfg FetchConfig) (*FetchResult, error) {
	f := &fetcher{
		FetchConfig: cfg, res: &FetchResult{Kernels: []*Fetched{}, Unreadable: make(map[string]string)},
		gone: make(map[kernel.Key]bool), byKey: make(map[kernel.Key]bool), noted: make(map[packageID]*btfc.Package),
	}
	if err := f.known(); err != nil {
		return nil, err
	}
	err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	if !f.DryRun {
		if err = f.download(ctx); err == nil {
			err = f.prune(ctx)
		}
	}
	if fi, failed := os.Stat(f.Path); failed == nil {
		f.res.Size = fi.Size()
	}
	return f.res, err
}

// known reads what the file has.
func (f *fetcher) known() error {
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
		f.noted[packageID{p.Series, p.Name, p.Version}] = &p
	}
	return nil
}

// list finds out what is to be downloaded. A series whose repositories cannot be read does not affect the others.
func (f *fetcher) list(ctx context.Context) error {
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
			if k := f.want(repos, u); k != nil {
				f.res.Kernels = append(f.res.Kernels, k)
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

// withdrawn finds kernels of the file whose packages a series no longer has.
func (f *fetcher) withdrawn(s *fetch.Series, units []*fetch.Unit) {
	kernels, packages := make(map[kernel.Key]bool), make(map[packageID]bool)
	for _, u := range units {
		kernels[u.Kernel] = true
		packages[idOf(s, u)] = true
	}
	for id, p := range f.noted {
		if id.series == s.String() && f.byKey[p.Kernel.Canonical()] && !kernels[p.Kernel] && !packages[id] {
			f.gone[p.Kernel.Canonical()] = true
		}
	}
	f.res.Withdrawn = len(f.gone)
}

// idOf identifies the package with the kernel of a unit.
func idOf(s *fetch.Series, u *fetch.Unit) packageID {
	return packageID{s.String(), u.Packages[0].Name, u.Packages[0].Version}
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
	note := f.noted[idOf(from.Series, u)]
	same := note != nil && (p.Sum == "" || p.Sum == hex.EncodeToString(note.Sum[:]))
	switch {
	case f.Keep != "":
		paths := f.kept(u)
		if !slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err != nil }) {
			f.res.Kept = append(f.res.Kept, paths...)
			f.res.There++
			return nil
		}
	case f.byKey[u.Kernel], same && note.Kernel != (kernel.Key{}):
		f.res.There++
		return nil
	case same && !f.Retry:
		f.res.Unusable++
		return nil
	}
	return &Fetched{
		Kernel: u.Kernel.String(), Package: p.Name, Version: p.Version, Bytes: u.Size(), Debug: u.Debug, State: Wanted, from: from, unit: u,
	}
}

// download downloads and imports what is wanted. While some packages are imported, the next ones are downloaded.
func (f *fetcher) download(ctx context.Context) error {
	all := f.res.Kernels
	if len(all) == 0 {
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
	slots, done := make(chan struct{}, jobs), make(chan *Fetched, jobs) // slots: packages on disk
	var downloading sync.WaitGroup
	defer func() { // before the folder is removed
		cancel()
		downloading.Wait()
	}()
	downloading.Go(func() {
		defer close(done)
		for i, k := range all {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			f.report(i, k.Package)
			s := k.from.Series.Key
			k.dir = filepath.Join(f.work, s.ID, s.VersionID, s.Arch, fmt.Sprintf("%06d", i))
			err := f.get(ctx, k)
			if ctx.Err() != nil {
				return
			} else if err != nil {
				k.fail(err.Error(), true)
			} else {
				f.res.Downloads += len(k.unit.Packages)
				f.res.Bytes += k.Bytes
			}
			done <- k
		}
		f.report(len(all), "")
	})
	for k := range done {
		batch := []*Fetched{k}
		for range len(done) { // so that the file is written once for all of them
			batch = append(batch, <-done)
		}
		if err := f.add(ctx, dwarf, batch); err != nil {
			return err
		}
		for _, k := range batch {
			os.RemoveAll(k.dir)
			<-slots
		}
	}
	return ctx.Err()
}

func (f *fetcher) report(done int, next string) {
	if f.Progress != nil {
		f.Progress(done, len(f.res.Kernels), next)
	}
}

// fail notes why a kernel is not in the file. If later is set, the next run tries again.
func (k *Fetched) fail(reason string, later bool) { k.State, k.Reason, k.Later = Failed, reason, later }

// spare is the disk space that a run leaves, in bytes.
const spare = 64 << 20

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

// fetchNaming gives all kernels in fetcher.work the key of their series, whatever the names in a package say.
const fetchNaming = "packages/{id}/{version}/{arch}/*/*={id}/{version}/{arch}"

// add adds downloaded kernels to the file or folder.
func (f *fetcher) add(ctx context.Context, dwarf *corpus.Encoder, batch []*Fetched) error {
	var dirs []string
	var ready []*Fetched
	for _, k := range batch {
		if k.State == Failed {
			continue
		}
		if f.Keep != "" {
			if err := f.keep(k); err != nil {
				return err
			}
			continue
		}
		ready, dirs = append(ready, k), append(dirs, k.dir)
		if len(k.unit.Packages) > 1 {
			continue
		}
		// The release then comes from the content, which is right where the package's version is another, as for SUSE.
		name := k.unit.Packages[0].File
		if err := os.Rename(filepath.Join(k.dir, name), filepath.Join(k.dir, "package"+filepath.Ext(name))); err != nil {
			return err
		}
	}
	if len(ready) == 0 {
		return nil
	}
	as, err := corpus.ParseNaming(fetchNaming)
	if err != nil {
		return err
	}
	corp, err := corpus.Open(ctx, dirs, corpus.Options{As: []*corpus.Naming{as}, Extras: true, DWARF: dwarf})
	if err == nil {
		_, err = Pack(ctx, walk.Config{Corpus: corp, Jobs: f.Jobs}, f.Path, func(res *Packed) (notes []btfc.Package) {
			for _, k := range ready {
				notes = append(notes, f.note(k, res)...)
			}
			return notes
		})
		if errors.Is(err, ErrEmpty) {
			return nil // all are tried again
		}
	}
	for _, k := range ready {
		if err != nil {
			k.fail(err.Error(), true)
		}
	}
	if corp == nil {
		return ctx.Err()
	}
	return err
}

// note sets the state of a kernel after its packages were read. It returns the note about the first package, unless the next run tries
// again.
func (f *fetcher) note(k *Fetched, res *Packed) []btfc.Package {
	below := filepath.ToSlash(k.dir) + "/"
	key, reason, later := kernel.Key{}, "", false
	for path, found := range res.Keys {
		if strings.HasPrefix(path, below) {
			key = found
		}
	}
	for _, e := range res.Skipped {
		part, ok := strings.CutPrefix(e.Path, below)
		switch {
		case !ok:
		case key.Known():
			e.Path = k.Package + "!" + part
			f.res.Skipped = append(f.res.Skipped, e)
		default:
			reason = cmp.Or(reason, e.Reason())
			later = later || errors.Is(e, syscall.ENOSPC)
		}
	}
	if key.Known() {
		k.State, k.Kernel = New, key.String()
		f.byKey[key.Canonical()] = true
	} else {
		reason = cmp.Or(reason, "no kernel found")
		k.fail(reason[:min(len(reason), 500)], later)
	}
	if later {
		return nil
	}
	p := k.unit.Packages[0]
	n := btfc.Package{Series: k.from.Series.String(), Name: p.Name, Version: p.Version, Kernel: key, Reason: k.Reason}
	if sum, err := hex.DecodeString(p.Sum); err == nil {
		copy(n.Sum[:], sum)
	}
	return []btfc.Package{n}
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
