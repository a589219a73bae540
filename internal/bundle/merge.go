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

// ErrOther says that an archive was made for other relocations than another one.
var ErrOther = errors.New("was made for other relocations than")

// Merge reads several archives, as ReadKernels does, as one. Those that have kernels of one arch but were made for
// different relocations on it are refused with ErrOther unless mixed is set; then the info tells none
// for that arch. Kernels that are there again must have the same BTF. If one is part of a run, all parts must be there
// once; the result is none.
func Merge(ctx context.Context, names []string, mixed bool) (info archive.Info, kernels []archive.Kernel, err error) {
	parts := make(map[int]part)
	made := make(madeFor)
	all := union{at: make(map[kernel.Key]int)}
	for _, name := range names {
		in, list, err := ReadKernels(ctx, name)
		if err != nil {
			return info, nil, err
		}
		if err := addPart(parts, part{name, in}); err != nil {
			return info, nil, err
		}
		if err := made.add(name, &in, list, mixed); err != nil {
			return info, nil, err
		}
		if err := all.add(ctx, name, list); err != nil {
			return info, nil, err
		}
		info.Objects = append(info.Objects, in.Objects...)
	}
	if err := complete(parts); err != nil {
		return info, nil, err
	}
	if len(all.kernels) == 0 {
		return info, nil, errors.New("none of the archives has a kernel")
	}
	info.Relocations = made.relocations()
	return info, all.kernels, nil
}

// part is an archive, which may be a shard.
type part struct {
	name string
	info archive.Info
}

// addPart adds an archive to the parts of a run, by their numbers, if it is one.
func addPart(parts map[int]part, p part) error {
	s := p.info.Shard
	if s == (archive.Shard{}) {
		return nil
	}
	if old, ok := parts[s.Index]; ok && old.info.Shard == s {
		return fmt.Errorf("%s: is part %s of a run, and so is %s", p.name, s, old.name)
	}
	for _, o := range parts { // any of them
		if o.info.Shard.N != s.N {
			return fmt.Errorf("%s: is part %s of a run, but %s is part %s of another one", p.name, s, o.name, o.info.Shard)
		}
		if !reflect.DeepEqual(NewMade(o.info).Objects, NewMade(p.info).Objects) {
			return fmt.Errorf("%s: is part %s of a run for other objects than %s", p.name, s, o.name)
		}
		break
	}
	parts[s.Index] = p
	return nil
}

// complete returns an error if some parts of a run are there, but not all.
func complete(parts map[int]part) error {
	for _, p := range parts {
		missing := p.info.Shard
		if len(parts) == missing.N {
			return nil
		}
		for missing.Index = 1; ; missing.Index++ {
			if _, ok := parts[missing.Index]; !ok {
				break
			}
		}
		more := ""
		if n := missing.N - len(parts) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		return fmt.Errorf("part %s of the run is missing%s", missing, more)
	}
	return nil
}

// madeFor says, by canonical arch, what the kernels of a merged archive were made for.
type madeFor map[string]*arch

type arch struct {
	first string // name of the first archive that has kernels of it
	sum   []byte // nil if that is unknown
}

// add adds an archive with some kernels.
func (m madeFor) add(name string, in *archive.Info, kernels []archive.Kernel, mixed bool) error {
	seen := make(map[string]bool)
	for _, k := range kernels {
		of := kernel.CanonicalArch(k.Key.Arch)
		if seen[of] {
			continue
		}
		seen[of] = true
		sum := in.RelocationsFor(of)
		switch old := m[of]; {
		case old == nil:
			m[of] = &arch{name, sum}
		case bytes.Equal(old.sum, sum):
		case !mixed:
			return fmt.Errorf("%s: %w %s on %s", name, ErrOther, old.first, of)
		default:
			old.sum = nil
		}
	}
	return nil
}

// relocations returns what is known.
func (m madeFor) relocations() (out []archive.Relocations) {
	for _, of := range slices.Sorted(maps.Keys(m)) {
		if m[of].sum != nil {
			out = append(out, archive.Relocations{Arch: of, Sum: m[of].sum})
		}
	}
	return out
}

// union is the kernels of several archives, each once.
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
