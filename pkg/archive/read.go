// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Errors of [Open] and [OpenFile].
var (
	// ErrNotArchive is returned for data that does not begin as an archive does.
	ErrNotArchive = errors.New("not a btfgen archive")
	// ErrVersion is returned for an archive with a version of the format that this
	// package does not support.
	ErrVersion = errors.New("unknown version of the archive format")
	// ErrDamaged is returned for an archive that breaks the rules of its format,
	// as one that is cut short does. Archive.BTF returns it, too, for an archive
	// from a broken writer. The error says where the damage is.
	ErrDamaged = errors.New("damaged archive")
)

// damaged is an ErrDamaged that says what the damage is.
type damaged struct{ error }

func (damaged) Is(target error) bool { return target == ErrDamaged }
func (e damaged) Unwrap() error      { return e.error }

// Is reports whether data begins as an archive does, in any version of the format.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(btfa.Magic)) }

// Archive is an open archive. It is immutable and safe for use by many goroutines.
type Archive struct {
	info     Info
	dir      directory
	layoutOf []int32 // by number of the kernel
	pool     readPool
	layouts  []readLayout
}

// Open reads an archive from its bytes, such as those of a //go:embed variable, and
// keeps no reference to them. It checks all of the archive. Its memory is limited
// for any data; docs/archive-format.md has the limit. The error is
// [ErrNotArchive], [ErrVersion] or [ErrDamaged].
func Open(data []byte) (*Archive, error) {
	if len(data) > btfa.MaxFile {
		return nil, fmt.Errorf("archive: %w", damaged{fmt.Errorf("%d bytes, more than %d", len(data), btfa.MaxFile)})
	}
	a, err := open(data)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return a, nil
}

// OpenFile reads the archive in a file, as [Open] does. The error names the path.
func OpenFile(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, btfa.MaxFile+1))
	if err != nil {
		return nil, err
	}
	a, err := Open(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func open(data []byte) (*Archive, error) {
	switch {
	case !Is(data):
		return nil, ErrNotArchive
	case len(data) < btfa.HeaderLen:
		return nil, damaged{btfa.ErrCut}
	}
	if v := data[len(btfa.Magic)]; v != btfa.Version {
		return nil, fmt.Errorf("%w: %d, want %d", ErrVersion, v, btfa.Version)
	}
	payload, err := btfa.Unpack(data[btfa.HeaderLen:])
	if err != nil {
		return nil, damaged{err}
	}
	streams, err := btfa.Split(payload)
	if err != nil {
		return nil, damaged{err}
	}
	a := new(Archive)
	for _, part := range []struct {
		stream int
		read   func(c *btfa.Cursor)
	}{
		{btfa.StreamMeta, a.readMeta},
		{btfa.StreamNames, a.pool.readNames},
		{btfa.StreamParents, func(c *btfa.Cursor) {
			a.pool.readSlots(c, &streams[btfa.StreamShapes], &streams[btfa.StreamNumbers])
		}},
		{btfa.StreamShapes, func(c *btfa.Cursor) {}},
		{btfa.StreamNumbers, func(c *btfa.Cursor) {}},
		{btfa.StreamLayouts, a.readLayouts},
		{btfa.StreamKernels, a.readKernels},
	} {
		c := &streams[part.stream]
		part.read(c)
		if c.End(); c.Err != nil {
			return nil, damaged{fmt.Errorf("%s: %w", btfa.StreamTexts[part.stream], c.Err)}
		}
	}
	return a, nil
}

// Info returns how the archive was made. Its slices belong to the caller, but
// objects may share their Arches.
func (a *Archive) Info() Info {
	info := a.info
	info.Objects = slices.Clone(info.Objects)
	arches := make(map[*string][]string) // those of each group
	for i := range info.Objects {
		o := &info.Objects[i]
		o.Sum = slices.Clone(o.Sum)
		if len(o.Arches) > 0 {
			first := &o.Arches[0]
			if arches[first] == nil {
				arches[first] = slices.Clone(o.Arches)
			}
			o.Arches = arches[first]
		}
	}
	info.Relocations = slices.Clone(info.Relocations)
	for i := range info.Relocations {
		info.Relocations[i].Sum = slices.Clone(info.Relocations[i].Sum)
	}
	return info
}

// Len returns the number of kernels.
func (a *Archive) Len() int { return len(a.dir.keys) }

// Layouts returns the number of layouts: of different BTFs, numbered from 0.
func (a *Archive) Layouts() int { return len(a.layouts) }

// Keys returns the kernels in the order of kernel.Key.Compare. The slice belongs to
// the caller.
func (a *Archive) Keys() []kernel.Key {
	return a.dir.sorted()
}

// Layout returns the number of a kernel's layout. Kernels with the same layout
// have the same BTF. Spellings of distribution and architecture do not matter.
func (a *Archive) Layout(k kernel.Key) (layout int, ok bool) {
	i, ok := a.dir.find(k)
	if !ok {
		return 0, false
	}
	return int(a.layoutOf[i]), true
}

// ErrNoKernel is returned for a kernel that an archive or a tree does not have.
var ErrNoKernel = errors.New("kernel is not in the archive")

// BTF returns the minimized BTF of exactly this kernel, byte for byte as it was
// written. Spellings of distribution and architecture do not matter. The
// slice belongs to the caller. The error is [ErrNoKernel] if the archive does not
// have the kernel, and [ErrDamaged] if a broken writer made the archive.
func (a *Archive) BTF(k kernel.Key) ([]byte, error) {
	layout, ok := a.Layout(k)
	if !ok {
		return nil, fmt.Errorf("archive: kernel %s: %w", k, ErrNoKernel)
	}
	b, err := a.layoutBTF(layout)
	if err != nil {
		return nil, fmt.Errorf("archive: kernel %s: %w", k, damaged{err})
	}
	return b, nil
}

// Kernels returns all kernels with their BTFs, in the order of [Archive.Keys].
// Those with the same layout share memory, which belongs to the caller. The error
// is [ErrDamaged] if a broken writer made the archive.
func (a *Archive) Kernels() ([]Kernel, error) {
	layouts := make([][]byte, len(a.layouts))
	kernels := make([]Kernel, a.Len())
	for i, k := range a.dir.keys {
		l := a.layoutOf[i]
		if layouts[l] == nil {
			b, err := a.layoutBTF(int(l))
			if err != nil {
				return nil, fmt.Errorf("archive: kernel %s: %w", k, damaged{err})
			}
			layouts[l] = b
		}
		kernels[i] = Kernel{k, layouts[l]}
	}
	slices.SortFunc(kernels, func(a, b Kernel) int { return a.Key.Compare(b.Key) })
	return kernels, nil
}

var (
	errOrder  = errors.New("not in order")
	errPrefix = errors.New("shares more than there is")
	errLayout = errors.New("layout does not exist")
)

func (a *Archive) readKernels(c *btfa.Cursor) {
	n := c.Count(min(btfa.MaxKernels, c.Len()), "kernels")
	a.dir = directory{make([]kernel.Key, 0, n), make(map[kernel.Key]int, n)}
	a.layoutOf = make([]int32, 0, n)
	last, total, layouts := "", 0, 0
	for i := range n {
		shared, back := c.Uvarint(), c.Uvarint()
		rest := c.Text()
		switch {
		case c.Err != nil:
			return
		case shared > uint64(len(last)):
			c.Fail(errPrefix)
			return
		case back > uint64(layouts):
			c.Fail(errLayout)
			return
		}
		s := last[:shared] + string(rest)
		layout := layouts - int(back)
		if layout == layouts {
			layouts++
		}
		if total += len(s); total > btfa.MaxKeyBytes {
			c.Fail(fmt.Errorf("keys have more than %d bytes", btfa.MaxKeyBytes))
			return
		}
		if i > 0 && s <= last || layout >= len(a.layouts) {
			c.Fail(fmt.Errorf("kernel %q: %w", s, errOrder))
			return
		}
		k, err := btfa.ParseKey(s)
		if err != nil {
			c.Fail(fmt.Errorf("kernel %q: %w", s, err))
			return
		}
		if !a.dir.add(k) {
			c.Fail(fmt.Errorf("kernel %q: is there twice", s))
			return
		}
		a.layoutOf = append(a.layoutOf, int32(layout))
		last = s
	}
	if layouts != len(a.layouts) {
		c.Fail(fmt.Errorf("use %d of %d layouts", layouts, len(a.layouts)))
	}
}

// readLayout is the changes that make a layout of its parent, or of nothing.
type readLayout struct {
	parent    int32 // -1 for nothing
	bigEndian bool
	changes   []change
}

// change puts a variant, or nothing, into a slot.
type change struct{ slot, variant int32 }

func (a *Archive) readLayouts(c *btfa.Cursor) {
	n := c.Count(c.Len(), "layouts")
	made := make([]int32, len(a.pool.slots))
	arena := make([]change, 0, c.Len()/2)
	a.layouts = make([]readLayout, 0, n)
	for i := range n {
		head := c.Uvarint()
		l := readLayout{parent: -1, bigEndian: head&1 != 0}
		if back := head >> 1; back > uint64(i) {
			c.Fail(errLayout)
			return
		} else if back > 0 {
			l.parent = int32(i) - int32(back)
		}
		start, slot := len(arena), uint64(0)
		for range c.Count(min(c.Len()/2, len(a.pool.slots)), "changes") {
			slot += min(c.Uvarint(), math.MaxInt32)
			to := c.Uvarint()
			if c.Err == nil && slot >= uint64(len(a.pool.slots)) {
				c.Fail(errSlot)
			}
			if c.Err != nil {
				return
			}
			ch := change{int32(slot), btfa.NoVariant}
			switch {
			case to == btfa.VariantNext && made[slot] < a.pool.slots[slot].count:
				ch.variant = made[slot]
				made[slot]++
			case to >= btfa.VariantFirst && to-btfa.VariantFirst < uint64(made[slot]):
				ch.variant = int32(to - btfa.VariantFirst)
			case to != btfa.VariantNone:
				c.Fail(errVariant)
				return
			}
			arena = append(arena, ch)
			slot++
		}
		l.changes = arena[start:]
		a.layouts = append(a.layouts, l)
	}
}
