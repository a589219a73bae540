// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"slices"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// side is one of the archives that Compare reads.
type side struct {
	name    string
	size    int64 // of the file in bytes; 0 for a directory
	kernels map[kernel.Key]diffBTF
	objects map[string]diffObject
}

// diffBTF is the minimized BTF of a kernel.
type diffBTF struct {
	sum  [sha256.Size]byte
	size int64
}

// diffObject identifies an object. Prefixes of a hash have different lengths.
type diffObject struct{ sum, fingerprint string }

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

// readSide reads an archive.
func readSide(ctx context.Context, name string) (*side, error) {
	s := &side{name: name, kernels: make(map[kernel.Key]diffBTF), objects: make(map[string]diffObject)}
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if fi.Mode().IsRegular() {
		s.size = fi.Size()
	}
	info, kernels, err := bundle.ReadKernels(ctx, name)
	if err != nil {
		return nil, err
	}
	sums := make(map[*byte]diffBTF) // kernels with one BTF share its memory
	for _, k := range kernels {
		if len(k.BTF) == 0 {
			continue
		}
		b, ok := sums[&k.BTF[0]]
		if !ok {
			b = diffBTF{sha256.Sum256(k.BTF), int64(len(k.BTF))}
			sums[&k.BTF[0]] = b
		}
		s.kernels[k.Key.Canonical()] = b
	}
	for _, o := range info.Objects {
		s.objects[o.Name] = diffObject{hex.EncodeToString(o.Sum), hex.EncodeToString(o.Fingerprint)}
	}
	return s, nil
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
	return compareSides(old, fresh), nil
}

func compareSides(old, fresh *side) *Diff {
	d := &Diff{
		Old: DiffSide{old.name, old.size, len(old.kernels)}, New: DiffSide{fresh.name, fresh.size, len(fresh.kernels)},
		Gained: []DiffKernel{}, Lost: []DiffKernel{}, Changed: []DiffKernel{}, Objects: []DiffObject{},
	}
	keys := slices.Concat(slices.Collect(maps.Keys(old.kernels)), slices.Collect(maps.Keys(fresh.kernels)))
	slices.SortFunc(keys, kernel.Key.Compare)
	for _, k := range slices.Compact(keys) {
		before, had := old.kernels[k]
		after, has := fresh.kernels[k]
		e := DiffKernel{k.String(), before.size, after.size}
		switch {
		case !had:
			d.Gained = append(d.Gained, e)
		case !has:
			d.Lost = append(d.Lost, e)
		case before.sum != after.sum:
			d.Changed = append(d.Changed, e)
		default:
			d.Same++
		}
	}
	names := slices.Concat(slices.Collect(maps.Keys(old.objects)), slices.Collect(maps.Keys(fresh.objects)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, had := old.objects[name]
		after, has := fresh.objects[name]
		n := min(len(before.sum), len(after.sum))
		change := ""
		switch known := before.fingerprint != "" && after.fingerprint != ""; {
		case !had:
			change = ObjectGained
		case !has:
			change = ObjectLost
		case known && before.fingerprint != after.fingerprint:
			change = ObjectRelocations
		case before.sum[:n] == after.sum[:n]:
			continue
		case known:
			change = ObjectCode
		default:
			change = ObjectFile
		}
		d.Objects = append(d.Objects, DiffObject{name, change})
	}
	return d
}
