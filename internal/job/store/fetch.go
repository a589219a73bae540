// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// FetchConfig configures Fetch.
type FetchConfig struct {
	Series  []*fetch.Series
	Path    string         // the .btfc file
	Keep    string         // instead of Path, a folder for the packages themselves
	Touch   bool           // the times of packages in Keep say when a run selected them last
	Cache   string         // a folder for indexes and packages
	Mirrors []fetch.Mirror // passed to fetch.Series.Open
	Jobs    int            // packages on disk at once

	Options corpus.Options       // selectors choose kernels, and Modules their modules
	Prune   []selection.Selector // select kernels to remove if no repository has them

	WithoutBTF bool // only kernels without BTF of their own, which pahole converts

	Newest int   // newest kernels of each line of a series, such as 6.1; 0 for all
	Own    bool  // only kernels of the line that the distribution began with, the oldest, and not only their DWARF
	Limit  int64 // bytes to download at most; 0 for no limit
	Retry  bool  // also packages that had no usable kernel
	DryRun bool  // change nothing except the cache

	EncodeModules bool // make BTF of modules that have only DWARF

	Waiting  func(path string)     // called if another process has the lock of path; may be nil
	Progress func(p FetchProgress) // called twice a second; may be nil
}

// FetchProgress is how much is downloaded.
type FetchProgress struct {
	Done, All   int    // kernels; 0 if there are layers
	Bytes, Size int64  // bytes of the packages so far, and of all packages
	Package     string // the package being downloaded, or ""
}

// LimitError is returned if there is more to download than FetchConfig.Limit.
type LimitError struct {
	Kernels     int
	Size, Limit int64 // bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s to download for %s, more than the limit of %s", words.Bytes(e.Size), words.Plural(e.Kernels, "kernel"), words.Bytes(e.Limit))
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
	Line    string `json:"line"` // as in "6.1"; --newest counts kernels of a line
	Package string `json:"package"`
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"` // the sum over all its packages
	Debug   bool   `json:"debug"` // pahole makes its BTF
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"` // why it failed
	Later   bool   `json:"later,omitempty"`  // the next run tries again

	from *fetch.Repositories
	unit *fetch.Offer
	dir  string // folder of its packages, below fetcher.work
}

// FetchResult describes what Fetch did.
type FetchResult struct {
	Kernels    []*Fetched        `json:"kernels"`
	There      int               `json:"kernels_there"`                  // already
	Unusable   int               `json:"kernels_unusable"`               // their packages had no usable kernel in an earlier run
	Withdrawn  int               `json:"kernels_no_longer_offered"`      // kernels of the file that no repository has
	OwnBTF     int               `json:"kernels_with_own_btf,omitempty"` // left out by FetchConfig.WithoutBTF
	Unreadable map[string]string `json:"unreadable,omitempty"`           // reasons, by series
	Downloads  int               `json:"packages_downloaded"`
	Bytes      int64             `json:"bytes_downloaded"`
	Kept       []string          `json:"files,omitempty"` // packages of selected kernels in FetchConfig.Keep
	Pruned     int               `json:"kernels_pruned"`
	// WithoutModules counts kernels whose BTF was made of DWARF, and that of their modules was not.
	WithoutModules int `json:"kernels_without_modules,omitempty"`

	Size int64 `json:"file_bytes"`

	Selection corpus.Selection `json:"-"` // result of the selectors for the kernels of all repositories
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
	res    *FetchResult
	size   int64                       // bytes of all wanted packages
	before int64                       // bytes of the packages that are downloaded already
	gone   map[kernel.Key]bool         // kernels of the file that no repository has
	byKey  map[kernel.Key]bool         // kernels of the file
	noted  map[packageID]*btfc.Package // packages noted in the file
	xz     *decompress.XZProgram
}

// Fetch downloads the kernels of distributions that a .btfc file lacks and adds them to it. After each download the file is
// replaced, so an interrupted run keeps the kernels that were finished. With Keep, it
// moves their packages to Keep/ID/VERSION_ID/ARCH instead. Fetch locks the file, or the folders of packages, and the folder of each series in
// Cache. A result and an error are returned together if the run ended early, or if a dry run exceeds the limit.
func Fetch(ctx context.Context, cfg FetchConfig) (*FetchResult, error) {
	f := &fetcher{
		FetchConfig: cfg, res: &FetchResult{Kernels: []*Fetched{}, Unreadable: make(map[string]string)},
		gone: make(map[kernel.Key]bool), byKey: make(map[kernel.Key]bool), noted: make(map[packageID]*btfc.Package), xz: decompress.NewXZProgram(ctx),
	}
	unlock, err := f.lock(ctx)
	defer unlock()
	if err != nil {
		return nil, err
	}
	if err := f.known(); err != nil {
		return nil, err
	}
	if err = f.list(ctx); err != nil {
		return nil, err
	}
	for _, k := range f.res.Kernels {
		f.size += k.Bytes
	}
	if f.Limit > 0 && f.size > f.Limit {
		err = &LimitError{len(f.res.Kernels), f.size, f.Limit}
		if !f.DryRun {
			return nil, err
		}
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

// lock locks the output and then the series, in order, so that no two runs wait for each other. A dry run needs no lock. unlock is
// never nil.
func (f *fetcher) lock(ctx context.Context) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, u := range slices.Backward(held) {
			u()
		}
	}
	if f.DryRun {
		return unlock, nil
	}
	hold := func(path string, dir bool) error {
		u, err := hold(ctx, path, dir, f.Waiting)
		if err == nil {
			held = append(held, u)
		}
		return err
	}
	if f.Keep == "" {
		if err := hold(f.Path, false); err != nil {
			return unlock, err
		}
	}
	var folders []string
	for _, s := range f.Series {
		folders = append(folders, s.Folder(f.Cache))
		if f.Keep != "" {
			folders = append(folders, f.kept(s.Key))
		}
	}
	slices.Sort(folders)
	for _, dir := range slices.Compact(folders) {
		if err := hold(dir, true); err != nil {
			return unlock, err
		}
	}
	return unlock, nil
}

// hold locks a file, which has to be one that can be written, or a folder. waiting is called if another process has the lock; it may be nil.
func hold(ctx context.Context, path string, dir bool, waiting func(path string)) (unlock func(), err error) {
	if !dir {
		if err := output.CheckFile(path); err != nil {
			return nil, err
		}
	}
	return output.Lock(ctx, path, dir, func() {
		if waiting != nil {
			waiting(path)
		}
	})
}

// open reads the indexes of a series. Meanwhile another process may download packages of the series, but not read its indexes.
func (f *fetcher) open(ctx context.Context, s *fetch.Series) (*fetch.Repositories, []*fetch.Offer, error) {
	dir := s.Folder(f.Cache)
	unlock, err := hold(ctx, filepath.Join(dir, "reading"), true, f.Waiting)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	repos, err := s.Open(ctx, dir, f.Mirrors)
	if err != nil {
		return nil, nil, err
	}
	units, err := repos.Offers(ctx)
	return repos, units, err
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

// list finds the packages to download. A series whose repositories cannot be read does not affect the others.
func (f *fetcher) list(ctx context.Context) error {
	var keys []kernel.Key
	var unreadable []error
	for _, s := range f.Series {
		repos, units, err := f.open(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && len(units) == 0 {
			err = errors.New("the repositories have no package that the catalogue describes")
		}
		if err != nil {
			f.res.Unreadable[s.String()] = err.Error()
			unreadable = append(unreadable, fmt.Errorf("%s: %w", s, err))
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
	if len(unreadable) == len(f.Series) {
		return errors.Join(unreadable...)
	}
	return nil
}

// withdrawn finds kernels of the file whose packages a series no longer has.
func (f *fetcher) withdrawn(s *fetch.Series, units []*fetch.Offer) {
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
func idOf(s *fetch.Series, u *fetch.Offer) packageID {
	return packageID{s.String(), u.Packages[0].Name, u.Packages[0].Version}
}

// selected returns the units of a series that the selectors keep, and of each line of these the newest. The line that the distribution began with,
// the oldest, is first. In a line they stay in order.
func (f *fetcher) selected(units []*fetch.Offer) (kept []*fetch.Offer) {
	for _, u := range units {
		switch {
		case !f.Options.Selects(u.Kernel) || f.Own && u.Debug:
		case f.WithoutBTF && !u.Debug:
			f.res.OwnBTF++
		default:
			kept = append(kept, u)
		}
	}
	byLine := func(a, b *fetch.Offer) int { return slices.Compare(linux(a.Kernel), linux(b.Kernel)) }
	slices.SortStableFunc(kept, byLine)
	newest := slices.Clone(kept)
	slices.SortStableFunc(newest, func(a, b *fetch.Offer) int { return cmp.Or(byLine(a, b), byAge(a.Kernel, b.Kernel)) })
	chosen := make(map[*fetch.Offer]bool)
	lines, n := 0, 0 // lines so far, and kernels of the last one
	for i, u := range newest {
		if i == 0 || byLine(newest[i-1], u) != 0 {
			lines, n = lines+1, 0
		}
		n++
		chosen[u] = (lines == 1 || !f.Own) && (n <= f.Newest || f.Newest == 0)
	}
	return slices.DeleteFunc(kept, func(u *fetch.Offer) bool { return !chosen[u] })
}

// byAge compares kernels of a series: the newest is first. Of the flavours of one release, the one with the shortest name is first.
func byAge(a, b kernel.Key) int {
	return cmp.Or(slices.Compare(numbers(b.Release), numbers(a.Release)), len(a.Release)-len(b.Release), b.Compare(a))
}

// linux returns the first two numbers of a kernel's release, which are its line.
func linux(k kernel.Key) []int {
	n := numbers(k.Release)
	return n[:min(len(n), 2)]
}

// lineOf returns the line of a kernel as text.
func lineOf(k kernel.Key) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(linux(k)), " ", "."), "[]")
}

// numbers returns the words of a release that are numbers, which flavours share.
func numbers(release string) (all []int) {
	for _, w := range strings.FieldsFunc(release, func(r rune) bool { return strings.ContainsRune("-.+_~", r) }) {
		if n, err := strconv.Atoi(w); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// want returns what to do about a unit, or nil if nothing.
func (f *fetcher) want(from *fetch.Repositories, u *fetch.Offer) *Fetched {
	p := u.Packages[0]
	note := f.noted[idOf(from.Series, u)]
	same := note != nil && (p.Sum == "" || p.Sum == hex.EncodeToString(note.Sum[:]))
	switch {
	case f.Keep != "":
		paths := f.files(u)
		if !slices.ContainsFunc(paths, func(path string) bool { _, err := os.Stat(path); return err != nil }) {
			f.res.Kept = append(f.res.Kept, paths...)
			f.res.There++
			f.touch(paths)
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
		Kernel: u.Kernel.String(), Line: lineOf(u.Kernel), Package: p.Name, Version: p.Version, Bytes: u.Size(), Debug: u.Debug, State: Wanted, from: from, unit: u,
	}
}
