// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"os"
	"slices"
	"sort"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Difference is how the archive New differs from the archive Old.
type Difference struct {
	Old     Totals        `json:"old"`
	New     Totals        `json:"new"`
	Kernels KernelChanges `json:"kernels"`
	// Objects is nil if one of the archives does not say what it was made for: a tar file, or a directory of another program.
	Objects *ObjectChanges `json:"objects,omitempty"`
}

// Totals are the numbers and sizes of an archive.
type Totals struct {
	Archive  string `json:"archive"`
	Bytes    int64  `json:"bytes"` // size of the file, or of the .btf files in a directory
	Kernels  int    `json:"kernels"`
	Layouts  int    `json:"layouts"`   // different BTFs
	BTFBytes int64  `json:"btf_bytes"` // the sum over all kernels
	Objects  int    `json:"objects"`
}

// KernelChanges are lists in the order of [kernel.Key.Compare].
type KernelChanges struct {
	Gained  []KernelChange `json:"gained"`
	Lost    []KernelChange `json:"lost"`
	Changed []KernelChange `json:"changed"` // kernels that have another BTF
	Same    int            `json:"same"`    // their number
}

// KernelChange is a kernel that is in one archive only, or that has another BTF in each.
type KernelChange struct {
	Key      kernel.Key `json:"-"`
	Kernel   string     `json:"kernel"`
	OldBytes int        `json:"old_bytes,omitempty"`
	NewBytes int        `json:"new_bytes,omitempty"`
}

// ObjectChanges are lists sorted by name.
type ObjectChanges struct {
	Gained  []archive.Object `json:"gained"`
	Lost    []archive.Object `json:"lost"`
	Changed []ObjectChange   `json:"changed"`
	Same    int              `json:"same"` // their number
}

// ObjectChange is an object that is another file in each archive, or for other machines.
type ObjectChange struct {
	Name        string         `json:"name"`
	Old         archive.Object `json:"old"`
	New         archive.Object `json:"new"`
	Relocations string         `json:"relocations"` // same, other or unknown
}

// Diff compares two archives in any format.
func Diff(ctx context.Context, oldName, newName string) (d Difference, err error) {
	before, oldInfo, err := readSorted(ctx, oldName, &d.Old)
	if err != nil {
		return d, err
	}
	after, newInfo, err := readSorted(ctx, newName, &d.New)
	if err != nil {
		return d, err
	}
	d.Kernels = KernelChanges{Gained: []KernelChange{}, Lost: []KernelChange{}, Changed: []KernelChange{}}
	for len(before)+len(after) > 0 {
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = before[0].Key.Compare(after[0].Key)
		}
		switch {
		case order < 0:
			d.Kernels.Lost = append(d.Kernels.Lost, KernelChange{before[0].Key, before[0].Key.String(), len(before[0].BTF), 0})
		case order > 0:
			d.Kernels.Gained = append(d.Kernels.Gained, KernelChange{after[0].Key, after[0].Key.String(), 0, len(after[0].BTF)})
		case bytes.Equal(before[0].BTF, after[0].BTF):
			d.Kernels.Same++
		default:
			d.Kernels.Changed = append(d.Kernels.Changed, KernelChange{after[0].Key, after[0].Key.String(), len(before[0].BTF), len(after[0].BTF)})
		}
		if order <= 0 {
			before = before[1:]
		}
		if order >= 0 {
			after = after[1:]
		}
	}
	if oldInfo.Tool != "" && newInfo.Tool != "" {
		d.Objects = diffObjects(oldInfo.Objects, newInfo.Objects)
	}
	return d, nil
}

// readSorted reads an archive with sorted kernels.
func readSorted(ctx context.Context, name string, t *Totals) ([]archive.Kernel, archive.Info, error) {
	info, kernels, err := ReadKernels(ctx, name)
	if err != nil {
		return nil, info, err
	}
	fi, err := os.Stat(name)
	if err != nil {
		return nil, info, err
	}
	sort.Slice(kernels, func(i, j int) bool { return kernels[i].Key.Compare(kernels[j].Key) < 0 })
	*t = Totals{Archive: name, Kernels: len(kernels), Objects: len(info.Objects)}
	different := make(map[string]bool)
	for _, k := range kernels {
		t.BTFBytes += int64(len(k.BTF))
		different[string(k.BTF)] = true
	}
	t.Layouts = len(different)
	if t.Bytes = fi.Size(); fi.IsDir() {
		t.Bytes = t.BTFBytes
	}
	return kernels, info, nil
}

// diffObjects compares objects by name. Those of one name are matched in their order.
func diffObjects(before, after []archive.Object) *ObjectChanges {
	d := ObjectChanges{Gained: []archive.Object{}, Lost: []archive.Object{}, Changed: []ObjectChange{}}
	lost := slices.Clone(before)
	gained := slices.DeleteFunc(slices.Clone(after), func(o archive.Object) bool {
		i := slices.IndexFunc(lost, func(l archive.Object) bool {
			return l.Name == o.Name && samePrefix(l.Sum, o.Sum) && slices.Equal(l.Arches, o.Arches)
		})
		if i >= 0 {
			lost = slices.Delete(lost, i, i+1)
			d.Same++
		}
		return i >= 0
	})
	for _, o := range gained {
		i := slices.IndexFunc(lost, func(l archive.Object) bool { return l.Name == o.Name })
		if i < 0 {
			d.Gained = append(d.Gained, o)
			continue
		}
		change := ObjectChange{Name: o.Name, Old: lost[i], New: o, Relocations: "other"}
		switch {
		case len(lost[i].Fingerprint) == 0 || len(o.Fingerprint) == 0:
			change.Relocations = "unknown"
		case samePrefix(lost[i].Fingerprint, o.Fingerprint):
			change.Relocations = "same"
		}
		d.Changed = append(d.Changed, change)
		lost = slices.Delete(lost, i, i+1)
	}
	d.Lost = append(d.Lost, lost...)
	return &d
}

// samePrefix reports whether two hashes are equal as far as both are known.
func samePrefix(a, b []byte) bool {
	n := min(len(a), len(b))
	return bytes.Equal(a[:n], b[:n])
}
