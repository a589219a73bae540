// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// A file is a header, the chunks of kernels, the index as a zstd frame, and a footer: the bytes of that frame and of the index
// (8 bytes each, little-endian), the SHA-256 of that frame, and an end mark. The index has the SHA-256 of each chunk.
const (
	Magic     = "btfc"
	version   = 1
	headerLen = len(Magic) + 1
	endMark   = "btfc.end"
	footerLen = 16 + sha256.Size + len(endMark)
)

// Sum is a SHA-256. As text it is hexadecimal.
type Sum [sha256.Size]byte

// MarshalText returns hexadecimal digits.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return errors.New("not a SHA-256")
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Entry is a kernel of a file. The index has it as JSON.
type Entry struct {
	Key   kernel.Key
	Size  int64 // bytes of BTF
	Sum   Sum   // SHA-256 of the BTF
	Plain bool  `json:",omitzero"` // stored as bytes, because it does not have the usual form
	Made  Made  `json:",omitzero"` // zero for BTF that came with its kernel
	Shape Shape `json:",omitzero"` // describes the BTF; zero if unknown, as in older files

	// OwnBTF says whether the kernel has BTF of its own when it runs; empty in older files.
	OwnBTF OwnBTF `json:",omitzero"`

	Modules     int   `json:",omitzero"` // modules with BTF of their own
	ModulesSize int64 `json:",omitzero"` // bytes
	ModulesSum  Sum   `json:",omitzero"` // SHA-256 of their names, sizes and BTF

	Config  int64 `json:",omitzero"` // bytes of configuration; 0 if unknown
	Symbols int64 `json:",omitzero"` // bytes of symbols

	Chunks [numParts]chunk
	Sketch *Sketch `json:",omitzero"` // sketch of the first kernel of a series, else nil

	made chan struct{} // closed when its chunks can be read; nil: from the beginning
}

// Made says what made BTF of DWARF, such as "pahole v1.24", and has the SHA-256 of the file with the DWARF.
type Made struct {
	By string
	Of Sum `json:",omitzero"`
}

// OwnBTF says whether a kernel has BTF of its own, in /sys/kernel/btf, when it runs. A host with such a kernel needs no archive.
type OwnBTF string

const (
	HasBTF        OwnBTF = "yes"
	WithoutBTF    OwnBTF = "no"
	OwnBTFUnknown OwnBTF = "unknown" // its source does not show it
)

// HasOwnBTF returns OwnBTF, or what older files show instead: nothing, which is "", unless the BTF was made of DWARF.
func (e *Entry) HasOwnBTF() OwnBTF {
	switch {
	case e.OwnBTF == HasBTF || e.OwnBTF == WithoutBTF || e.OwnBTF == OwnBTFUnknown:
		return e.OwnBTF
	case e.OwnBTF != "": // a word of a later version
		return OwnBTFUnknown
	case e.Made.By != "":
		return WithoutBTF
	}
	return ""
}

// Shape is what listings show of BTF in addition to its size.
type Shape struct {
	Types     int    // number of types, void not counted
	BigEndian bool   `json:",omitzero"`
	Pointer   uint32 // bytes of a pointer
}

// ShapeOf returns the shape of BTF.
func ShapeOf(b *btf.BTF) Shape {
	return Shape{Types: b.NumTypes() - 1, BigEndian: b.Order() == binary.BigEndian, Pointer: b.PointerSize()}
}

// Known reports whether the shape is not that of an entry of an older file.
func (s Shape) Known() bool { return s.Pointer > 0 }

// check returns an error if the shape cannot be that of so many bytes of BTF.
func (s Shape) check(size int64) error {
	const least = 12 // bytes of a type
	switch {
	case s == Shape{}:
		return nil
	case s.Types < 0 || int64(s.Types) > size/least:
		return fmt.Errorf("%d types in %d bytes", s.Types, size)
	case s.Pointer != 4 && s.Pointer != 8:
		return fmt.Errorf("pointers of %d bytes, want 4 or 8", s.Pointer)
	}
	return nil
}

// Package is a package of a distribution that kernels of the file were looked for in. The index has it as JSON.
type Package struct {
	Series        string // ID/VERSION_ID/ARCH of its repository
	Name, Version string
	Sum           Sum        `json:",omitzero"` // SHA-256 of the package
	Kernel        kernel.Key `json:",omitzero"` // the kernel of the file that it belongs to, or zero
	Reason        string     `json:",omitzero"` // why it has no usable kernel, if Kernel is zero
}

// part is what kernels have chunks of.
type part int

const (
	partBTF     part = iota
	partModules      // the kernel again, followed by its modules
	partExtras
	numParts
)

// extrasUnits is the number of units of partExtras: the configuration, and two for the symbols.
const extrasUnits = 3

// chunk is encoded against the same part of another kernel. It is zero if the kernel does not have the part.
type chunk struct {
	Parent int   `json:",omitzero"` // number of that kernel, or -1; modules and extras are then encoded against their kernel
	frame        // the front
	Back   frame `json:",omitzero"` // zero if there is none

	depth int // number of ancestors
}

// frame is a zstd frame in the file, with a payload.
type frame struct {
	Packed int64 `json:",omitzero"` // bytes
	Size   int64 `json:",omitzero"` // bytes unpacked
	Check  Sum   `json:",omitzero"` // SHA-256 of the frame

	offset int64
	large  bool // unpacks to too much for its size
}

// frames returns those of a chunk, in the order of the file.
func (c *chunk) frames() [2]*frame { return [2]*frame{&c.frame, &c.Back} }

// valid reports whether the sizes are possible.
func (f *frame) valid() bool {
	return min(f.Packed, f.Size) >= 0 && max(f.Packed, f.Size) <= limits.PartSize && (f.Packed > 0) == (f.Size > 0)
}

// has reports whether a kernel has a part.
func (e *Entry) has(p part) bool {
	return p == partBTF || p == partModules && e.Modules > 0 || p == partExtras && e.Config+e.Symbols > 0
}

// Sums returns the SHA-256 of its BTF and, if it has modules, that of these.
func (e *Entry) Sums() [][sha256.Size]byte {
	if e.Modules == 0 {
		return [][sha256.Size]byte{e.Sum}
	}
	return [][sha256.Size]byte{e.Sum, e.ModulesSum}
}

// unitsSize returns the bytes of the units of a part.
func (e *Entry) unitsSize(p part) int64 {
	return [...]int64{e.Size, e.Size + e.ModulesSize, e.Config + e.Symbols}[p]
}

// setParent sets the parent of a part: kernel number i of all, or none if i is -1.
func (e *Entry) setParent(p part, i int, all []*Entry) {
	c := &e.Chunks[p]
	c.Parent, c.depth = i, 0
	switch {
	case i >= 0:
		c.depth = all[i].Chunks[p].depth + 1
	case p != partBTF:
		c.depth = e.Chunks[partBTF].depth + 1
	}
}

// Packed returns the bytes of the kernel's chunks.
func (e *Entry) Packed() int64 {
	btf, modules, extras := e.PackedParts()
	return btf + modules + extras
}

// PackedParts returns the bytes of the chunks of BTF, of modules, and of configuration and symbols.
func (e *Entry) PackedParts() (btf, modules, extras int64) {
	of := func(c *chunk) int64 { return c.Packed + c.Back.Packed }
	return of(&e.Chunks[partBTF]), of(&e.Chunks[partModules]), of(&e.Chunks[partExtras])
}

// setOffset sets where the chunks begin, and returns where they end.
func (e *Entry) setOffset(at int64) int64 {
	for p := range e.Chunks {
		for _, f := range e.Chunks[p].frames() {
			if f.Packed > 0 {
				f.offset = at
				at += f.Packed
			}
		}
	}
	return at
}

// Unpacked returns the bytes of the kernel's chunks when they are unpacked.
func (e *Entry) Unpacked() (n int64) {
	for _, c := range e.Chunks {
		n += c.Size + c.Back.Size
	}
	return n
}

// wrap adds to an error the kernel and the position of the frame in question. If ctx is done, that is the error.
func (e *Entry) wrap(ctx context.Context, at *frame, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("kernel %s, at byte %d: %w", e.Key, at.offset, err)
}

// check returns an error if the entry cannot be that of a kernel behind those in before.
func (e *Entry) check(before []*Entry, ratio *limits.Ratio) error {
	type bound struct {
		n, limit int64
		what     string
	}
	for _, b := range []bound{
		{e.Size, limits.PartSize, "bytes of BTF"},
		{int64(e.Modules), limits.Modules, "modules"},
		{e.ModulesSize, limits.PartSize, "bytes of modules"},
		{e.Config, limits.KconfigBytes, "bytes of configuration"},
		{e.Symbols, limits.SymbolBytes, "bytes of symbols"},
	} {
		if b.n < 0 || b.n > b.limit {
			return fmt.Errorf("%d %s, want 0 to %d", b.n, b.what, b.limit)
		}
	}
	for p := range numParts {
		c := &e.Chunks[p]
		switch {
		case !e.has(p):
			if *c != (chunk{}) {
				return errors.New("has a chunk without the part")
			}
			continue
		case !c.frame.valid() || !c.Back.valid() || c.Size == 0:
			return fmt.Errorf("chunk of %d and %d bytes, %d and %d unpacked, want 0 to %d", c.Packed, c.Back.Packed, c.Size, c.Back.Size, limits.PartSize)
		case c.Parent < -1 || c.Parent >= len(before) || c.Parent >= 0 && !before[c.Parent].has(p):
			return errors.New("encoded against a kernel without such a part")
		}
		for _, f := range c.frames() {
			f.large = ratio.Allow(f.Packed, f.Size) != nil
		}
		if e.setParent(p, c.Parent, before); c.depth > limits.CorpusDepth {
			return fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
		}
	}
	return cmp.Or(e.Shape.check(e.Size), btfa.CheckKey(e.Key))
}

// line is a line of the index: a kernel or a package.
type line struct {
	Kernel  *Entry   `json:",omitzero"`
	Package *Package `json:",omitzero"`
}

// appendIndex returns the index: entries in the order of their chunks, and packages. It leaves out those whose kernel is not in the file.
func appendIndex(entries []*Entry, packages []Package) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	seen := map[kernel.Key]bool{{}: true}
	for _, e := range entries {
		seen[e.Key.Canonical()] = true
		if err := enc.Encode(line{Kernel: e}); err != nil {
			return nil, err
		}
	}
	for _, p := range packages {
		if seen[p.Kernel.Canonical()] {
			if err := enc.Encode(line{Package: &p}); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), nil
}

// parseIndex is the inverse of appendIndex. end is where the chunks end.
func parseIndex(index []byte, end int64) (entries []*Entry, packages []Package, err error) {
	seen := map[kernel.Key]bool{{}: true}
	offset := int64(headerLen)
	var ratio limits.Ratio
	for text := range bytes.Lines(index) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, nil, fmt.Errorf("index: %w", err)
		}
		switch e, p := l.Kernel, l.Package; {
		case e != nil && p == nil && len(packages) == 0 && len(entries) < limits.CorpusKernels:
			key := e.Key.Canonical()
			if seen[key] {
				err = errors.New("twice")
			}
			if err = cmp.Or(err, e.check(entries, &ratio)); err != nil {
				return nil, nil, fmt.Errorf("index: kernel %s: %w", btfa.KeyName(e.Key), err)
			}
			seen[key] = true
			offset = e.setOffset(offset)
			entries = append(entries, e)
		case p != nil && e == nil && len(packages) < limits.CorpusPackages:
			if !seen[p.Kernel.Canonical()] {
				return nil, nil, fmt.Errorf("index: package %s: no kernel %s", p.Name, p.Kernel)
			}
			packages = append(packages, *p)
		default:
			return nil, nil, errors.New("index: lines of an unknown kind, out of order or too many")
		}
	}
	if offset != end {
		return nil, nil, fmt.Errorf("index: chunks end at byte %d, not %d", offset, end)
	}
	return entries, packages, nil
}
