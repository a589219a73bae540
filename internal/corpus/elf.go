// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"

	"github.com/btfgen/btfgen/internal/bpfobj/elffile"
	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
)

// elf reads the BTF of a vmlinux, a module or another ELF file. It reads a file on disk in place, and a stream as a whole. If DWARF is
// wanted, a stream that may have it is written to disk first.
func (x *extractor) elf(in *unpack.Stream) error {
	if in.File != nil {
		return x.elfFile(in, in.File)
	}
	if e := x.source.opts.DWARF; e != nil && (!in.Inside || isKernelName(in.Member)) {
		return x.elfOnDisk(in, e)
	}
	mem := x.mem.Other()
	defer mem.Release()
	data, err := mem.Read(in.Reader, in.Size, x.source.opts.MaxSize)
	if err != nil {
		return skip.Wrap(in.Path, "elf", err)
	}
	return x.elfFile(in, bytes.NewReader(data))
}

func (x *extractor) elfFile(in *unpack.Stream, file io.ReaderAt) error {
	f, err := elffile.New(file, limits.ELFSections)
	if err != nil {
		return skip.Wrap(in.Path, "elf", err)
	}
	sec := f.Section(".BTF")
	if sec != nil && sec.Type == elf.SHT_NOBITS { // a file with debug information only
		sec = nil
	}
	switch {
	case f.Machine == elf.EM_BPF && !in.Inside && !x.current.Source:
		return skip.Wrap(in.Path, "elf", errors.New("a BPF object, not a kernel"))
	case sec == nil && (in.File != nil || x.source.opts.DWARF == nil) && hasDWARF(f) && isKernelELF(f, in.Member):
		return x.dwarf(in, f)
	case sec == nil && x.to.encodes() && f.Type == elf.ET_REL && f.Machine != elf.EM_BPF && naming.IsModule(in.Member) && hasDWARF(f):
		return x.to.addDWARF(in, file)
	case in.Inside && (f.Machine == elf.EM_BPF || sec == nil):
		return nil
	case sec == nil && (in.Image || isKernelELF(f, in.Member)):
		return skip.Wrap(in.Path, "elf", errNoSection)
	case sec == nil:
		return skip.Wrap(in.Path, "elf", errors.New("no .BTF section"))
	}
	base, err := x.distilled(f)
	if err != nil {
		return skip.Wrap(in.Path, "elf: .BTF.base", err)
	}
	data, err := x.mem.Read(x.Counted(sec.Open()), int64(sec.Size), x.source.opts.MaxSize)
	if err != nil {
		x.mem.Drop(base)
		return skip.Wrap(in.Path, "elf: .BTF", err)
	}
	b := blob{data: data, base: base, arch: machine.OfELF(f.Machine, f.Class, f.Data), rel: image.ELFRelease(f)}
	if in.Image {
		b.from = btfc.HasBTF
	}
	return x.to.add(in, b)
}

// distilled returns the distilled base that a module brings with it, nil if it has none. Modules that are built outside the kernel's tree
// have one since Linux 6.11, as their types are not encoded on top of those of one kernel.
func (x *extractor) distilled(f *elf.File) ([]byte, error) {
	sec := f.Section(".BTF.base")
	if sec == nil || sec.Type == elf.SHT_NOBITS {
		return nil, nil
	}
	return x.mem.Read(x.Counted(sec.Open()), int64(sec.Size), limits.DistilledBase)
}
