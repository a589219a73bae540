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
	first, sums := make(map[string]string), make(map[string][]byte) // by arch: the first archive, and its relocations if all agree
	all := union{at: make(map[kernel.Key]int)}
	for _, name := range names {
		in := input{name: name}
		in.info, kernels, err = ReadKernels(ctx, name)
		if err != nil {
			return info, nil, err
		}
		for _, k := range kernels {
			if a := kernel.CanonicalArch(k.Key.Arch); !slices.Contains(in.arches, a) {
				in.arches = append(in.arches, a)
			}
		}
		for _, a := range in.arches {
			sum := in.info.RelocationsFor(a)
			switch old, ok := first[a]; {
			case !ok:
				first[a], sums[a] = name, sum
			case bytes.Equal(sums[a], sum):
			case !mixed:
				return info, nil, fmt.Errorf("%s: %w %s on %s", name, ErrOther, old, a)
			default:
				sums[a] = nil
			}
		}
		if err := all.add(ctx, name, kernels); err != nil {
			return info, nil, err
		}
		inputs = append(inputs, in)
	}
	if err := complete(inputs); err != nil {
		return info, nil, err
	}
	if len(all.kernels) == 0 {
		return info, nil, errors.New("none of the archives has a kernel")
	}
	info.Objects = mergeObjects(inputs)
	for _, a := range slices.Sorted(maps.Keys(sums)) {
		if sums[a] != nil {
			info.Relocations = append(info.Relocations, archive.Relocations{Arch: a, Sum: sums[a]})
		}
	}
	return info, all.kernels, nil
}

// mergeObjects returns the objects of several archives. An object loses the machines for which all kernels are from
// archives that were not made for it, and is left out if no machine remains.
func mergeObjects(inputs []input) (out []archive.Object) {
	type made struct{ name, sum, arch string }
	has := make(map[made]bool)
	var all []string // known arches of kernels
	for _, in := range inputs {
		for _, a := range in.arches {
			if a == "" {
				continue
			}
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
			for _, o := range in.info.Objects {
				if len(o.Arches) == 0 || slices.Contains(o.Arches, a) {
					has[made{o.Name, string(o.Sum), a}] = true
				}
			}
		}
	}
	slices.Sort(all)
	for _, in := range inputs {
		unknown := !slices.ContainsFunc(in.arches, func(a string) bool { return a != "" })
		for _, o := range in.info.Objects {
			machines := o.Arches
			if len(machines) == 0 {
				machines = all
			}
			kept := slices.DeleteFunc(slices.Clone(machines), func(a string) bool {
				return slices.Contains(all, a) && !has[made{o.Name, string(o.Sum), a}]
			})
			if len(kept) < len(machines) && !unknown {
				o.Arches = kept
			}
			if len(kept) > 0 || unknown {
				out = append(out, o)
			}
		}
	}
	return out
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
