// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Entry is one kernel of a listing, a line of JSON. Fields are only added.
type Entry struct {
	Kernel    string `json:"kernel"` // the key, or the path if the key is incomplete
	ID        string `json:"id,omitempty"`
	VersionID string `json:"version_id,omitempty"`
	Arch      string `json:"arch,omitempty"`
	Release   string `json:"release,omitempty"`
	Path      string `json:"path"`
	Disk      int64  `json:"disk_bytes"` // 0 for all but the first kernel of a container
	*Details         // nil in a list of List

	damage error // why the BTF cannot be loaded
}

// Details are properties of a kernel that [Read] found.
type Details struct {
	Bytes       int64       `json:"btf_bytes"` // bytes of vmlinux BTF
	Types       int         `json:"types"`
	ByteOrder   string      `json:"byte_order"` // little or big
	Pointer     uint32      `json:"pointer_bytes"`
	Modules     int         `json:"modules"`
	ModuleBytes int64       `json:"module_bytes"`
	ConfigBytes int64       `json:"config_bytes,omitempty"`     // bytes of the kernel's configuration, as stored
	SymbolBytes int64       `json:"symbol_bytes,omitempty"`     // bytes of its symbols
	Maker       string      `json:"made_of_dwarf_by,omitempty"` // Made.By of the corpus.Kernel
	OwnBTF      btfc.OwnBTF `json:"own_btf"`                    // when the kernel runs

	// Of Disk in a .btfc file, the bytes of modules, and of configuration and symbols.
	DiskModules int64 `json:"disk_modules_bytes,omitempty"`
	DiskExtras  int64 `json:"disk_extras_bytes,omitempty"`
	packed      bool
}

// List returns an entry for each file of a corpus, without reading any.
func List(c *corpus.Corpus) []Entry {
	list := make([]Entry, len(c.Files))
	for i, f := range c.Files {
		list[i] = newEntry(f.Key, f.Path, f.Size)
	}
	return list
}

// Read returns the kernels of a corpus with their Details, and what was skipped, including kernels with damaged BTF. It takes the details of
// kernels in .btfc files from the index, and does not read these kernels.
func Read(ctx context.Context, cfg walk.Config) (list []Entry, skipped []*corpus.Error, err error) {
	rest := *cfg.Corpus
	rest.Files = nil
	for _, f := range cfg.Corpus.Files {
		if e := f.Indexed(); e != nil {
			list = append(list, indexed(f, e))
		} else {
			rest.Files = append(rest.Files, f)
		}
	}
	cfg.Corpus = &rest
	all, skipped, err := inspectAll(ctx, cfg, (*inspector).describe)
	for _, e := range all {
		if e.damage != nil {
			skipped = append(skipped, &corpus.Error{Path: e.Path, Err: e.damage})
		} else {
			list = append(list, e)
		}
	}
	slices.SortFunc(skipped, (*corpus.Error).Compare)
	return list, skipped, err
}

// indexed returns the entry of a kernel in a .btfc file, from its entry there.
func indexed(f *corpus.File, in *btfc.Entry) Entry {
	e := newEntry(f.Key, f.Path, f.Size)
	e.Details = newDetails(in.Shape)
	e.Bytes, e.Modules, e.ModuleBytes = in.Size, in.Modules, in.ModulesSize
	e.ConfigBytes, e.SymbolBytes, e.Maker = in.Config, in.Symbols, in.Made.By
	e.OwnBTF = in.HasOwnBTF()
	_, e.DiskModules, e.DiskExtras = in.PackedParts()
	e.packed = true
	return e
}

// Packed returns the bytes of the kernels in .btfc files that [Read] listed by their indexes: of all, and of these what modules take, and
// configuration and symbols.
func Packed(list []Entry) (all, modules, extras int64) {
	for _, e := range list {
		if e.Details != nil && e.packed {
			all, modules, extras = all+e.Disk, modules+e.DiskModules, extras+e.DiskExtras
		}
	}
	return all, modules, extras
}

// describe returns the entry of a kernel that was read.
func (in *inspector) describe(ctx context.Context, k *corpus.Kernel) Entry {
	e := newEntry(k.Key, k.Path, k.SourceSize)
	if e.damage = k.LoadBTF(ctx, &in.btf); e.damage != nil {
		return e
	}
	e.Kernel = k.Name
	e.Details = newDetails(btfc.ShapeOf(&in.btf))
	e.Bytes, e.Modules = int64(len(k.BTF)), len(k.Modules)
	e.ConfigBytes, e.SymbolBytes, e.Maker = int64(len(k.Config)), int64(len(k.Symbols)), k.Made.By
	e.OwnBTF = k.OwnBTF(&in.btf)
	for _, m := range k.Modules {
		e.ModuleBytes += int64(len(m.BTF))
	}
	return e
}

func newDetails(s btfc.Shape) *Details {
	d := &Details{Types: s.Types, ByteOrder: little, Pointer: s.Pointer}
	if s.BigEndian {
		d.ByteOrder = big
	}
	return d
}

func newEntry(k kernel.Key, path string, disk int64) Entry {
	e := Entry{Kernel: k.String(), ID: k.ID, VersionID: k.VersionID, Arch: k.Arch, Release: k.Release, Path: path, Disk: disk}
	if !k.Known() {
		e.Kernel = path
	}
	return e
}

// Key returns the kernel's key.
func (e *Entry) Key() kernel.Key {
	return kernel.Key{ID: e.ID, VersionID: e.VersionID, Arch: e.Arch, Release: e.Release}
}

// WriteTable writes kernels as a table, with long what [Read] found in them.
func WriteTable(w io.Writer, list []Entry, long bool) error {
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	head := escape.Own("KERNEL\tON DISK\t")
	if long {
		head += "BTF\tTYPES\tBYTE ORDER\tPOINTER\tMODULES\tOWN BTF\t"
	}
	escape.Fprintf(tw, "%s\n", head+"PATH")
	for _, e := range list {
		escape.Fprintf(tw, "%s\t%s\t", e.Key(), words.Bytes(e.Disk))
		if long {
			escape.Fprintf(tw, "%s\t%d\t%s\t%d\t%d\t%s\t", words.Bytes(e.Bytes), e.Types, e.ByteOrder, e.Pointer, e.Modules, string(e.OwnBTF))
		}
		escape.Fprintf(tw, "%s\n", e.Path)
	}
	return tw.Flush()
}
