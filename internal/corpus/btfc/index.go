// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// A file is a header, the chunks of kernels, the index as a zstd frame, and a footer: the length of that frame (8 bytes,
// little-endian) and an end mark.
const (
	Magic     = "btfc"
	version   = 1
	headerLen = len(Magic) + 1
	endMark   = "btfc.end"
	footerLen = 8 + len(endMark)
)

// SumSize is the bytes of a SHA-256.
const SumSize = 32

// Entry is a kernel of a file.
type Entry struct {
	Key   kernel.Key
	Size  int64         // bytes of BTF
	Sum   [SumSize]byte // SHA-256 of the BTF
	Plain bool          // stored as bytes, because it does not have the usual form
	Made  Made          // zero for BTF that came with its kernel

	Modules     int           // with BTF of their own
	ModulesSum  [SumSize]byte // SHA-256 of their names, sizes and BTF
	modulesSize int64

	Config, Symbols int64 // bytes; 0 if unknown

	chunks [numParts]chunk
	sketch *Sketch       // of the first kernel of a series, else nil
	made   chan struct{} // closed when its chunks can be read; nil: from the beginning
}

// Made says what made BTF of DWARF, such as "pahole v1.24", and has the SHA-256 of the file with the DWARF.
type Made struct {
	By string // without a NUL byte
	Of [SumSize]byte
}

// Package is a package of a distribution that kernels of the file were looked for in.
type Package struct {
	Series        string // ID/VERSION_ID/ARCH of its repository
	Name, Version string
	Sum           [SumSize]byte // SHA-256 of the package
	Kernel        kernel.Key    // the kernel of the file that it belongs to, or zero
	Reason        string        // why it has no usable kernel, if Kernel is zero
}

// part is what kernels have chunks of.
type part int

const (
	partBTF     part = iota
	partModules      // the kernel again, followed by its modules
	partExtras
	numParts
)

// chunk is a zstd frame in the file, with a payload that is encoded against the same part of another kernel.
type chunk struct {
	parent         int // number of that kernel, or -1; modules are then encoded against their kernel
	depth          int // number of ancestors
	offset, packed int64
	size           int64 // bytes unpacked
}

// has reports whether a kernel has a part.
func (e *Entry) has(p part) bool {
	return p == partBTF || p == partModules && e.Modules > 0 || p == partExtras && e.Config+e.Symbols > 0
}

// unitsSize returns the bytes of the units of a part.
func (e *Entry) unitsSize(p part) int64 {
	return [...]int64{e.Size, e.Size + e.modulesSize, e.Config + e.Symbols}[p]
}

// setParent sets the parent of a part: kernel number i, or none if that is nil.
func (e *Entry) setParent(p part, i int, parent *Entry) {
	c := &e.chunks[p]
	switch {
	case parent != nil:
		c.parent, c.depth = i, parent.chunks[p].depth+1
	case p == partModules:
		c.parent, c.depth = -1, e.chunks[partBTF].depth+1
	default:
		c.parent, c.depth = -1, 0
	}
}

// Packed returns the bytes of the kernel's chunks.
func (e *Entry) Packed() (n int64) {
	for _, c := range e.chunks {
		n += c.packed
	}
	return n
}

// wrap adds to an error the kernel and the position of the chunk in question. If ctx is done, that is the error.
func (e *Entry) wrap(ctx context.Context, p part, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("kernel %s, at byte %d: %w", e.Key, e.chunks[p].offset, err)
}

// wire reads or writes values of the index.
type wire struct {
	in  *btfa.Cursor // nil to write
	out []byte
}

// wireInt codes an integer, which is at most limit.
func wireInt[T int | int64 | uint32](w *wire, v *T, limit int64, what string) {
	if w.in == nil {
		w.out = binary.AppendUvarint(w.out, uint64(*v))
	} else {
		*v = T(w.in.Count(int(limit), what))
	}
}

func (w *wire) text(v *string) {
	if w.in == nil {
		w.out = append(append(w.out, strings.ReplaceAll(*v, "\x00", " ")...), 0)
	} else {
		*v = string(w.in.Text())
	}
}

func (w *wire) sum(v *[SumSize]byte) {
	if w.in == nil {
		w.out = append(w.out, v[:]...)
	} else {
		copy(v[:], w.in.Bytes(SumSize))
	}
}

// Bits of the number that begins an entry, behind one for each part.
const (
	entryPlain = 1 << (iota + numParts)
	entrySketch
	entryMade
	entryEnd
)

// code codes what is behind the key of kernel i. entries are those before it.
func (e *Entry) code(w *wire, i int, entries []*Entry) error {
	bits := 0
	for p := range numParts {
		if e.has(p) {
			bits |= 1 << p
		}
	}
	for bit, set := range map[int]bool{entryPlain: e.Plain, entrySketch: e.sketch != nil, entryMade: e.Made.By != ""} {
		if set {
			bits |= bit
		}
	}
	wireInt(w, &bits, entryEnd-1, "bits")
	wireInt(w, &e.Size, limits.PartSize, "bytes of BTF")
	w.sum(&e.Sum)
	e.Plain = bits&entryPlain != 0
	if bits&entryMade != 0 {
		w.text(&e.Made.By)
		w.sum(&e.Made.Of)
	}
	if bits&(1<<partModules) != 0 {
		wireInt(w, &e.Modules, limits.Modules, "modules")
		wireInt(w, &e.modulesSize, limits.PartSize, "bytes of modules")
		w.sum(&e.ModulesSum)
	}
	if bits&(1<<partExtras) != 0 {
		wireInt(w, &e.Config, limits.KconfigBytes, "bytes of configuration")
		wireInt(w, &e.Symbols, limits.SymbolBytes, "bytes of symbols")
	}
	if bits&entrySketch != 0 {
		if e.sketch == nil {
			e.sketch = new(Sketch)
		}
		for i := range e.sketch {
			wireInt(w, &e.sketch[i], 1<<32-1, "of a sketch")
		}
	}
	for p := range numParts {
		if e.has(p) != (bits&(1<<p) != 0) {
			return errors.New("has an empty part")
		}
		if !e.has(p) {
			continue
		}
		c := &e.chunks[p]
		back := i - c.parent
		if c.parent < 0 {
			back = 0
		}
		wireInt(w, &back, int64(i), "kernels before it")
		wireInt(w, &c.packed, 1<<31-1, "bytes of a chunk")
		wireInt(w, &c.size, 1<<31-1, "bytes unpacked")
		if w.in == nil {
			continue
		}
		var parent *Entry
		if back > 0 {
			if parent = entries[i-back]; !parent.has(p) {
				return errors.New("encoded against a kernel without such a part")
			}
		}
		if e.setParent(p, i-back, parent); c.depth > limits.CorpusDepth {
			return fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
		}
	}
	return nil
}

// code codes a package of one of the kernels in entries.
func (p *Package) code(w *wire, number int, entries []*Entry) {
	for _, text := range []*string{&p.Series, &p.Name, &p.Version, &p.Reason} {
		w.text(text)
	}
	w.sum(&p.Sum)
	if wireInt(w, &number, int64(len(entries)), "kernels"); number > 0 {
		p.Kernel = entries[number-1].Key
	}
}

// appendIndex returns the index of entries, which are in the order of their chunks, and of packages. It leaves out those whose kernel is not in
// the file.
func appendIndex(entries []*Entry, packages []Package) []byte {
	w := new(wire)
	n := len(entries)
	wireInt(w, &n, 0, "")
	number := make(map[kernel.Key]int, n)
	for i, e := range entries {
		number[e.Key.Canonical()] = i + 1
		text := btfa.KeyText(e.Key)
		w.text(&text)
		e.code(w, i, entries)
	}
	list := wire{}
	n = 0
	for _, p := range packages {
		if k := number[p.Kernel.Canonical()]; k > 0 || p.Kernel == (kernel.Key{}) {
			p.code(&list, k, entries)
			n++
		}
	}
	wireInt(w, &n, 0, "")
	return append(w.out, list.out...)
}

// Minimum of bytes of an entry and of a package in the index.
const (
	minEntry   = 2 + 2 + SumSize + 3
	minPackage = 4 + SumSize + 1
)

// parseIndex is the inverse of appendIndex. end is where the chunks end.
func parseIndex(b []byte, end int64) ([]*Entry, []Package, error) {
	cursor := btfa.NewCursor(b)
	c := &cursor
	w := &wire{in: c}
	n := c.Count(min(limits.CorpusKernels, len(b)/minEntry), "kernels")
	entries := make([]*Entry, 0, n)
	seen := make(map[kernel.Key]bool, n)
	offset := int64(headerLen)
	for i := 0; i < n && c.Err == nil; i++ {
		e := new(Entry)
		var text string
		w.text(&text)
		key, err := btfa.ParseKey(text)
		if err = cmp.Or(c.Err, err); err != nil {
			return nil, nil, fmt.Errorf("index: %w", err)
		}
		if seen[key.Canonical()] {
			return nil, nil, fmt.Errorf("index: kernel %s twice", key)
		}
		seen[key.Canonical()] = true
		e.Key = key
		if err := e.code(w, i, entries); cmp.Or(c.Err, err) != nil {
			return nil, nil, fmt.Errorf("index: kernel %s: %w", key, cmp.Or(c.Err, err))
		}
		for p := range e.chunks {
			e.chunks[p].offset = offset
			offset += e.chunks[p].packed
		}
		entries = append(entries, e)
	}
	n = c.Count(min(limits.CorpusPackages, c.Len()/minPackage), "packages")
	packages := make([]Package, n)
	for i := range packages {
		if packages[i].code(w, 0, entries); c.Err != nil {
			return nil, nil, fmt.Errorf("index: package %s: %w", packages[i].Name, c.Err)
		}
	}
	if c.End(); c.Err != nil {
		return nil, nil, fmt.Errorf("index: %w", c.Err)
	}
	if offset != end {
		return nil, nil, fmt.Errorf("index: chunks end at byte %d, not %d", offset, end)
	}
	return entries, packages, nil
}
