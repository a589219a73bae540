// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
)

// extractor takes the BTF out of what a reader finds, and passes it to an assembler.
type extractor struct {
	*run
	to *assembler
}

// part reads one file on disk with a reader whose taker is x.
func (x *extractor) part(r *reader, p *part) {
	seen, extras, errs := x.to.seen, len(x.to.extras), len(x.errs)
	r.part(p, p.extra)
	if p.extra != noExtra || p.mods && len(x.to.extras) > extras {
		return
	}
	if x.to.seen == seen && len(x.errs) == errs {
		x.fail(wrap(p.path, "", errors.New("holds no BTF")))
	}
}

func (x *extractor) wants(member string) (extraKind, bool) {
	extra, _ := extraOf(member)
	if extra != noExtra && !x.f.opts.Extras || extra == noExtra && unrelated(path.Base(member)) {
		return extra, false
	}
	return extra, !isModuleFile(member) || x.to.wantsModule(moduleName(member))
}

func (x *extractor) attempt(read func() error) error { return x.to.attempt(read) }

func (x *extractor) take(in *input, k kind) error {
	switch {
	case in.extra != noExtra:
		return x.to.addExtra(in)
	case k == kindEmpty:
		return empty(in, errEmpty)
	case k == kindZero:
		return empty(in, errZeros)
	case k == kindBTF:
		return x.raw(in)
	case k == kindELF:
		return x.elf(in)
	case k == kindImage, k == kindUnknown && !in.inside: // the last chance
		return x.image(in)
	}
	return nil
}

// errEmpty describes files without a byte.
var errEmpty = errors.New("empty file")

// errZeros describes zero-filled files and archives without members, which look the same.
var errZeros = errors.New("empty archive, or zeros")

// errUnknown describes files of no known kind.
var errUnknown = errors.New("not BTF, ELF, an archive or a kernel image")

// unknown returns errUnknown, with what the file is instead, such as a web server's error page.
func unknown(head []byte) error {
	if o := embedded.Describe(head[:min(len(head), sniffLen)]); o != nil && o.Lost {
		return fmt.Errorf("%w, but %s; %s", errUnknown, o.What, o.Fix)
	}
	return errUnknown
}

// empty returns err if BTF is expected.
func empty(in *input, err error) error {
	if in.inside && !strings.Contains(in.member, ".btf") {
		return nil
	}
	return wrap(in.path, "", err)
}

// raw reads a BTF blob.
func (x *extractor) raw(in *input) error {
	if data := x.mapped(in); data != nil {
		return x.to.add(in, blob{mapped: data})
	}
	size := in.size
	if size < 0 { // only the header says how long it is likely to be
		head, _ := in.r.Peek(sniffLen)
		if h, err := btf.ReadHeader(head, x.f.opts.MaxSize); err == nil {
			size = min(int64(h.End()), x.f.opts.MaxSize)
		}
	}
	b, err := x.to.read(func(buf *decompress.Buffer) error {
		_, err := buf.Append(in.r, size, x.f.opts.MaxSize)
		return err
	})
	if err != nil {
		return wrap(in.path, "btf", err)
	}
	return x.to.add(in, b)
}
