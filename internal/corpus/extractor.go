// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
)

// extractor takes the BTF out of what unpack finds, and passes it to an assembler.
type extractor struct {
	*reading
	to *assembler
}

// file takes the BTF of one file on disk.
func (x *extractor) file(p *diskFile) {
	seen, extras, errs := x.to.seen, len(x.to.extras), len(x.Errs)
	x.to.links = tarLinks{}
	x.reading.readFile(p, x)
	if !x.Stopped() && x.to.first == nil {
		x.links(p)
	}
	if p.extra != naming.NoExtra || p.mods && len(x.to.extras) > extras {
		return
	}
	if x.to.seen == seen && len(x.Errs) == errs {
		x.Fail(skip.Wrap(p.Path, "", errors.New("holds no BTF")))
	}
}

// links takes the BTF of the members of a tar file that links lead to.
func (x *extractor) links(p *diskFile) {
	names := chooseInTar(&x.to.links, x.to)
	if len(names) == 0 {
		return
	}
	if x.to.found+x.to.kernelsIn(p)+len(names) > 1 {
		// Counting one more keeps each kernel from getting the name of the file.
		x.to.found++
	}
	x.to.end(len(x.to.pending))
	x.Names = names
	x.reading.readFile(p, x)
	x.Names = nil
}

func (x *extractor) Wants(member string) (naming.Extra, bool) {
	extra, _ := naming.ExtraOf(member)
	if extra != naming.NoExtra && !x.source.opts.Extras || extra == naming.NoExtra && naming.Unrelated(path.Base(member)) {
		return extra, false
	}
	return extra, !naming.IsModule(member) || x.to.wantsModule(naming.ModuleName(member))
}

// Link notes a link whose name may be that of a kernel.
func (x *extractor) Link(in *unpack.Stream, member, to string) {
	base := path.Base(member)
	if in.Path != x.current.Path || naming.Unrelated(base) || naming.IsModule(member) || !naming.SaysBTF(base) {
		return
	}
	if err := x.to.links.add(member, to); err != nil {
		x.Fail(skip.Wrap(in.Path, "", err))
	}
}

func (x *extractor) Attempt(read func() error) error { return x.to.attempt(read) }

func (x *extractor) Take(in *unpack.Stream, k sniff.Kind) error {
	if x.member(in) && x.Names == nil && (k == sniff.BTF || k == sniff.ELF || k == sniff.Image) {
		x.to.links.member(in.Member)
	}
	switch {
	case in.Extra != naming.NoExtra:
		return x.to.addExtra(in)
	case k == sniff.Empty:
		return empty(in, sniff.ErrEmpty)
	case k == sniff.Zero:
		return empty(in, sniff.ErrZeros)
	case k == sniff.BTF:
		return x.raw(in)
	case k == sniff.ELF:
		return x.elf(in)
	case k == sniff.Image, k == sniff.Unknown && !in.Inside: // the last chance
		return x.image(in)
	}
	return nil
}

// empty returns err if BTF is expected.
func empty(in *unpack.Stream, err error) error {
	if in.Inside && !strings.Contains(in.Member, ".btf") {
		return nil
	}
	return skip.Wrap(in.Path, "", err)
}

// raw reads a BTF blob.
func (x *extractor) raw(in *unpack.Stream) error {
	if data := x.mapped(in); data != nil {
		return x.to.add(in, blob{data: data, mapped: true})
	}
	size := in.Size
	if size < 0 { // only the header says how long it is likely to be
		head, _ := in.Peek(sniff.Len)
		if h, err := btf.ReadHeader(head, x.source.opts.MaxSize); err == nil {
			size = min(int64(h.End()), x.source.opts.MaxSize)
		}
	}
	data, err := x.mem.Read(in.Reader, size, x.source.opts.MaxSize)
	if err != nil {
		return skip.Wrap(in.Path, "btf", err)
	}
	if x.later(in, data) {
		return nil
	}
	return x.to.add(in, blob{data: data})
}

// later reports whether to read a kernel without a name again when the links of the tar file that it is in are known.
func (x *extractor) later(in *unpack.Stream, data []byte) bool {
	base, l := path.Base(in.Member), &x.to.links
	if x.Names != nil || !x.member(in) || x.to.first != nil || len(l.unnamed) == limits.Links ||
		naming.SaysBTF(base) || naming.IsVmlinux(base) || naming.StartsWithDigit(base) && strings.Contains(base, ".") {
		return false
	}
	split, err := sniff.IsSplit(data)
	if err != nil || split {
		return false
	}
	l.unnamed = append(l.unnamed, in.Member)
	x.to.seen++
	x.mem.Drop(data)
	return true
}

// member reports whether a stream is a member of the file itself, and of no container in it.
func (x *extractor) member(in *unpack.Stream) bool {
	return in.Inside && in.Path == x.current.Path+"!"+in.Member
}

// debugPackages is the advice for kernels with neither BTF nor DWARF.
const debugPackages = "the kernel's debug package has DWARF, of which 'btfgen corpus import' makes BTF: linux-image-RELEASE-dbg on Debian, " +
	"linux-image-RELEASE-dbgsym on Ubuntu, kernel-debuginfo on Fedora, RHEL and SUSE"

// errNoSection is the cause for kernels without BTF in an ELF file.
var errNoSection = errors.New("no .BTF section; " + debugPackages)

var errNoBTF = errors.New("no BTF in it; " + debugPackages)

// mapped returns the bytes of a file of raw BTF, or nil if reading it is better.
func (x *extractor) mapped(in *unpack.Stream) []byte {
	if !x.source.opts.Map || in.File == nil || len(x.maps) == maxMaps {
		return nil
	}
	info, err := in.File.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < mapMin || info.Size() > x.source.opts.MaxSize {
		return nil
	}
	data, err := mapFile(in.File, int(info.Size()))
	if err != nil {
		return nil
	}
	x.maps = append(x.maps, mapping{in.Path, info, data})
	return data
}
