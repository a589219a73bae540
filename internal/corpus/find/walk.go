// SPDX-License-Identifier: Apache-2.0

package find

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/limits"
)

// Found is what Files found.
type Found struct {
	Files   []*File
	Skipped []*skip.Error // files that look like kernels but are none
	Ignored int           // files that have nothing to do with BTF
	Links   []Link        // other names of Files

	sources naming.Sources
}

// Below returns the part of a path that determines its key, see naming.Sources.
func (f *Found) Below(path string) string { return f.sources.Below(path) }

// Link is another name of a file that was found: a link to it, or to a directory above it.
type Link struct {
	*File
	To *File
}

// Files finds the files of the sources, which are files and directories. It reads the first bytes of each. A source that cannot be read is an
// error.
func Files(ctx context.Context, sources []string) (*Found, error) {
	w := &walk{ctx: ctx, seen: make(map[string]bool), Found: Found{sources: make(naming.Sources)}}
	for _, src := range sources {
		if err := w.source(src); err != nil {
			return nil, err
		}
	}
	if err := w.links(); err != nil {
		return nil, err
	}
	w.names()
	for _, f := range w.Files {
		f.Below = w.Below(f.Path)
	}
	for _, l := range w.Links {
		l.Below = w.Below(l.Path)
	}
	return &w.Found, nil
}

// walk finds the files of the sources. Each real file and directory is visited once, whatever
// sources and links lead to it, so links cannot make it endless. Links are followed only when all
// real directories have been walked. Those that lead to what has been visited give it another name.
type walk struct {
	ctx     context.Context
	seen    map[string]bool // real paths
	roots   []string        // real paths of the sources
	pending []*entry        // links
	again   []*entry        // links to files and directories that have been visited, with where they lead

	Found
}

// entry is a path as shown to the user, and its real path.
type entry struct{ path, real string }

// source adds a source. Here alone, every problem is an error.
func (w *walk) source(src string) error {
	fi, err := os.Stat(src)
	if err != nil {
		return skip.Wrap(src, "", err)
	}
	abs, err := filepath.Abs(src)
	if err != nil {
		return skip.Wrap(src, "", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return skip.Wrap(src, "", err)
	}
	w.roots = append(w.roots, real)
	w.sources[filepath.ToSlash(filepath.Clean(src))] = true
	if w.seen[real] {
		return nil
	}
	w.seen[real] = true
	switch {
	case fi.IsDir():
		return w.dir(&entry{filepath.Clean(src), real}, true)
	case !fi.Mode().IsRegular():
		return skip.Wrap(src, "", errors.New("not a regular file or directory"))
	}
	f := &File{Path: src, Abs: filepath.ToSlash(abs), Size: fi.Size(), Source: true, real: real}
	if err := f.look(); err != nil {
		return skip.Wrap(src, "", err)
	}
	w.add(f)
	return nil
}

// add files f where it belongs, by its first bytes.
func (w *walk) add(f *File) {
	switch {
	case f.Kind == sniff.Empty:
		w.skip(f.Path, sniff.ErrEmpty)
	case f.Kind == sniff.Zero:
		w.skip(f.Path, sniff.ErrZeros)
	case f.Source && f.Kind == sniff.Unknown && f.what == sniff.ErrMinimized:
		w.skip(f.Path, f.what)
	case !f.Source && f.Kind == sniff.Unknown && naming.SaysBTF(path.Base(f.Abs)):
		w.skip(f.Path, f.what)
	case !f.Source && (f.Kind == sniff.Unknown || f.Kind == sniff.Cpio || f.bpf):
		w.Ignored++
	default:
		w.Files = append(w.Files, f)
	}
}

func (w *walk) skip(path string, err error) {
	w.Skipped = append(w.Skipped, &skip.Error{Path: path, Err: skip.Cause(err)})
}

// dir walks the real directories below e.
func (w *walk) dir(e *entry, root bool) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	list, err := os.ReadDir(e.real)
	if err != nil {
		if root {
			return skip.Wrap(e.path, "", err)
		}
		w.skip(e.path, err)
		return nil
	}
	for _, d := range list {
		if err := w.child(&entry{filepath.Join(e.path, d.Name()), filepath.Join(e.real, d.Name())}, d); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) child(e *entry, d fs.DirEntry) error {
	switch {
	case naming.Unrelated(d.Name()):
		w.Ignored++
	case d.Type()&fs.ModeSymlink != 0:
		w.pending = append(w.pending, e)
	case w.seen[e.real]:
	case d.IsDir():
		w.seen[e.real] = true
		return w.dir(e, false)
	case d.Type().IsRegular():
		w.seen[e.real] = true
		w.file(e, e.real)
	default:
		w.Ignored++ // sockets, devices
	}
	return nil
}

func (w *walk) file(e *entry, real string) {
	abs, err := filepath.Abs(e.path)
	if err != nil {
		abs = e.real
	}
	f := &File{Path: e.path, Abs: filepath.ToSlash(abs), real: real}
	if err := f.look(); err != nil {
		w.skip(e.path, err)
		return
	}
	w.add(f)
}

// links follows the links, and collects those that lead to what has been visited, or is in a source.
func (w *walk) links() error {
	for len(w.pending) > 0 {
		batch := w.pending
		w.pending = nil
		slices.SortFunc(batch, func(a, b *entry) int { return strings.Compare(a.path, b.path) })
		for _, e := range batch {
			if err := w.link(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) link(e *entry) error {
	real, err := filepath.EvalSymlinks(e.real)
	if errors.Is(err, fs.ErrNotExist) {
		w.skip(e.path, errors.New("dangling link"))
		return nil
	}
	if err != nil {
		if pe := (*fs.PathError)(nil); !errors.As(err, &pe) { // filepath has no error for a link that leads to itself
			err = errors.New("too many links")
		}
		w.skip(e.path, fmt.Errorf("link: %w", skip.Cause(err)))
		return nil
	}
	if w.seen[real] || slices.ContainsFunc(w.roots, func(r string) bool { return naming.Within(r, real) }) {
		w.again = append(w.again, &entry{e.path, real})
		return nil
	}
	w.seen[real] = true
	fi, err := os.Stat(real)
	switch {
	case err != nil:
		w.skip(e.path, err)
	case fi.IsDir():
		return w.dir(&entry{e.path, real}, false)
	case fi.Mode().IsRegular():
		w.file(e, real)
	default:
		w.Ignored++
	}
	return nil
}

// names sets Links to the names that links give to files that were found.
func (w *walk) names() {
	files := make(map[string]*File)
	for _, f := range w.Files {
		files[f.real] = f
	}
	for _, e := range w.again {
		if f := files[e.real]; f != nil {
			w.name(e.path, f)
			continue
		}
		for _, f := range w.Files {
			if naming.Within(f.real, e.real) {
				w.name(e.path+strings.TrimPrefix(f.real, e.real), f)
			}
		}
	}
}

// name adds another name of a file.
func (w *walk) name(path string, to *File) {
	if len(w.Links) == limits.Links {
		w.skip(path, &limits.Exceeded{Max: limits.Links, What: "links to files that have other names"})
	}
	if len(w.Links) >= limits.Links {
		return
	}
	f := *to
	f.Path, f.Abs, f.Source = path, filepath.ToSlash(path), false
	if abs, err := filepath.Abs(path); err == nil {
		f.Abs = filepath.ToSlash(abs)
	}
	w.Links = append(w.Links, Link{&f, to})
}
