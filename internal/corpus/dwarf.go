// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"debug/elf"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
)

// isKernelName reports whether a file is called vmlinux or vmlinux-<release>.
func isKernelName(name string) bool { return strings.HasPrefix(path.Base(name), "vmlinux") }

func hasDWARF(f *elf.File) bool {
	return slices.ContainsFunc(f.Sections, func(s *elf.Section) bool {
		return (s.Name == ".debug_info" || s.Name == ".zdebug_info") && s.Type != elf.SHT_NOBITS && s.FileSize > 0
	})
}

// isKernelELF reports whether an ELF file is a kernel rather than a module or another program, by its name, its banner or its table of
// symbols.
func isKernelELF(f *elf.File, name string) bool {
	if f.Machine == elf.EM_BPF || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return false
	}
	return isKernelName(name) || f.Section("__ksymtab") != nil || image.ELFRelease(f) != ""
}

// elfOnDisk reads an ELF file from a stream by way of a temporary file, because debug information does not fit in memory.
func (x *extractor) elfOnDisk(in *unpack.Stream, e *pahole.Encoder) error {
	file, err := e.Temporary()
	if err != nil {
		return skip.Wrap(in.Path, "elf", err)
	}
	defer file.Close()
	limit := max(limits.VmlinuxSize, x.source.opts.MaxSize)
	if in.Size > limit {
		return skip.Wrap(in.Path, "elf", decompress.TooLarge(limit))
	}
	n, err := io.Copy(file, io.LimitReader(in.Reader, limit+1))
	if err == nil && n > limit {
		err = decompress.TooLarge(limit)
	}
	if err != nil {
		return skip.Wrap(in.Path, "elf", err)
	}
	onDisk := *in
	onDisk.File = file
	return x.elfFile(&onDisk, file)
}

// dwarf adds the BTF that pahole encodes from a kernel's DWARF.
func (x *extractor) dwarf(in *unpack.Stream, f *elf.File) error {
	e := x.source.opts.DWARF
	if e == nil {
		return skip.Wrap(in.Path, "elf", pahole.ErrDWARF)
	}
	arch, rel := machine.OfELF(f.Machine, f.Class, f.Data), image.ELFRelease(f)
	if x.to.skip(in, arch, rel) {
		// Skipping it here saves a run of pahole.
		return nil
	}
	data, made, err := e.Encode(x.Ctx, in.File, x.mem, x.source.opts.MaxSize)
	if err != nil {
		return skip.Wrap(in.Path, "elf", err)
	}
	return x.to.add(in, blob{data: data, made: made, arch: arch, rel: rel})
}
