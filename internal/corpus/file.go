// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/extras"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// File is a unit of work: a file with one kernel or, if it is a container, many, and the files with modules for it. It does not change, and
// is safe for concurrent use.
type File struct {
	Path string     // the user's path, extended by the names below
	Key  kernel.Key // shown by the path; may be incomplete
	Size int64      // bytes on disk, module files included

	files  []diskFile
	btfc   *btfcEntry      // where the kernel is in a corpus in one file, or nil
	config []byte          // Extras.Config of its kernel if it is set; see WithConfig
	left   map[string]bool // paths of kernels that Read leaves out; see Corpus.WithoutBTF
	opts   *Options        // shared by all of the corpus
}

// Kernel is a kernel with its BTF and that of its modules. Its slices are valid until yield returns; its strings stay. Its methods are for one
// goroutine at a time.
type Kernel struct {
	Key  kernel.Key // shown by the path, or else by the content; see Key.Known
	Name string     // the key if it is known, else the path
	Path string     // the file, followed by "!member" for each container

	// Arch is the canonical architecture of the content: of an ELF file, an image or a package. Raw BTF has none.
	Arch string

	// Made says what made the BTF of DWARF. It is zero if the kernel came with BTF.
	Made btfc.Made

	// From says whether the kernel has BTF of its own where the file that it was read from shows that: a kernel's image, or the index of a
	// corpus in one file. See Kernel.OwnBTF.
	From btfc.OwnBTF

	BTF     []byte   // vmlinux BTF, with a valid header
	PartOf  int64    // bytes of the kernel and its modules if BTF and Modules are a part of them, else 0; see File.ReadPart
	Modules []Module // sorted by their names, which are distinct
	Extras

	// SourceSize is the size on disk in bytes. Kernels of one container share its size: the first one has it, the others have 0, so that sums
	// are right.
	SourceSize int64

	unfit []error // modules that Load left out, and another machine

	mem    *decompress.Arena // memory of the reading; nil in a clone
	shared bool              // mem has more than k, or k's BTF is not all in mem
}

// Module is a kernel module with BTF.
type Module struct {
	Name string // the name that lsmod shows, such as nf_conntrack
	Path string // the file, as Kernel.Path
	BTF  []byte // split BTF on top of its kernel's
}

// Extras are the configuration and the symbols of a kernel. They are read only with Options.Extras.
//
// Packages have them as boot/config-RELEASE and boot/System.map-RELEASE, or as lib/modules/RELEASE/config and System.map. A directory has
// them next to the kernel's file under these names, or under its name with .config or .kallsyms instead of .btf. They may be compressed.
// Corpora in one file and the running kernel have them, too.
//
// Config has the lines of the kernel's configuration that set something, and the one with its version. Symbols has a line for each function
// and variable, "t NAME" or "d NAME", followed by " [MODULE]" for those of a loaded module. Nil is unknown: the System.map of some
// distributions only says where the real one is.
type Extras = btfc.Extras

// Identity is equal for kernels with equal contents, in one process. It is 128 bits of a hash with random seeds: ten times as fast as
// SHA-256, and a file cannot be made to collide with another.
type Identity [2]uint64

var identitySeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// Identity returns that of the contents and the machine of the kernel, and of other data. Kernels with other names may have the same.
func (k *Kernel) Identity(other ...[]byte) (id Identity) {
	for i, seed := range identitySeeds {
		var h maphash.Hash
		h.SetSeed(seed)
		add := func(part []byte) {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
			h.Write(part)
		}
		add(fmt.Appendf(nil, "%q %q %q %t %t", k.Key.Arch, k.Arch, k.Made.By, k.Config != nil, k.Symbols != nil))
		for _, part := range append([][]byte{k.BTF, k.Config, k.Symbols}, other...) {
			add(part)
		}
		for _, m := range k.Modules {
			add([]byte(m.Name))
			add(m.BTF)
		}
		id[i] = h.Sum64()
	}
	return id
}

// Reserve lets n bytes of what a caller makes of the kernel count as memory of kernels until release is called. It waits until they are free.
func (k *Kernel) Reserve(n int64) (release func(), err error) {
	own := k.mem.Other()
	if err := own.Hold(n); err != nil {
		own.Release()
		return nil, err
	}
	return own.Release, nil
}

// Keep lets the slices of k stay valid when yield has returned, until release is called, once. Meanwhile they count as memory of kernels.
func (k *Kernel) Keep() (release func(), err error) {
	if !k.shared {
		return k.mem.Move().Release, nil
	}
	own := k.mem.Other()
	kept := false
	defer func() {
		if !kept { // an error, or a fault of a mapped file
			own.Release()
		}
	}()
	if err := own.Hold(int64(len(k.Config) + len(k.Symbols))); err != nil {
		return nil, err
	}
	if k.BTF, err = own.Copy(k.BTF); err != nil {
		return nil, err
	}
	for i := range k.Modules {
		if k.Modules[i].BTF, err = own.Copy(k.Modules[i].BTF); err != nil {
			return nil, err
		}
	}
	kept = true
	return own.Release, nil
}

// Size returns the bytes of the BTF, the modules and the extras.
func (k *Kernel) Size() int64 {
	n := len(k.BTF) + len(k.Config) + len(k.Symbols)
	for _, m := range k.Modules {
		n += len(m.BTF)
	}
	return int64(n)
}

// Clone returns a copy that stays valid, without modules and extras.
func (k *Kernel) Clone() *Kernel {
	clone := *k
	clone.BTF, clone.Modules, clone.Extras, clone.mem = bytes.Clone(k.BTF), nil, Extras{}, nil
	return &clone
}

// LoadBTF loads the kernel's BTF into b, without modules. It is an error if the BTF has no usable types.
func (k *Kernel) LoadBTF(ctx context.Context, b *btf.BTF) error {
	if err := b.Load(ctx, k.BTF, nil); err != nil {
		return err
	}
	return usable(b, k.PartOf > 0)
}

// Load loads the kernel into t, and sets the machine of its key or else of its content. t uses name in messages and logs; the
// error does not have it. It is an error if BTF has no usable types. t is valid as long as k is. Load removes modules from k.Modules whose BTF
// does not fit the kernel's, such as that of another build; File.Read returns an Error for each, and for BTF of another machine than the key's.
func (k *Kernel) Load(ctx context.Context, t *core.Target, name string) error {
	if err := t.Load(ctx, name, k.BTF); err != nil {
		var named *core.LoadError
		if errors.As(err, &named) {
			return named.Err
		}
		return err
	}
	for module, b := range t.Views() {
		if module != "" {
			break
		}
		if err := usable(b, k.PartOf > 0); err != nil {
			return err
		}
	}
	fit := k.Modules[:0]
	for _, m := range k.Modules {
		err := t.Add(ctx, relo.Module{Name: m.Name, BTF: m.BTF})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			k.unfit = skip.Append(k.unfit, k.Path, skip.Wrap(m.Path, "", fmt.Errorf("%w: %w", ErrUnfit, err)))
		default:
			fit = append(fit, m)
		}
	}
	k.Modules = fit
	t.SetMachine(cmp.Or(k.Key.Arch, k.Arch))
	if arch := kernel.CanonicalArch(k.Key.Arch); k.PartOf == 0 && machine.Named(arch) != nil {
		for module, b := range t.Views() {
			if module != "" {
				continue
			}
			if m := machine.OfKernel(ctx, b); m != "" && m != arch {
				k.unfit = skip.Append(k.unfit, k.Path, fmt.Errorf("%w: its struct pt_regs is that of %s, its path says %s", ErrMachine, m, arch))
			}
		}
	}
	return nil
}

// Paths returns the files of f: the one with the kernel, then those with its modules.
func (f *File) Paths() []string {
	paths := make([]string, len(f.files))
	for i, p := range f.files {
		paths[i] = p.Path
	}
	return paths
}

// Sums returns the SHA-256 of each file of f on disk: the one with the kernel, then those with its modules. Of a corpus in one file they
// are btfc.File.Sources. It decompresses nothing.
func (f *File) Sums(ctx context.Context) ([][sha256.Size]byte, error) {
	if f.btfc != nil {
		return f.btfc.file.Sources(f.btfc.entry), nil
	}
	sums := make([][sha256.Size]byte, len(f.files))
	for i, p := range f.files {
		var err error
		if sums[i], err = hashFile(ctx, p.Path); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// WithConfig returns f with the configuration of its kernel, the text of a file.
func (f *File) WithConfig(text []byte) (*File, error) {
	file := *f
	var err error
	if file.config, err = extras.ReadConfig(bufio.NewReader(bytes.NewReader(text))); err != nil {
		return nil, skip.Wrap(f.Path, naming.Config.String(), err)
	}
	return &file, nil
}

// btfcEntry is where a kernel is in a corpus in one file.
type btfcEntry struct {
	file  *btfc.File
	entry int
}

func (p *btfcEntry) entryOf() *btfc.Entry { return p.file.Entries()[p.entry] }
