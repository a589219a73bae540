// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Errors of [Open] and [OpenFile].
var (
	// ErrNotArchive is returned for data that does not begin like an archive.
	ErrNotArchive = errors.New("not a btfgen archive")
	// ErrVersion is returned for an archive with a version of the format that this
	// package does not support.
	ErrVersion = errors.New("unknown version of the archive format")
	// ErrDamaged is returned for an archive that breaks the rules of its format, such as
	// a truncated one. Archive.BTF also returns it, for an archive from a broken writer.
	// The error says where the damage is.
	ErrDamaged = errors.New("damaged archive")
)

// damaged is an ErrDamaged with its cause.
type damaged struct{ error }

// Is reports whether target is ErrDamaged.
func (damaged) Is(target error) bool { return target == ErrDamaged }

// Unwrap returns the cause.
func (e damaged) Unwrap() error { return e.error }

// Is reports whether data begins like an archive of any version of the format.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(btfa.Magic)) }

// Archive is an open archive. It is immutable and safe for use by many goroutines.
type Archive struct {
	info     Info
	keys     []kernel.Key
	index    map[kernel.Key]int // into keys, by canonical key
	layoutOf []int32            // layout of each key
	pool     pool
}

// Open reads and checks an archive, for example a //go:embed variable. It keeps no
// reference to data. docs/archive-format.md has the limit of its memory. The error is
// [ErrNotArchive], [ErrVersion] or [ErrDamaged].
func Open(data []byte) (*Archive, error) {
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

// unpack returns the streams of a file.
func unpack(data []byte) (streams [btfa.NumStreams]btfa.Cursor, err error) {
	switch {
	case len(data) > btfa.MaxFile:
		return streams, damaged{fmt.Errorf("%d bytes, more than %d", len(data), btfa.MaxFile)}
	case !Is(data):
		return streams, ErrNotArchive
	case len(data) < btfa.HeaderLen:
		return streams, damaged{btfa.ErrCut}
	}
	if v := data[len(btfa.Magic)]; v != btfa.Version {
		return streams, fmt.Errorf("%w: %d, want %d", ErrVersion, v, btfa.Version)
	}
	payload, err := btfa.Unpack(data[btfa.HeaderLen:])
	if err == nil {
		streams, err = btfa.Split(payload)
	}
	if err != nil {
		return streams, damaged{err}
	}
	return streams, nil
}

func open(data []byte) (*Archive, error) {
	streams, err := unpack(data)
	if err != nil {
		return nil, err
	}
	a := new(Archive)
	d := decoder{pool: &a.pool, shapes: &streams[btfa.StreamShapes], numbers: &streams[btfa.StreamNumbers]}
	for _, part := range []struct {
		stream int
		read   func(c *btfa.Cursor)
	}{
		{btfa.StreamMeta, a.readMeta},
		{btfa.StreamFingerprints, a.readFingerprints},
		{btfa.StreamNames, d.readNames},
		{btfa.StreamParents, d.readSlots},
		{btfa.StreamShapes, func(c *btfa.Cursor) {}},
		{btfa.StreamNumbers, func(c *btfa.Cursor) {}},
		{btfa.StreamLayouts, d.readLayouts},
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

// Info returns how the archive was made. Its slices belong to the caller.
func (a *Archive) Info() Info {
	info := a.info
	info.Objects = slices.Clone(info.Objects)
	for i := range info.Objects {
		o := &info.Objects[i]
		o.Sum, o.Fingerprint, o.Arches = slices.Clone(o.Sum), slices.Clone(o.Fingerprint), slices.Clone(o.Arches)
	}
	info.Relocations = slices.Clone(info.Relocations)
	for i := range info.Relocations {
		info.Relocations[i].Sum = slices.Clone(info.Relocations[i].Sum)
	}
	return info
}

// Len returns the number of kernels.
func (a *Archive) Len() int { return len(a.keys) }

// Layouts returns the number of layouts, which are the different BTFs.
func (a *Archive) Layouts() int { return len(a.pool.layouts) }

// Keys returns the kernels in the order of kernel.Key.Compare. The slice belongs to
// the caller.
func (a *Archive) Keys() []kernel.Key {
	keys := slices.Clone(a.keys)
	slices.SortFunc(keys, kernel.Key.Compare)
	return keys
}

// Layout returns the number of a kernel's layout, from 0. Kernels with the same layout
// have the same BTF. The spelling of distribution and architecture does not matter.
func (a *Archive) Layout(k kernel.Key) (layout int, ok bool) {
	i, ok := a.index[k.Canonical()]
	if !ok {
		return 0, false
	}
	return int(a.layoutOf[i]), true
}

// ErrNoKernel is returned for a kernel that is not in an archive.
var ErrNoKernel = errors.New("kernel is not in the archive")

// BTF returns the minimized BTF of exactly this kernel, with the bytes that were
// written. The spelling of distribution and architecture does not matter. The slice
// belongs to the caller. The error is [ErrNoKernel] if the kernel is missing, and
// [ErrDamaged] if a broken writer made the archive.
func (a *Archive) BTF(k kernel.Key) ([]byte, error) {
	layout, ok := a.Layout(k)
	if !ok {
		return nil, fmt.Errorf("archive: kernel %s: %w", btfa.KeyName(k), ErrNoKernel)
	}
	b, err := a.pool.layoutBTF(layout)
	if err != nil {
		return nil, fmt.Errorf("archive: kernel %s: %w", btfa.KeyName(k), damaged{err})
	}
	return b, nil
}

// Kernels returns all kernels with their BTFs, in the order of [Archive.Keys]. The
// memory belongs to the caller; kernels with the same layout share it. The error says
// that the BTFs have more than 256 MiB, or is [ErrDamaged] if a broken writer made the
// archive.
func (a *Archive) Kernels() ([]Kernel, error) {
	layouts := make([][]byte, len(a.pool.layouts))
	kernels := make([]Kernel, a.Len())
	total := 0
	for i, k := range a.keys {
		l := a.layoutOf[i]
		if layouts[l] == nil {
			b, err := a.pool.layoutBTF(int(l))
			if err != nil {
				return nil, fmt.Errorf("archive: kernel %s: %w", btfa.KeyName(k), damaged{err})
			}
			if total += len(b); total > btfa.MaxBTFs {
				return nil, fmt.Errorf("archive: BTFs of more than %d MiB", btfa.MaxBTFs>>20)
			}
			layouts[l] = b
		}
		kernels[i] = Kernel{k, layouts[l]}
	}
	sort.Slice(kernels, func(i, j int) bool { return kernels[i].Key.Compare(kernels[j].Key) < 0 })
	return kernels, nil
}
