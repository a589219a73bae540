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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/internal/workers/program"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// FetchConfig configures Fetch.
type FetchConfig struct {
	Series  []*fetch.Series
	Path    string         // the .btfc file
	Keep    string         // instead of Path, a folder for the packages themselves
	Touch   bool           // the times of packages in Keep say when a run selected them last
	Cache   string         // a folder for indexes and packages
	Mirrors []fetch.Mirror // as in fetch.Series.Open
	Jobs    int            // packages on disk at once

	Options corpus.Options       // whose selectors choose kernels, and Modules modules
	Prune   []selection.Selector // of kernels to remove that no repository has

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
	Bytes, Size int64  // of the packages so far, and of all
	Package     string // that is being downloaded, or ""
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
	Line    string `json:"line"` // as in "6.1", of which --newest takes N kernels
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
	There      int               `json:"kernels_there"`                  // already
	Unusable   int               `json:"kernels_unusable"`               // whose packages had no usable kernel in an earlier run
	Withdrawn  int               `json:"kernels_no_longer_offered"`      // in the file
	OwnBTF     int               `json:"kernels_with_own_btf,omitempty"` // left out by FetchConfig.WithoutBTF
	Unreadable map[string]string `json:"unreadable,omitempty"`           // reasons, by series
	Downloads  int               `json:"packages_downloaded"`
	Bytes      int64             `json:"bytes_downloaded"`
	Kept       []string          `json:"files,omitempty"` // packages of selected kernels in FetchConfig.Keep
	Pruned     int               `json:"kernels_pruned"`
	// WithoutModules counts kernels whose BTF was made of DWARF, and that of their modules was not.
	WithoutModules int `json:"kernels_without_modules,omitempty"`

	Size int64 `json:"file_bytes"`

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
	res    *FetchResult
	size   int64                       // bytes of all wanted packages
	before int64                       // bytes of the packages that are downloaded already
	gone   map[kernel.Key]bool         // kernels of the file that no repository has
	byKey  map[kernel.Key]bool         // kernels of the file
	noted  map[packageID]*btfc.Package // in the file
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
func (f *fetcher) open(ctx context.Context, s *fetch.Series) (*fetch.Repositories, []*fetch.Unit, error) {
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
	units, err := repos.Units(ctx)
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

// selected returns the units of a series that the selectors keep, and of each line of these the newest. The line that the distribution began with,
// the oldest, is first. In a line they stay in order.
func (f *fetcher) selected(units []*fetch.Unit) (kept []*fetch.Unit) {
	for _, u := range units {
		switch {
		case !f.Options.Selects(u.Kernel) || f.Own && u.Debug:
		case f.WithoutBTF && !u.Debug:
			f.res.OwnBTF++
		default:
			kept = append(kept, u)
		}
	}
	byLine := func(a, b *fetch.Unit) int { return slices.Compare(linux(a.Kernel), linux(b.Kernel)) }
	slices.SortStableFunc(kept, byLine)
	newest := slices.Clone(kept)
	slices.SortStableFunc(newest, func(a, b *fetch.Unit) int { return cmp.Or(byLine(a, b), byAge(a.Kernel, b.Kernel)) })
	chosen := make(map[*fetch.Unit]bool)
	lines, n := 0, 0 // lines so far, and kernels of the last one
	for i, u := range newest {
		if i == 0 || byLine(newest[i-1], u) != 0 {
			lines, n = lines+1, 0
		}
		n++
		chosen[u] = (lines == 1 || !f.Own) && (n <= f.Newest || f.Newest == 0)
	}
	return slices.DeleteFunc(kept, func(u *fetch.Unit) bool { return !chosen[u] })
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
func (f *fetcher) want(from *fetch.Repositories, u *fetch.Unit) *Fetched {
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

// download downloads and imports what is wanted. While some packages are imported, the next ones are downloaded.
func (f *fetcher) download(ctx context.Context) error {
	all := f.res.Kernels
	if len(all) == 0 {
		return nil
	}
	for _, s := range f.Series {
		dir := f.work(s)
		if err := os.RemoveAll(dir); err != nil { // of a run that was killed
			return err
		}
		defer os.RemoveAll(dir)
	}
	dwarf := pahole.New(f.Cache, f.Jobs)
	dwarf.NoModules = !f.EncodeModules

	ctx, cancel := context.WithCancel(ctx)
	jobs := max(f.Jobs, 1)
	slots, done := make(chan struct{}, jobs), make(chan *Fetched, jobs) // slots: packages on disk
	var downloading sync.WaitGroup
	defer func() { // before the folder is removed
		cancel()
		downloading.Wait()
	}()
	workers.Beside(&downloading, func() {
		defer close(done)
		for i, k := range all {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			s := k.from.Series
			k.dir = filepath.Join(f.work(s), s.Key.ID, s.Key.VersionID, s.Key.Arch, fmt.Sprintf("%06d", i))
			stop := f.watch(i, k)
			err := f.get(ctx, k)
			stop()
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
		f.report(len(all), 0, "")
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

// report reports the progress after n bytes of the next package.
func (f *fetcher) report(done int, n int64, next string) {
	if f.Progress != nil {
		f.Progress(FetchProgress{done, len(f.res.Kernels), f.before + n, f.size, next})
	}
}

// watch reports the progress while a kernel's packages are downloaded, until stop is called.
func (f *fetcher) watch(done int, k *Fetched) (stop func()) {
	end := make(chan bool)
	var watching sync.WaitGroup
	workers.Beside(&watching, func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			f.report(done, min(folderSize(k.dir), k.Bytes), k.Package)
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	})
	return func() {
		close(end)
		watching.Wait()
		f.before += k.Bytes // also of a package that failed
	}
}

// folderSize returns the bytes of the files below a folder that can be read.
func folderSize(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}

// work returns the folder for packages of a series that are not read yet.
func (f *fetcher) work(s *fetch.Series) string {
	if f.Keep != "" { // whose file system may be another
		return filepath.Join(f.kept(s.Key), ".btfgen-fetch")
	}
	return filepath.Join(s.Folder(f.Cache), "packages")
}

// fail notes why a kernel is not in the file. If later is set, the next run tries again.
func (k *Fetched) fail(reason string, later bool) { k.State, k.Reason, k.Later = Failed, reason, later }

// spare is the disk space that a run leaves, in bytes.
const spare = 64 << 20

// get downloads the packages of a kernel.
func (f *fetcher) get(ctx context.Context, k *Fetched) error {
	need := k.Bytes
	if k.Debug && f.Keep == "" {
		if _, err := program.Find("pahole"); err != nil {
			return err
		}
		need *= 5 // its vmlinux is unpacked
	}
	if fi, err := os.Stat(f.Path); err == nil {
		need += fi.Size()
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	if free, err := freeSpace(k.dir); err == nil && free < need+spare {
		return fmt.Errorf("%s: %s free, %s needed: %w", k.dir, words.Bytes(free), words.Bytes(need+spare), syscall.ENOSPC)
	}
	return k.from.Download(ctx, k.unit, k.dir)
}

// kept returns the folder in which the packages of a series are kept.
func (f *fetcher) kept(series kernel.Key) string {
	return filepath.Join(f.Keep, series.ID, series.VersionID, series.Arch)
}

// files returns where the packages of a kernel are kept.
func (f *fetcher) files(u *fetch.Unit) (paths []string) {
	for _, p := range u.Packages {
		paths = append(paths, filepath.Join(f.kept(u.Kernel), p.File))
	}
	return paths
}

// touch notes that packages are used now. The folder is locked, so that prunePackages of cmd/btfgen sees it.
func (f *fetcher) touch(paths []string) {
	if f.Touch {
		for _, path := range paths {
			os.Chtimes(path, time.Time{}, time.Now())
		}
	}
}

// keep moves the packages of a kernel to where they are kept.
func (f *fetcher) keep(k *Fetched) error {
	paths := f.files(k.unit)
	if err := os.MkdirAll(filepath.Dir(paths[0]), 0o777); err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Rename(filepath.Join(k.dir, filepath.Base(path)), path); err != nil {
			return err
		}
	}
	k.State, f.res.Kept = New, append(f.res.Kept, paths...)
	f.touch(paths)
	return nil
}

// fetchNaming gives all kernels in the folders of fetcher.work the key of their series, whatever the names in a package say.
const fetchNaming = "packages/{id}/{version}/{arch}/*/*={id}/{version}/{arch}"

// add adds downloaded kernels to the file or folder.
func (f *fetcher) add(ctx context.Context, dwarf *pahole.Encoder, batch []*Fetched) error {
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
	as, err := naming.Parse(fetchNaming)
	if err != nil {
		return err
	}
	corp, err := corpus.Open(ctx, dirs, corpus.Options{As: []*naming.Rule{as}, Modules: f.Options.Modules, Extras: true, DWARF: dwarf, XZ: f.xz})
	if err == nil {
		var res *Packed
		res, err = Pack(ctx, walk.Config{Corpus: corp, Jobs: f.Jobs}, f.Path, func(res *Packed) (notes []btfc.Package) {
			for _, k := range ready {
				notes = append(notes, f.note(k, res)...)
			}
			return notes
		})
		if errors.Is(err, ErrEmpty) {
			return nil // all are tried again
		}
		if err == nil && dwarf.NoModules {
			for _, n := range res.Made {
				f.res.WithoutModules += n
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err() // which is not a failure of the kernels
	}
	for _, k := range ready {
		if err != nil {
			k.fail(err.Error(), true)
		}
	}
	if corp == nil {
		return nil
	}
	return err
}

// note sets the state of a kernel after its packages were read. It returns the note about the first package, unless the next run tries
// again.
func (f *fetcher) note(k *Fetched, res *Packed) []btfc.Package {
	below := filepath.ToSlash(k.dir) + "/"
	key, reason, later := kernel.Key{}, "", false
	for path, found := range res.Keys {
		if strings.HasPrefix(path, below) && (!key.Known() || found.Compare(key) < 0) { // the first, if a package has several
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
	pruned := maps.Clone(f.gone)
	maps.DeleteFunc(pruned, func(k kernel.Key, _ bool) bool { return !opts.Selects(k) })
	if f.res.Pruned = len(pruned); f.res.Pruned == 0 {
		return nil
	}
	old := &packer{cfg: walk.Config{Corpus: new(corpus.Corpus), Jobs: f.Jobs}, path: f.Path, replaced: pruned}
	p, err := old.without(ctx)
	if err != nil {
		return err
	}
	res, err := p.pack(ctx, 0, nil)
	if err == nil {
		f.res.Skipped = append(f.res.Skipped, res.Skipped...)
	}
	return err
}
