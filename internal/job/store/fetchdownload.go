// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/internal/workers/program"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// download downloads and imports what is wanted. While some packages are imported, the next ones are downloaded.
func (f *fetcher) download(ctx context.Context) error {
	all := f.res.Kernels
	if len(all) == 0 {
		return nil
	}
	for _, s := range f.Series {
		dir := f.work(s)
		// A run that was killed may have left packages.
		if err := os.RemoveAll(dir); err != nil {
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
		// One batch has all kernels that are done, so that the file is written once for them.
		for range len(done) {
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
	// The packages are renamed into Keep later, so they have to be on its file system.
	if f.Keep != "" {
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
func (f *fetcher) files(u *fetch.Offer) (paths []string) {
	for _, p := range u.Packages {
		paths = append(paths, filepath.Join(f.kept(u.Kernel), p.File))
	}
	return paths
}
