// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output/jsonfile"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Entry is one kernel of a listing, which is a line of JSON for each. Fields are only ever added.
type Entry struct {
	Kernel    string `json:"kernel"` // the key, or the path if the key is not known
	ID        string `json:"id,omitempty"`
	VersionID string `json:"version_id,omitempty"`
	Arch      string `json:"arch,omitempty"`
	Release   string `json:"release,omitempty"`
	Path      string `json:"path"`
	File      string `json:"file,omitempty"` // the path below its source, where the key is not known
	Disk      int64  `json:"disk_bytes"`     // 0 for all but the first kernel of a container
	*Details         // nil if the kernel was not read
}

// Details is what only reading a kernel tells.
type Details struct {
	Bytes       int64  `json:"btf_bytes"` // of vmlinux
	Types       int    `json:"types"`
	ByteOrder   string `json:"byte_order"` // little or big
	Pointer     uint32 `json:"pointer_bytes"`
	Modules     int    `json:"modules"`
	ModuleBytes int64  `json:"module_bytes"`
	ConfigBytes int64  `json:"config_bytes,omitempty"`     // of the kernel's configuration, as it is kept
	SymbolBytes int64  `json:"symbol_bytes,omitempty"`     // and of its symbols
	Maker       string `json:"made_of_dwarf_by,omitempty"` // as corpus.Kernel has it
	AsBytes     bool   `json:"kept_as_bytes,omitempty"`    // in a corpus in one file, which could not do better
}

// List returns the kernels of a corpus without reading any: one entry for each file.
func List(c *corpus.Corpus) []Entry {
	list := make([]Entry, len(c.Files))
	for i, f := range c.Files {
		list[i] = newEntry(f.Key, f.Path, f.Size, c.Sources)
	}
	return list
}

// Read returns the kernels of a corpus with their Details, after reading all of them, and what was
// skipped: what the corpus skips, what cannot be read, and kernels whose BTF is damaged.
func Read(ctx context.Context, cfg walk.Config) (list []Entry, skipped []*corpus.Error, err error) {
	all := make([][]Entry, len(cfg.Corpus.Files))
	bad := make([][]*corpus.Error, len(cfg.Corpus.Files))
	skipped, err = walk.Kernels(ctx, cfg, func() *inspector { return &inspector{sources: cfg.Corpus.Sources} },
		func(in *inspector, r walk.Rank, k *corpus.Kernel) error {
			e, err := in.describe(ctx, k)
			if err != nil {
				bad[r.File] = append(bad[r.File], &corpus.Error{Path: e.Path, Err: err})
				return nil
			}
			all[r.File] = append(all[r.File], e)
			return nil
		})
	skipped = append(skipped, slices.Concat(bad...)...)
	slices.SortFunc(skipped, (*corpus.Error).Compare)
	return slices.Concat(all...), skipped, err
}

func newEntry(k kernel.Key, path string, disk int64, sources []string) Entry {
	e := Entry{
		Kernel: k.String(), ID: k.ID, VersionID: k.VersionID, Arch: k.Arch, Release: k.Release,
		Path: path, Disk: disk,
	}
	if !k.Known() {
		e.Kernel, e.File = e.Path, below(sources, path)
	}
	return e
}

// below returns a path as it is seen from the source that leads to it: what stays the same when a
// tree moves. Of a source that is a file it is the name.
func below(sources []string, path string) string {
	file, member, nested := strings.Cut(path, "!")
	short := file
	for _, s := range sources {
		rel, err := filepath.Rel(s, file)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if rel == "." {
			rel = filepath.Base(file)
		}
		if len(rel) < len(short) {
			short = rel
		}
	}
	if nested {
		short += "!" + member
	}
	return filepath.ToSlash(short)
}

// Key returns the kernel's key.
func (e *Entry) Key() kernel.Key {
	return kernel.Key{ID: e.ID, VersionID: e.VersionID, Arch: e.Arch, Release: e.Release}
}

// identity is the same for the same kernel in two listings.
func (e *Entry) identity() string {
	if k := e.Key(); k.Known() {
		return k.Canonical().String()
	}
	return cmp.Or(e.File, e.Path)
}

// ReadListing reads what 'corpus list --json' wrote. Errors name path.
func ReadListing(ctx context.Context, path string) (list []Entry, err error) {
	var full [][]Entry // rather than one slice that grows, which takes several times its size
	n := 0
	err = jsonfile.Read(ctx, path, limits.ManifestBytes, "lines of 'corpus list --json'", func(d *jsonfile.Decoder) error {
		for ; ; n++ {
			var e struct {
				Entry
				Class string // of a finding, which is no kernel
			}
			switch err := d.Value(&e); {
			case err == io.EOF:
				return nil
			case err != nil:
				return fmt.Errorf("entry %d: %w", n+1, err)
			case e.Class != "":
				continue
			case e.Path == "":
				return fmt.Errorf("entry %d: has no path", n+1)
			case n == limits.EarlierKernels:
				return fmt.Errorf("more than %d kernels", limits.EarlierKernels)
			}
			if list = append(list, e.Entry); len(list) == 1<<10 {
				full, list = append(full, list), nil
			}
		}
	})
	return slices.Concat(append(full, list)...), err
}
