// SPDX-License-Identifier: Apache-2.0

// Package bootable takes a kernel and what it needs to boot from packages and images.
package bootable

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/elffile"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
)

// System is a kernel with what it needs to boot. Its memory belongs to the caller.
type System struct {
	Image   []byte   // the kernel, in the form that a boot loader takes
	Machine string   // x86_64 or arm64
	Release string   // as the image or its path shows it; may be ""
	Config  []byte   // the kernel's configuration; nil if the file does not have it
	Modules []Module // sorted so that they can be loaded one after the other
	Missing []string // wanted modules, or dependencies of these, that the file lacks; sorted
}

// Module is a kernel module.
type Module struct {
	Name string // the form that the kernel uses, with _ for -
	ELF  []byte

	depends []string
}

// Read reads the kernel in the file at path with the modules of these names and their dependencies. It calls read, which passes the content
// of the file to a Taker, until no new module is named: a module may come before another one that depends on it.
func Read(path string, modules []string, read func(taker func(*unpack.Reading) unpack.Taker) error) (*System, error) {
	b := &booting{want: make(map[string]bool)}
	for _, m := range modules {
		b.want[m] = true
	}
	for asked := -1; asked != len(b.want) && len(b.want) <= limits.BootModules; {
		asked = len(b.want)
		err := read(func(r *unpack.Reading) unpack.Taker {
			b.Reading = r
			return b
		})
		if err != nil {
			return nil, err
		}
	}
	if len(b.want) > limits.BootModules {
		return nil, skip.Wrap(path, "", &limits.Exceeded{Max: limits.BootModules, What: "modules to load"})
	}
	return b.system(path)
}

// booting collects a System.
type booting struct {
	*unpack.Reading // the current reading
	image           []byte
	machine         string
	release         string
	config          []byte
	want            map[string]bool
	modules         []Module
}

func (b *booting) system(from string) (*System, error) {
	if b.image == nil {
		return nil, skip.Wrap(from, "", errors.New("no kernel image for x86_64 or arm64 in it"))
	}
	out := &System{Image: b.image, Machine: b.machine, Release: b.release, Config: b.config}
	at := make(map[string]*Module)
	for i := range b.modules {
		at[b.modules[i].Name] = &b.modules[i]
	}
	done := make(map[string]bool)
	var add func(name string)
	add = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		m := at[name]
		if m == nil {
			out.Missing = append(out.Missing, name)
			return
		}
		for _, d := range m.depends {
			add(d)
		}
		out.Modules = append(out.Modules, *m)
	}
	for _, name := range slices.Sorted(maps.Keys(b.want)) {
		add(name)
	}
	slices.Sort(out.Missing)
	return out, nil
}

func (b *booting) Wants(name string) (naming.Extra, bool) {
	if naming.IsModule(name) {
		return naming.NoExtra, b.want[naming.ModuleName(name)]
	}
	base := path.Base(name)
	return naming.NoExtra, isConfig(name) || !naming.Unrelated(base) && !strings.HasPrefix(base, "modules.")
}

// Attempt is that of a Taker. What a damaged stream had is not used, since its error ends Read.
// Link does nothing: a package has its kernel and modules as files.
func (b *booting) Link(*unpack.Stream, string, string) {}

func (b *booting) Attempt(read func() error) error { return read() }

// isConfig reports whether a file is named like the configuration of a kernel in a package.
func isConfig(name string) bool {
	kind, release := naming.ExtraOf(name)
	return kind == naming.Config && release != ""
}

func (b *booting) Take(in *unpack.Stream, k sniff.Kind) error {
	switch {
	case in.Extra == naming.Config, in.Inside && isConfig(in.Member):
		if b.config != nil {
			return nil
		}
		data, err := whole(in, limits.BootConfig)
		b.config = data
		return skip.Wrap(in.Path, "config", err)
	case in.Inside && naming.IsModule(in.Member):
		return skip.Wrap(in.Path, "module", b.module(in))
	case k == sniff.Image, k == sniff.Unknown && !in.Inside:
		return skip.Wrap(in.Path, "image", b.kernel(in))
	}
	return nil
}

// whole reads all of a stream, of at most limit bytes.
func whole(in *unpack.Stream, limit int64) ([]byte, error) {
	return new(decompress.Arena).Read(in.Reader, in.Size, limit)
}

// module takes a module, and notes what it depends on.
func (b *booting) module(in *unpack.Stream) error {
	m := Module{Name: naming.ModuleName(in.Member)}
	if slices.ContainsFunc(b.modules, func(x Module) bool { return x.Name == m.Name }) {
		return nil
	}
	var err error
	if m.ELF, err = whole(in, limits.BootModuleBytes); err != nil {
		return err
	}
	f, err := elffile.New(bytes.NewReader(m.ELF), limits.ELFSections)
	if err != nil {
		return err
	}
	sec := f.Section(".modinfo")
	if sec == nil {
		return errors.New("no .modinfo section")
	}
	info, err := io.ReadAll(io.LimitReader(sec.Open(), limits.BootConfig))
	if err != nil {
		return err
	}
	for line := range bytes.SplitSeq(info, []byte{0}) {
		list, ok := bytes.CutPrefix(line, []byte("depends="))
		for name := range strings.SplitSeq(string(list), ",") {
			if ok && name != "" && len(b.want) <= limits.BootModules {
				name = strings.ReplaceAll(name, "-", "_")
				m.depends, b.want[name] = append(m.depends, name), true
			}
		}
	}
	b.modules = append(b.modules, m)
	return nil
}

// kernel takes the image of a machine that can be booted, as a boot loader would.
func (b *booting) kernel(in *unpack.Stream) error {
	img, err := whole(in, b.MaxSize)
	if err != nil {
		return err
	}
	machine, release := "", ""
	switch image.Sniff(img) {
	case image.BzImage:
		// Bit 0 of xloadflags in the boot protocol: a 64-bit kernel.
		if len(img) < 0x250 || binary.LittleEndian.Uint16(img[0x236:])&1 == 0 {
			return errors.New("a 32-bit kernel, which cannot be booted here")
		}
		machine, release = "x86_64", image.BzImageRelease(img)
	case image.Zboot:
		payload, arch, err := image.ZbootPayload(img)
		if err != nil {
			return err
		}
		if img, err = b.Decompress(payload, decompress.Sniff(payload), new(decompress.Arena)); err != nil {
			return err
		}
		machine, release = arch, image.Release(img)
	case image.Arm64:
		machine, release = "arm64", image.Release(img)
	}
	if machine != "x86_64" && machine != "arm64" {
		return errors.New("not a kernel image for x86_64 or arm64")
	}
	if b.image != nil && !bytes.Equal(b.image, img) {
		return errors.New("a second kernel: only one can be booted")
	}
	b.image, b.machine = img, machine
	b.release = cmp.Or(release, naming.KernelKey(in.Member).Release)
	return nil
}

// HoldsImage reports whether a file is a package or a kernel image, by its first bytes.
func HoldsImage(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, sniff.Len)
	n, _ := io.ReadFull(f, head)
	k := sniff.Of(head[:n])
	return k == sniff.Ar && bytes.Contains(head[:n], []byte("debian-binary")) || k == sniff.RPM || k == sniff.Image
}
