// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

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
	Plain bool          // stored as compressed bytes, because it does not have the usual form
	Made  Made          // zero for BTF that came with its kernel

	Modules    int           // with BTF of their own
	ModulesSum [SumSize]byte // SHA-256 of their names, sizes and BTF

	Config, Symbols int64 // bytes; 0 if unknown

	parent int // number of the kernel that it is encoded against, or -1
	chunks [numParts]chunk
	sketch *Sketch // of the first kernel of a series, else nil
}

// Made says what made BTF of DWARF, such as "pahole v1.24", and has the SHA-256 of the file with the DWARF.
type Made struct {
	By string // without a NUL byte
	Of [SumSize]byte
}

// part is what kernels have chunks of. A part is encoded against the same part of the nearest ancestor that has it.
type part int

const (
	partBTF part = iota
	partModules
	partExtras
	numParts
)

// chunk is a zstd frame in the file.
type chunk struct {
	offset, packed int64
	size           int64 // bytes unpacked
}

// has reports whether a kernel has a part.
func (e *Entry) has(p part) bool {
	return p == partBTF || p == partModules && e.Modules > 0 || p == partExtras && e.Config+e.Symbols > 0
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

// minEntry is the minimum of bytes of an entry in the index: its key, four numbers and a sum.
const minEntry = 2 + 4 + SumSize

// Bits of the number that begins an entry.
const (
	entryPlain = 1 << iota
	entryHead
	entryMade
	entryModules
	entryExtras
	entryBits = iota
)

// appendIndex appends the index of entries, which are in the order of their chunks.
func appendIndex(b []byte, entries []Entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(entries)))
	last := ""
	for i := range entries {
		e := &entries[i]
		text := btfa.KeyText(e.Key)
		n := 0
		for n < min(len(text), len(last)) && text[n] == last[n] {
			n++
		}
		last = text
		b = binary.AppendUvarint(b, uint64(n))
		b = append(append(b, text[n:]...), 0)
		how := uint64(0)
		if e.parent >= 0 {
			how = uint64(i-e.parent) << entryBits
		}
		for bit, set := range []bool{e.Plain, e.sketch != nil, e.Made.By != "", e.has(partModules), e.has(partExtras)} {
			if set {
				how |= 1 << bit
			}
		}
		b = binary.AppendUvarint(b, how)
		for p, c := range e.chunks {
			if e.has(part(p)) {
				b = binary.AppendUvarint(b, uint64(c.packed))
				b = binary.AppendUvarint(b, uint64(c.size))
			}
		}
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = append(b, e.Sum[:]...)
		if e.Made.By != "" {
			b = append(append(append(b, e.Made.By...), 0), e.Made.Of[:]...)
		}
		if e.has(partModules) {
			b = append(binary.AppendUvarint(b, uint64(e.Modules)), e.ModulesSum[:]...)
		}
		if e.has(partExtras) {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.Config)), uint64(e.Symbols))
		}
		if e.sketch != nil {
			for _, x := range e.sketch {
				b = binary.LittleEndian.AppendUint32(b, x)
			}
		}
	}
	return b
}

// parseIndex is the inverse of appendIndex and appendPackages. end is where the chunks end.
func parseIndex(b []byte, end int64) ([]Entry, []Package, error) {
	cursor := btfa.NewCursor(b)
	c := &cursor
	n := c.Count(min(limits.CorpusKernels, len(b)), "kernels")
	room := min(n, c.Len()/minEntry)
	entries := make([]Entry, 0, room)
	seen := make(map[kernel.Key]bool, room)
	last := ""
	offset := int64(headerLen)
	for i := range n {
		var e Entry
		shared := c.Uvarint()
		if shared > uint64(len(last)) {
			return nil, nil, errors.New("index: a key shares more than there is")
		}
		last = last[:shared] + string(c.Text())
		if c.Err != nil {
			break
		}
		var err error
		if e.Key, err = btfa.ParseKey(last); err != nil {
			return nil, nil, fmt.Errorf("index: %w", err)
		}
		if k := e.Key.Canonical(); seen[k] {
			return nil, nil, fmt.Errorf("index: kernel %s twice", e.Key)
		} else {
			seen[k] = true
		}
		if err := e.parse(c, i, &offset); err != nil {
			return nil, nil, fmt.Errorf("index: kernel %s: %w", e.Key, err)
		}
		if c.Err != nil {
			break
		}
		entries = append(entries, e)
	}
	packages, err := parsePackages(c, entries)
	if err != nil {
		return nil, nil, fmt.Errorf("index: %w", err)
	}
	if c.End(); c.Err != nil {
		return nil, nil, fmt.Errorf("index: %w", c.Err)
	}
	if offset != end {
		return nil, nil, fmt.Errorf("index: chunks end at byte %d, not %d", offset, end)
	}
	return entries, packages, nil
}

// parse reads what is behind the key of kernel i, whose chunks begin at offset, and moves offset behind these. The cursor has an
// error if the bytes end.
func (e *Entry) parse(c *btfa.Cursor, i int, offset *int64) error {
	how := c.Uvarint()
	e.Plain, e.parent = how&entryPlain != 0, -1
	if back := how >> entryBits; back > uint64(i) {
		return errors.New("its parent is not before it")
	} else if back > 0 {
		e.parent = i - int(back)
	}
	for p, there := range [numParts]bool{true, how&entryModules != 0, how&entryExtras != 0} {
		if there {
			packed, size := int64(c.Count(1<<31-1, "bytes of a chunk")), int64(c.Count(1<<31-1, "bytes unpacked"))
			e.chunks[p] = chunk{*offset, packed, size}
			*offset += packed
		}
	}
	e.Size = int64(c.Count(limits.PartSize, "bytes of BTF"))
	copy(e.Sum[:], c.Bytes(SumSize))
	if how&entryMade != 0 {
		e.Made.By = string(c.Text())
		copy(e.Made.Of[:], c.Bytes(SumSize))
	}
	if how&entryModules != 0 {
		e.Modules = c.Count(limits.Modules, "modules")
		copy(e.ModulesSum[:], c.Bytes(SumSize))
	}
	if how&entryExtras != 0 {
		e.Config = int64(c.Count(limits.KconfigBytes, "bytes of configuration"))
		e.Symbols = int64(c.Count(limits.SymbolBytes, "bytes of symbols"))
	}
	if how&entryHead != 0 {
		e.sketch = new(Sketch)
		for i := range e.sketch {
			if b := c.Bytes(4); b != nil {
				e.sketch[i] = binary.LittleEndian.Uint32(b)
			}
		}
	}
	switch {
	case c.Err != nil:
	case e.Plain && (e.parent >= 0 || e.chunks[partBTF].size != e.Size):
		return errors.New("plain, but with a parent or another size")
	case how&entryMade != 0 && e.Made.By == "", e.has(partModules) != (how&entryModules != 0), e.has(partExtras) != (how&entryExtras != 0):
		return errors.New("has an empty part")
	}
	return nil
}
