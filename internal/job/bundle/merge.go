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

// Merge reads several archives, as ReadKernels does, and merges them. It refuses with ErrOther archives that have kernels of
// the same arch but were made for different relocations on it; if mixed is set, the info has no relocations for that arch
// instead. Repeated kernels must have the same BTF. If one archive is a part of a run, all parts must be given once; the
// result is a whole run.
func Merge(ctx context.Context, names []string, mixed bool) (info archive.Info, kernels []archive.Kernel, err error) {
	var parts []part
	var inputs []input
	arches := make(map[string]*arch)
	all := union{at: make(map[kernel.Key]int)}
	for _, name := range names {
		in, list, err := ReadKernels(ctx, name)
		if err != nil {
			return info, nil, err
		}
		if in.Shard != (archive.Shard{}) {
			parts = append(parts, part{name, in})
		}
		if err := addArches(arches, name, &in, list, mixed); err != nil {
			return info, nil, err
		}
		if err := all.add(ctx, name, list); err != nil {
			return info, nil, err
		}
		inputs = append(inputs, input{in.Objects, archesOf(list)})
	}
	info.Objects = mergeObjects(inputs)
	if err := complete(parts); err != nil {
		return info, nil, err
	}
	if len(all.kernels) == 0 {
		return info, nil, errors.New("none of the archives has a kernel")
	}
	for _, name := range slices.Sorted(maps.Keys(arches)) {
		if a := arches[name]; a.sum != nil {
			info.Relocations = append(info.Relocations, archive.Relocations{Arch: name, Sum: a.sum})
		}
	}
	return info, all.kernels, nil
}

// input is what an archive was made for, and the canonical arches of its kernels.
type input struct {
	objects []archive.Object
	arches  []string
}

// archesOf returns the canonical arches of kernels, if known.
func archesOf(kernels []archive.Kernel) (list []string) {
	for _, k := range kernels {
		if a := kernel.CanonicalArch(k.Key.Arch); a != "" && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// mergeObjects returns the objects of several archives. An object loses the machines for which all kernels are from
// archives that were not made for it, and is left out if no machine remains.
func mergeObjects(inputs []input) (out []archive.Object) {
	type made struct{ object, arch string }
	id := func(o *archive.Object, arch string) made { return made{o.Name + "\x00" + string(o.Sum), arch} }
	has := make(map[made]bool)
	var all []string // arches of kernels
	for _, in := range inputs {
		all = append(all, in.arches...)
		for i := range in.objects {
			o := &in.objects[i]
			for _, a := range in.arches {
				if len(o.Arches) == 0 || slices.Contains(o.Arches, a) {
					has[id(o, a)] = true
				}
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, in := range inputs {
		for _, o := range in.objects {
			machines := o.Arches
			if len(machines) == 0 {
				machines = all
			}
			kept := slices.DeleteFunc(slices.Clone(machines), func(a string) bool { return slices.Contains(all, a) && !has[id(&o, a)] })
			if len(kept) < len(machines) && len(in.arches) > 0 {
				o.Arches = kept
			}
			if len(kept) > 0 || len(in.arches) == 0 {
				out = append(out, o)
			}
		}
	}
	return out
}

// part is an archive that is a shard.
type part struct {
	name string
	info archive.Info
}

// complete returns an error unless there are no parts, or all parts of one run.
func complete(parts []part) error {
	names := make(map[int]string)
	for _, p := range parts {
		s, first := p.info.Shard, &parts[0]
		switch {
		case s.N != first.info.Shard.N:
			return fmt.Errorf("%s: is part %s of a run, but %s is part %s of another one", p.name, s, first.name, first.info.Shard)
		case names[s.Index] != "":
			return fmt.Errorf("%s: is part %s of a run, and so is %s", p.name, s, names[s.Index])
		case !reflect.DeepEqual(NewMade(first.info).Objects, NewMade(p.info).Objects):
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

// arch has what the kernels of an arch were minimized for.
type arch struct {
	first string // the first archive that has some
	sum   []byte // nil if unknown
}

// addArches adds the canonical arches of an archive's kernels.
func addArches(arches map[string]*arch, name string, in *archive.Info, kernels []archive.Kernel, mixed bool) error {
	seen := make(map[string]bool)
	for _, k := range kernels {
		of := kernel.CanonicalArch(k.Key.Arch)
		if seen[of] {
			continue
		}
		seen[of] = true
		sum := in.RelocationsFor(of)
		switch old := arches[of]; {
		case old == nil:
			arches[of] = &arch{name, sum}
		case bytes.Equal(old.sum, sum):
		case !mixed:
			return fmt.Errorf("%s: %w %s on %s", name, ErrOther, old.first, of)
		default:
			old.sum = nil
		}
	}
	return nil
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
