// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ErrOther is returned for an archive that was made for other relocations than another one.
var ErrOther = errors.New("was made for other relocations than")

// input is an archive to merge.
type input struct {
	name   string
	info   archive.Info
	arches []string // of its kernels, canonical; "" if unknown
}

// Merge reads several archives, as ReadKernels does, and merges them. It refuses with ErrOther archives that have kernels of
// the same arch but were made for different relocations on it; if mixed is set, the info has no relocations for that arch
// instead. Repeated kernels must have the same BTF. If one archive is a part of a run, all parts must be given once; the
// result is a whole run.
func Merge(ctx context.Context, names []string, mixed bool) (info archive.Info, kernels []archive.Kernel, err error) {
	var inputs []input
	seen := make(relocations)
	all := union{at: make(map[kernel.Key]int)}
	for _, name := range names {
		of, kernels, err := ReadKernels(ctx, name)
		in := newInput(name, of, kernels)
		if err == nil {
			err = seen.add(in, mixed)
		}
		if err == nil {
			err = all.add(ctx, name, kernels)
		}
		if err != nil {
			return info, nil, err
		}
		inputs = append(inputs, in)
	}
	if info, err = mergeInfo(inputs, seen); err == nil && len(all.kernels) == 0 {
		err = errors.New("none of the archives has a kernel")
	}
	if err != nil {
		return info, nil, err
	}
	return info, all.kernels, nil
}

func newInput(name string, info archive.Info, kernels []archive.Kernel) input {
	in := input{name: name, info: info}
	for _, k := range kernels {
		if a := kernel.CanonicalArch(k.Key.Arch); !slices.Contains(in.arches, a) {
			in.arches = append(in.arches, a)
		}
	}
	return in
}

// otherError is an ErrOther.
type otherError struct{ name, than, arch string }

func (e *otherError) Error() string {
	return fmt.Sprintf("%s: %v %s on %s", e.name, ErrOther, e.than, e.arch)
}

func (e *otherError) Is(target error) bool { return target == ErrOther }

// relocations are those of archives, by arch: the first archive, and its sum if all agree.
type relocations map[string]struct {
	first string
	sum   []byte
}

// add adds those of an archive. Unless mixed is set, they must be the same.
func (r relocations) add(in input, mixed bool) error {
	for _, a := range in.arches {
		sum := in.info.RelocationsFor(a)
		old, ok := r[a]
		switch {
		case !ok:
			old.first, old.sum = in.name, sum
		case bytes.Equal(old.sum, sum):
		case !mixed:
			return &otherError{in.name, old.first, a}
		default:
			old.sum = nil
		}
		r[a] = old
	}
	return nil
}

// mergeInfo merges the infos of archives with these relocations. The result has no tool.
func mergeInfo(inputs []input, all relocations) (info archive.Info, err error) {
	if err := complete(inputs); err != nil {
		return info, err
	}
	info.Objects = mergeObjects(inputs)
	for _, a := range slices.Sorted(maps.Keys(all)) {
		if sum := all[a].sum; sum != nil {
			info.Relocations = append(info.Relocations, archive.Relocations{Arch: a, Sum: sum})
		}
	}
	return info, nil
}

// Keep adds the kernels of a directory that selects does not select to those of a run, which it does, with an info for both. It returns how many it
// added: none for other formats. A kernel of the same arch must have been made for the same relocations.
func (o *Output) Keep(ctx context.Context, info archive.Info, kernels []archive.Kernel, selects func(kernel.Key) bool) (archive.Info, []archive.Kernel, int, error) {
	if o.Format != Dir {
		return info, kernels, 0, nil
	}
	list, old, err := readList(ctx, o.Path)
	if err != nil || list == nil {
		return info, kernels, 0, err
	}
	list.Files = slices.DeleteFunc(list.Files, func(name string) bool {
		k, err := kernel.ParseFileName(name)
		return err != nil || selects(k)
	})
	if len(list.Files) == 0 {
		return info, kernels, 0, nil
	}
	files, err := readFiles(ctx, o.Path, list)
	if err != nil {
		return info, nil, 0, err
	}
	var kept []archive.Kernel
	for _, f := range files {
		k, err := kernel.ParseFileName(f.Name)
		if err != nil {
			return info, nil, 0, err
		}
		kept = append(kept, archive.Kernel{Key: k, BTF: f.Data})
	}
	if info, err = info.Canonical(kernels); err != nil {
		return info, nil, 0, err
	}
	inputs, all := []input{newInput(o.Path, old, kept), newInput("this run", info, kernels)}, make(relocations)
	for _, in := range inputs {
		var other *otherError
		if err := all.add(in, false); errors.As(err, &other) {
			return info, nil, 0, fmt.Errorf("%s: its other kernels were made for other relocations on %s: --replace removes them, or name another directory", o.Path, other.arch)
		}
	}
	both, err := mergeInfo(inputs, all)
	both.Tool = info.Tool
	return both, append(kept, kernels...), len(kept), err
}

// mergeObjects returns the objects of several archives. An object loses the machines for which all kernels are from
// archives that were not made for it, and is left out if no machine remains. Objects of an archive without kernels of a
// known arch are kept unchanged.
func mergeObjects(inputs []input) (merged []archive.Object) {
	made := madeFor(inputs)
	arches := knownArches(inputs)
	for _, in := range inputs {
		for _, o := range in.info.Objects {
			keep := true
			if len(in.knownArches()) > 0 {
				o.Arches, keep = made.machines(o, arches)
			}
			if keep {
				merged = append(merged, o)
			}
		}
	}
	return merged
}

// knownArches returns the known arches of an archive's kernels.
func (in *input) knownArches() []string {
	return slices.DeleteFunc(slices.Clone(in.arches), func(a string) bool { return a == "" })
}

// knownArches returns the known arches of all kernels, in order.
func knownArches(inputs []input) (arches []string) {
	for _, in := range inputs {
		arches = append(arches, in.knownArches()...)
	}
	slices.Sort(arches)
	return slices.Compact(arches)
}

// objectOn is an object on an arch.
type objectOn struct{ name, sum, arch string }

// objectsOn has each arch for which an archive with its kernels was made for an object.
type objectsOn map[objectOn]bool

// madeFor finds the arches of each object.
func madeFor(inputs []input) objectsOn {
	made := make(objectsOn)
	for _, in := range inputs {
		for _, a := range in.knownArches() {
			for _, o := range in.info.Objects {
				if len(o.Arches) == 0 || slices.Contains(o.Arches, a) {
					made[objectOn{o.Name, string(o.Sum), a}] = true
				}
			}
		}
	}
	return made
}

// machines returns the machines of an object without those of arches that it was not made for, and false if none remains. An
// object that lists no machine, which means all, still does if it keeps all.
func (made objectsOn) machines(o archive.Object, arches []string) (kept []string, some bool) {
	machines := o.Arches
	if len(machines) == 0 {
		machines = arches
	}
	kept = slices.DeleteFunc(slices.Clone(machines), func(a string) bool {
		return slices.Contains(arches, a) && !made[objectOn{o.Name, string(o.Sum), a}]
	})
	if len(kept) == len(machines) {
		return o.Arches, true
	}
	return kept, len(kept) > 0
}

// complete returns an error unless no input is a part of a run, or the inputs have all parts of one run.
func complete(inputs []input) error {
	parts := slices.DeleteFunc(slices.Clone(inputs), func(in input) bool { return in.info.Shard == archive.Shard{} })
	names := make(map[int]string)
	for _, p := range parts {
		s, first := p.info.Shard, &parts[0]
		switch {
		case s.N != first.info.Shard.N:
			return fmt.Errorf("%s: is part %s of a run, but %s is part %s of another one", p.name, s, first.name, first.info.Shard)
		case names[s.Index] != "":
			return fmt.Errorf("%s: is part %s of a run, and so is %s", p.name, s, names[s.Index])
		case !reflect.DeepEqual(first.info.Objects, p.info.Objects):
			return fmt.Errorf("%s: is part %s of a run for other objects than %s", p.name, s, first.name)
		}
		names[s.Index] = p.name
	}
	if len(parts) == 0 || len(parts) == parts[0].info.Shard.N {
		return nil
	}
	missing := archive.Shard{Index: 1, N: parts[0].info.Shard.N}
	for names[missing.Index] != "" {
		missing.Index++
	}
	more := ""
	if n := missing.N - len(parts) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Errorf("part %s of the run is missing%s", missing, more)
}

// union collects kernels of several archives, without duplicates.
type union struct {
	kernels []archive.Kernel
	at      map[kernel.Key]int
	from    []string // the archive of each
}

// add adds the kernels of an archive.
func (u *union) add(ctx context.Context, name string, kernels []archive.Kernel) error {
	for _, k := range kernels {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i, ok := u.at[k.Key]; !ok {
			u.at[k.Key] = len(u.kernels)
			u.kernels, u.from = append(u.kernels, k), append(u.from, name)
		} else if !bytes.Equal(u.kernels[i].BTF, k.BTF) {
			return fmt.Errorf("%s: kernel %s: has another BTF than in %s", name, k.Key, u.from[i])
		}
	}
	return nil
}
