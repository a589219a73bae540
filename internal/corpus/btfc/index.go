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

// A file is a header, the chunks of kernels, the index as a zstd frame, and a footer: the length of the frame
// (8 bytes, little-endian) and an end mark.
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
	Key    kernel.Key
	Size   int64         // bytes of BTF
	Sum    [SumSize]byte // SHA-256 of the BTF
	Packed int64         // bytes that the kernel's own chunks take, those of modules and extras included
	Plain  bool          // kept as compressed bytes, because it is not of the usual form
	Made   Made          // of DWARF, or zero

	Modules       int           // with BTF of their own
	ModulesSum    [SumSize]byte // SHA-256 of what their chunk unpacks to
	ModulesPacked int64         // bytes of their chunk

	Config, Symbols int64 // bytes of the extras; 0 for what is not known
	ExtrasPacked    int64 // bytes of their chunk

	parent      int // number of the kernel that it is encoded against, or -1
	offset      int64
	payload     int64   // bytes of the chunk, unpacked
	modules     int64   // bytes of the modules' chunk, unpacked
	modulesFrom int     // number of the ancestor whose modules they are encoded against, or -1
	extrasFrom  int     // number of the kernel whose extras they are encoded against, or -1
	head        bool    // the first of its series
	sketch      *Sketch // of such
}

// Made says of BTF what made it, such as "pahole v1.24", and the SHA-256 of the file with the DWARF that it was made of.
type Made struct {
	By string // without a NUL byte; empty for BTF that came with its kernel
	Of [SumSize]byte
}

// chunk is where the kernel's own chunk is; those of its modules and of its extras follow.
func (e *Entry) chunk() (offset, size int64) {
	return e.offset, e.Packed - e.ModulesPacked - e.ExtrasPacked
}

// wrap names the kernel, and where its chunk is that err is about; if ctx is done, the error is that.
func (e *Entry) wrap(ctx context.Context, offset int64, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("kernel %s, at byte %d: %w", e.Key, offset, err)
}

// minEntry is how many bytes of the index an entry takes at least: its key, five numbers and a sum.
const minEntry = 2 + 5 + SumSize

// Bits of what begins an entry.
const (
	entryPlain = 1
	entryHead  = 2
	entryMade  = 4
	entryBits  = 3
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
		how := distance(i, e.parent) << entryBits
		if e.Plain {
			how |= entryPlain
		}
		if e.head {
			how |= entryHead
		}
		if e.Made.By != "" {
			how |= entryMade
		}
		_, packed := e.chunk()
		for _, v := range []uint64{how, uint64(packed), uint64(e.payload), uint64(e.Size), uint64(e.Modules)} {
			b = binary.AppendUvarint(b, v)
		}
		b = append(b, e.Sum[:]...)
		if e.Made.By != "" {
			b = append(append(append(b, e.Made.By...), 0), e.Made.Of[:]...)
		}
		if e.Modules > 0 {
			b = binary.AppendUvarint(b, uint64(e.ModulesPacked))
			b = binary.AppendUvarint(b, uint64(e.modules))
			b = binary.AppendUvarint(b, distance(i, e.modulesFrom))
			b = append(b, e.ModulesSum[:]...)
		}
		if e.head {
			for _, x := range e.sketch {
				b = binary.LittleEndian.AppendUint32(b, x)
			}
		}
	}
	return appendExtras(b, entries)
}

// back tells a kernel that something of kernel i is encoded against, or -1, by how many it is before that, or 0.
func distance(i, from int) uint64 {
	if from < 0 {
		return 0
	}
	return uint64(i - from)
}

// parseIndex is the inverse of appendIndex. end is where the chunks end.
func parseIndex(b []byte, end int64) ([]Entry, error) {
	cursor := btfa.NewCursor(b)
	c := &cursor
	n := c.Count(min(limits.CorpusKernels, len(b)), "kernels")
	room := min(n, c.Len()/minEntry)
	entries := make([]Entry, 0, room)
	seen := make(map[kernel.Key]bool, room)
	last := ""
	for i := range n {
		e := Entry{parent: -1, modulesFrom: -1, extrasFrom: -1}
		shared := c.Uvarint()
		if shared > uint64(len(last)) {
			return nil, errors.New("index: a key shares more than there is")
		}
		last = last[:shared] + string(c.Text())
		if c.Err != nil {
			break
		}
		var err error
		if e.Key, err = btfa.ParseKey(last); err != nil {
			return nil, fmt.Errorf("index: %w", err)
		}
		if k := e.Key.Canonical(); seen[k] {
			return nil, fmt.Errorf("index: kernel %s twice", e.Key)
		} else {
			seen[k] = true
		}
		if err := e.parse(c, i); err != nil {
			return nil, fmt.Errorf("index: kernel %s: %w", e.Key, err)
		}
		if c.Err != nil {
			break
		}
		if e.modulesFrom >= 0 && (entries[e.modulesFrom].Modules == 0 || !isAncestor(entries, e.modulesFrom, e.parent)) {
			return nil, fmt.Errorf("index: kernel %s: its modules are encoded against those of one that has none, or is not one of its ancestors", e.Key)
		}
		entries = append(entries, e)
	}
	if err := parseExtras(c, entries); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	offset := int64(headerLen)
	for i := range entries {
		e := &entries[i]
		e.offset = offset
		if offset += e.Packed; offset > end {
			return nil, fmt.Errorf("index: kernel %s lies behind the end", e.Key)
		}
	}
	if offset != end {
		return nil, fmt.Errorf("index: chunks end at byte %d, not %d", offset, end)
	}
	return entries, nil
}

// parse reads what is behind the key of kernel i. Where the bytes end, the cursor says so.
func (e *Entry) parse(c *btfa.Cursor, i int) error {
	how := c.Uvarint()
	e.Plain, e.head = how&entryPlain != 0, how&entryHead != 0
	if back := how >> entryBits; back > uint64(i) {
		return errors.New("encoded against one that is not before it")
	} else if back > 0 {
		e.parent = i - int(back)
	}
	size := func(what string) int64 { return int64(c.Count(1<<31-1, what)) }
	e.Packed, e.payload, e.Size = size("bytes of a chunk"), size("bytes unpacked"), int64(c.Count(limits.PartSize, "bytes of BTF"))
	e.Modules = c.Count(limits.Modules, "modules")
	copy(e.Sum[:], c.Bytes(SumSize))
	if how&entryMade != 0 {
		e.Made.By = string(c.Text())
		copy(e.Made.Of[:], c.Bytes(SumSize))
		if e.Made.By == "" && c.Err == nil {
			return errors.New("made by nothing")
		}
	}
	if e.Modules > 0 {
		e.ModulesPacked, e.modules = size("bytes of a chunk"), size("bytes of modules")
		e.Packed += e.ModulesPacked
		if back := c.Count(i, "kernels back"); back > 0 {
			e.modulesFrom = i - back
		}
		copy(e.ModulesSum[:], c.Bytes(SumSize))
	}
	if e.head {
		e.sketch = new(Sketch)
		for i := range e.sketch {
			if b := c.Bytes(4); b != nil {
				e.sketch[i] = binary.LittleEndian.Uint32(b)
			}
		}
	}
	if e.Plain && (e.parent >= 0 || e.payload != e.Size) {
		return errors.New("kept as bytes, but not as its own")
	}
	return nil
}

// isAncestor reports whether kernel i is another one or what that is encoded against, and that from, in as many steps as there may be.
func isAncestor(entries []Entry, i, of int) bool {
	for n := 0; of > i && n < limits.CorpusDepth; n++ {
		of = entries[of].parent
	}
	return of == i
}

// appendExtras appends what an index has of the kernels whose extras are there: nothing if none has.
func appendExtras(b []byte, entries []Entry) []byte {
	var with []int
	for i := range entries {
		if entries[i].hasExtras() {
			with = append(with, i)
		}
	}
	if len(with) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(with)))
	last := 0
	for _, i := range with {
		e := &entries[i]
		b = binary.AppendUvarint(b, uint64(i-last))
		b = binary.AppendUvarint(b, distance(i, e.extrasFrom))
		for _, v := range []int64{e.ExtrasPacked, e.Config, e.Symbols} {
			b = binary.AppendUvarint(b, uint64(v))
		}
		last = i
	}
	return b
}

// parseExtras reads what appendExtras appends, which ends the index.
func parseExtras(c *btfa.Cursor, entries []Entry) error {
	if c.Err != nil || c.Len() == 0 {
		return c.Err
	}
	n := c.Count(len(entries), "kernels with extras")
	if n == 0 {
		c.Fail(errors.New("no kernels with extras"))
	}
	for i := 0; n > 0 && c.Err == nil; n-- {
		if i += c.Count(len(entries)-1-i, "kernels further"); entries[i].hasExtras() {
			return fmt.Errorf("kernel %s: its extras twice", entries[i].Key)
		}
		e := &entries[i]
		if back := c.Count(i, "kernels back"); back > 0 {
			if e.extrasFrom = i - back; !entries[e.extrasFrom].hasExtras() {
				return fmt.Errorf("kernel %s: its extras are encoded against those of one that has none", e.Key)
			}
		}
		e.ExtrasPacked = int64(c.Count(1<<31-1, "bytes of a chunk"))
		e.Config = int64(c.Count(limits.KconfigBytes, "bytes of configuration"))
		e.Symbols = int64(c.Count(limits.SymbolBytes, "bytes of symbols"))
		if e.Packed += e.ExtrasPacked; c.Err == nil && !e.hasExtras() {
			return fmt.Errorf("kernel %s: its extras are empty", e.Key)
		}
	}
	c.End()
	return c.Err
}
