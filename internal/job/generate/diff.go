// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Diff is the differences between two archives, in the order of keys and names.
type Diff struct {
	Old     DiffSide     `json:"old"`
	New     DiffSide     `json:"new"`
	Gained  []DiffKernel `json:"gained"`
	Lost    []DiffKernel `json:"lost"`
	Changed []DiffKernel `json:"changed"`
	Same    int          `json:"same"`
	Objects []DiffObject `json:"objects"`
}

// DiffSide is one of the two.
type DiffSide struct {
	Name    string `json:"name"`
	Size    int64  `json:"size,omitempty"` // of the file, bytes
	Kernels int    `json:"kernels"`
}

// DiffKernel is a kernel with the bytes of its BTF on the sides that have it.
type DiffKernel struct {
	Kernel  string `json:"kernel"`
	OldSize int64  `json:"old_size,omitempty"`
	NewSize int64  `json:"new_size,omitempty"`
}

// The values of DiffObject.Change.
const (
	ObjectGained      = "gained"
	ObjectLost        = "lost"
	ObjectRelocations = "relocations" // other relocations
	ObjectCode        = "code"        // another file with the same relocations
	ObjectFile        = "file"        // another file; whether the relocations differ is unknown
)

// DiffObject is an object that is not the same on both sides.
type DiffObject struct {
	Name   string `json:"name"`
	Change string `json:"change"`
}

// Compare reads two archives (.btfa files, tar files or directories) and lists what differs.
func Compare(ctx context.Context, oldName, newName string) (*Diff, error) {
	old, err := readSide(ctx, oldName)
	if err != nil {
		return nil, err
	}
	fresh, err := readSide(ctx, newName)
	if err != nil {
		return nil, err
	}
	d := &Diff{Old: old.DiffSide, New: fresh.DiffSide, Gained: []DiffKernel{}, Lost: []DiffKernel{}, Changed: []DiffKernel{}, Objects: []DiffObject{}}
	for _, k := range union(old.kernels, fresh.kernels, kernel.Key.Compare) {
		before, had := old.kernels[k]
		after, has := fresh.kernels[k]
		e := DiffKernel{k.String(), int64(len(before)), int64(len(after))}
		switch {
		case !had:
			d.Gained = append(d.Gained, e)
		case !has:
			d.Lost = append(d.Lost, e)
		case !bytes.Equal(before, after):
			d.Changed = append(d.Changed, e)
		default:
			d.Same++
		}
	}
	for _, name := range union(old.objects, fresh.objects, strings.Compare) {
		if change := objectChange(old.objects[name], fresh.objects[name]); change != "" {
			d.Objects = append(d.Objects, DiffObject{name, change})
		}
	}
	return d, nil
}

// side is one of the archives that Compare reads.
type side struct {
	DiffSide
	kernels map[kernel.Key][]byte // minimized BTF
	objects map[string]*archive.Object
}

func readSide(ctx context.Context, name string) (*side, error) {
	s := &side{DiffSide{Name: name}, make(map[kernel.Key][]byte), make(map[string]*archive.Object)}
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if fi.Mode().IsRegular() {
		s.Size = fi.Size()
	}
	info, kernels, err := bundle.ReadKernels(ctx, name)
	for _, k := range kernels {
		s.kernels[k.Key.Canonical()] = k.BTF
	}
	for i, o := range info.Objects {
		s.objects[o.Name] = &info.Objects[i]
	}
	s.Kernels = len(s.kernels)
	return s, err
}

// union returns the keys of both maps in order.
func union[K comparable, V any](a, b map[K]V, order func(K, K) int) []K {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, order)
	return slices.Compact(keys)
}

// objectChange returns how an object differs, or "". A missing object is nil, and hashes may be cut to different lengths.
func objectChange(before, after *archive.Object) string {
	switch {
	case before == nil:
		return ObjectGained
	case after == nil:
		return ObjectLost
	}
	known := len(before.Fingerprint) > 0 && len(after.Fingerprint) > 0
	n := min(len(before.Sum), len(after.Sum))
	switch {
	case known && !bytes.Equal(before.Fingerprint, after.Fingerprint):
		return ObjectRelocations
	case bytes.Equal(before.Sum[:n], after.Sum[:n]):
		return ""
	case known:
		return ObjectCode
	}
	return ObjectFile
}
