package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// maxKernels limits the kernels of an archive, maxKeyBytes the bytes of their
// keys.
const (
	maxKernels  = 1 << 18
	maxKeyBytes = 16 << 20
)

// maxFile limits the size of an archive; compression never makes the payload
// longer by more than this.
const maxFile = maxPayload + 1<<16

// Archive is an open archive. It is immutable and safe for many goroutines.
type Archive struct {
	info     Info
	keys     []kernel.Key
	layoutOf []int32              // by key
	index    map[kernel.Key]int32 // canonical keys
	pool     readPool
	layouts  []readLayout
}

// Open reads an archive from its bytes, such as those of a //go:embed
// variable, and keeps no reference to them. All of it is checked: an archive
// that was damaged is refused. The memory that Open takes is limited whatever the
// data claims to hold; docs/archive-format.md says to what.
func Open(data []byte) (*Archive, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("archive: %d bytes, more than %d", len(data), maxFile)
	}
	payload, err := unpack(data)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	a, err := openPayload(payload)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return a, nil
}

// OpenFile opens the archive at path and closes the file again. Errors name
// the path.
func OpenFile(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	a, err := Open(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// OpenReader opens the archive that is the first size bytes of r, which is not
// used after it has returned.
func OpenReader(r io.ReaderAt, size int64) (*Archive, error) {
	if size < 0 || size > maxFile {
		return nil, fmt.Errorf("archive: %d bytes, more than %d", size, maxFile)
	}
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); int64(n) < size {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("archive: %w", err)
	}
	return Open(data)
}

func openPayload(payload []byte) (*Archive, error) {
	streams, err := split(payload)
	if err != nil {
		return nil, err
	}
	a := new(Archive)
	for _, part := range []struct {
		stream int
		read   func(c *cursor)
	}{
		{streamMeta, a.readMeta},
		{streamNames, a.pool.readNames},
		{streamParents, func(c *cursor) { a.pool.readSlots(c, &streams[streamShapes], &streams[streamNumbers]) }},
		{streamShapes, func(c *cursor) {}},
		{streamNumbers, func(c *cursor) {}},
		{streamLayouts, a.readLayouts},
		{streamKernels, a.readKernels},
	} {
		c := &streams[part.stream]
		part.read(c)
		if c.end(); c.err != nil {
			return nil, fmt.Errorf("%s: %w", streamTexts[part.stream], c.err)
		}
	}
	return a, nil
}

// Info returns who made the archive of what. Its slices belong to the caller.
func (a *Archive) Info() Info {
	info := a.info
	info.Objects = slices.Clone(info.Objects)
	for i := range info.Objects {
		info.Objects[i].Sum = slices.Clone(info.Objects[i].Sum)
	}
	return info
}

// Len returns the number of kernels.
func (a *Archive) Len() int { return len(a.keys) }

// Layouts returns the number of different BTFs. Layouts are numbered from 0.
func (a *Archive) Layouts() int { return len(a.layouts) }

// Keys returns the kernels in the order of kernel.Key.Compare. The slice belongs to
// the caller.
func (a *Archive) Keys() []kernel.Key {
	keys := slices.Clone(a.keys)
	slices.SortFunc(keys, kernel.Key.Compare)
	return keys
}

// Layout returns the number of a kernel's layout. Kernels with the same layout
// have the same BTF. Spellings of distribution and architecture do not matter.
func (a *Archive) Layout(k kernel.Key) (layout int, ok bool) {
	i, ok := a.index[k.Canonical()]
	if !ok {
		return 0, false
	}
	return int(a.layoutOf[i]), true
}

// ErrNoKernel says that an archive does not have a kernel.
var ErrNoKernel = errors.New("kernel is not in the archive")

// BTF returns the minimized BTF of exactly this kernel, byte for byte as it
// was put in. Spellings of distribution and architecture do not matter. The
// slice belongs to the caller. The error is ErrNoKernel if the archive does not
// have the kernel; others mean that the archive was made by a broken writer.
func (a *Archive) BTF(k kernel.Key) ([]byte, error) {
	layout, ok := a.Layout(k)
	if !ok {
		return nil, fmt.Errorf("archive: kernel %s: %w", k, ErrNoKernel)
	}
	b, err := a.layoutBTF(layout)
	if err != nil {
		return nil, fmt.Errorf("archive: kernel %s: %w", k, err)
	}
	return b, nil
}

// Kernels returns all kernels with their BTFs, in the order of Keys. Those with
// the same layout share memory, which belongs to the caller. Errors are as for
// BTF.
func (a *Archive) Kernels() ([]Kernel, error) {
	layouts := make([][]byte, len(a.layouts))
	kernels := make([]Kernel, len(a.keys))
	for i, k := range a.keys {
		l := a.layoutOf[i]
		if layouts[l] == nil {
			b, err := a.layoutBTF(int(l))
			if err != nil {
				return nil, fmt.Errorf("archive: kernel %s: %w", k, err)
			}
			layouts[l] = b
		}
		kernels[i] = Kernel{k, layouts[l]}
	}
	slices.SortFunc(kernels, func(a, b Kernel) int { return a.Key.Compare(b.Key) })
	return kernels, nil
}

// Spec returns the BTF of exactly this kernel in the form that goes into
// KernelTypes of cilium/ebpf's ProgramOptions. It belongs to the caller. Errors
// are as for BTF.
func (a *Archive) Spec(k kernel.Key) (*btf.Spec, error) {
	b, err := a.BTF(k)
	if err != nil {
		return nil, err
	}
	return loadSpec(b)
}

func (a *Archive) readMeta(c *cursor) {
	a.info.Tool = string(c.text())
	n := c.count(len(c.b), "objects")
	a.info.Objects = make([]Object, n)
	for i := range a.info.Objects {
		a.info.Objects[i].Name = string(c.text())
	}
	sum := c.count(sha256.Size, "bytes of a hash")
	sums := slices.Clone(c.bytes(n * sum))
	for i := range a.info.Objects {
		if c.err == nil {
			a.info.Objects[i].Sum = sums[i*sum : (i+1)*sum : (i+1)*sum]
		}
	}
	copy(a.info.Relocations[:], c.bytes(sha256.Size))
}

var (
	errOrder  = errors.New("not in order")
	errPrefix = errors.New("shares more than there is")
	errLayout = errors.New("layout does not exist")
	errKey    = errors.New("not a key")
)

func (a *Archive) readKernels(c *cursor) {
	n := c.count(min(maxKernels, len(c.b)), "kernels")
	a.keys, a.layoutOf = make([]kernel.Key, 0, n), make([]int32, 0, n)
	a.index = make(map[kernel.Key]int32, n)
	last, total, layouts := "", 0, 0
	for i := range n {
		shared, back := c.uvarint(), c.uvarint()
		rest := c.text()
		switch {
		case c.err != nil:
			return
		case shared > uint64(len(last)):
			c.fail(errPrefix)
			return
		case back > uint64(layouts):
			c.fail(errLayout)
			return
		}
		s := last[:shared] + string(rest)
		layout := layouts - int(back)
		if layout == layouts {
			layouts++
		}
		if total += len(s); total > maxKeyBytes {
			c.fail(fmt.Errorf("keys have more than %d bytes", maxKeyBytes))
			return
		}
		if i > 0 && s <= last || layout >= len(a.layouts) {
			c.fail(fmt.Errorf("kernel %q: %w", s, errOrder))
			return
		}
		k, err := keyFromStored(s)
		if err != nil {
			c.fail(fmt.Errorf("kernel %q: %w", s, err))
			return
		}
		canonical := k.Canonical()
		if _, ok := a.index[canonical]; ok {
			c.fail(fmt.Errorf("kernel %q: is there twice", s))
			return
		}
		a.index[canonical] = int32(i)
		a.keys = append(a.keys, k)
		a.layoutOf = append(a.layoutOf, int32(layout))
		last = s
	}
	if layouts != len(a.layouts) {
		c.fail(fmt.Errorf("use %d of %d layouts", layouts, len(a.layouts)))
	}
}

// keyFromStored is the inverse of stored.
func keyFromStored(s string) (kernel.Key, error) {
	p := strings.Split(s, "/")
	if len(p) != 4 {
		return kernel.Key{}, errKey
	}
	k := kernel.Key{ID: p[0], VersionID: p[1], Arch: p[2], Release: p[3]}
	return k, checkKey(k)
}

// readLayout is the changes that make a layout of its parent, or of nothing.
type readLayout struct {
	parent    int32 // -1 for nothing
	bigEndian bool
	changes   []change
}

// change puts a variant, or nothing, into a slot.
type change struct{ slot, variant int32 }

func (a *Archive) readLayouts(c *cursor) {
	n := c.count(len(c.b), "layouts")
	made := make([]int32, len(a.pool.slots))
	arena := make([]change, 0, len(c.b)/2)
	a.layouts = make([]readLayout, 0, n)
	for i := range n {
		head := c.uvarint()
		l := readLayout{parent: -1, bigEndian: head&1 != 0}
		if back := head >> 1; back > uint64(i) {
			c.fail(errLayout)
			return
		} else if back > 0 {
			l.parent = int32(i) - int32(back)
		}
		start, slot := len(arena), uint64(0)
		for range c.count(min(len(c.b)/2, len(a.pool.slots)), "changes") {
			slot += min(c.uvarint(), math.MaxInt32)
			to := c.uvarint()
			if c.err == nil && slot >= uint64(len(a.pool.slots)) {
				c.fail(errSlot)
			}
			if c.err != nil {
				return
			}
			ch := change{int32(slot), noVariant}
			switch {
			case to == variantNext && made[slot] < a.pool.slots[slot].count:
				ch.variant = made[slot]
				made[slot]++
			case to >= variantFirst && to-variantFirst < uint64(made[slot]):
				ch.variant = int32(to - variantFirst)
			case to != variantNone:
				c.fail(errVariant)
				return
			}
			arena = append(arena, ch)
			slot++
		}
		l.changes = arena[start:]
		a.layouts = append(a.layouts, l)
	}
}
