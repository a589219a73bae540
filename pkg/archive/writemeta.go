// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// NewObject returns the Object for a BPF object file with this name and content, as
// archives keep it. It is for machines of the given arches, in any spelling, or
// for any machine if there are none. NewObject does not keep data.
func NewObject(name string, data []byte, arches ...string) Object {
	sum := sha256.Sum256(data)
	return Object{Name: name, Sum: sum[:btfa.ObjectSumSize:btfa.ObjectSumSize], Arches: canonicalArches(arches)}
}

func canonicalArches(arches []string) []string {
	var out []string
	for _, a := range arches {
		out = append(out, kernel.CanonicalArch(a))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Canonical returns the Info that an archive of these kernels has if it is written
// with this one: objects and relocations are sorted, hashes are cut to the length
// that archives keep, and relocations that no kernel needs are dropped. The error
// is the one that [Write] would return.
func (info Info) Canonical(kernels []Kernel) (Info, error) {
	groups, relocations, err := canonicalInfo(info, kernels)
	info.Relocations, info.Objects = relocations, slices.Concat(groups...)
	slices.SortStableFunc(info.Objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return info, err
}

func canonicalInfo(info Info, kernels []Kernel) (groups [][]Object, relocations []Relocations, err error) {
	if s := info.Shard; s != (Shard{}) && (s.Index < 1 || s.Index > s.N || s.N > btfa.MaxShards) {
		return nil, nil, fmt.Errorf("shard %s: want I/N with 1 ≤ I ≤ N ≤ %d", s, btfa.MaxShards)
	}
	if relocations, err = distinctRelocations(info, kernels); err != nil {
		return nil, nil, err
	}
	groups, err = groupObjects(info.Objects)
	return groups, relocations, err
}

// meta writes who made the archive of what. kernels are those of the archive.
func (e *encoder) meta(info Info, kernels []Kernel) error {
	groups, relocations, err := canonicalInfo(info, kernels)
	if err != nil {
		return err
	}
	var texts []string
	text := func(s string) {
		texts = append(texts, s)
		e.putString(btfa.StreamMeta, s)
	}
	text(info.Tool)
	if s := info.Shard; s != (Shard{}) {
		e.put(btfa.StreamMeta, uint64(s.N), uint64(s.Index))
	} else {
		e.put(btfa.StreamMeta, 0)
	}
	e.put(btfa.StreamMeta, btfa.SumSize, uint64(len(relocations)))
	for _, r := range relocations {
		text(r.Arch)
		e.streams[btfa.StreamMeta] = append(e.streams[btfa.StreamMeta], r.Sum...)
	}
	e.put(btfa.StreamMeta, btfa.ObjectSumSize, uint64(len(groups)))
	var sums []byte
	for _, g := range groups {
		e.put(btfa.StreamMeta, uint64(len(g[0].Arches)))
		for _, a := range g[0].Arches {
			text(a)
		}
		e.put(btfa.StreamMeta, uint64(len(g)))
		for _, o := range g {
			text(o.Name)
			sums = append(sums, o.Sum...)
		}
	}
	e.streams[btfa.StreamMeta] = append(e.streams[btfa.StreamMeta], sums...)
	if slices.ContainsFunc(texts, func(s string) bool { return strings.IndexByte(s, 0) >= 0 }) {
		return errors.New("name of the tool, an object or an arch has a NUL byte")
	}
	return nil
}

// distinctRelocations returns one entry without an arch if all kernels were made for the same relocations,
// else one for each arch of which that is known. Without kernels nothing is known to be needless.
func distinctRelocations(info Info, kernels []Kernel) ([]Relocations, error) {
	all := make(map[string][]byte)
	for _, r := range info.Relocations {
		if len(r.Sum) < btfa.SumSize {
			return nil, fmt.Errorf("relocations of %s: hash of %d bytes, want %d", cmp.Or(r.Arch, "all arches"), len(r.Sum), btfa.SumSize)
		}
		arch, sum := kernel.CanonicalArch(r.Arch), r.Sum[:btfa.SumSize:btfa.SumSize]
		if old, ok := all[arch]; ok && !bytes.Equal(old, sum) {
			return nil, fmt.Errorf("relocations of %s: two different hashes", cmp.Or(arch, "all arches"))
		}
		all[arch] = sum
	}
	if len(kernels) > 0 {
		all = ofKernels(all, kernels)
	}
	if len(all) > btfa.MaxMachines+1 {
		return nil, tooLarge("relocations of %d arches, more than %d", len(all), btfa.MaxMachines)
	}
	var out []Relocations
	for _, arch := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Relocations{Arch: arch, Sum: all[arch]})
	}
	return out, nil
}

// ofKernels returns the hashes, by arch, as an archive of some kernels needs them.
func ofKernels(all map[string][]byte, kernels []Kernel) map[string][]byte {
	out := make(map[string][]byte)
	var one []byte
	same := true
	for _, k := range kernels {
		arch := kernel.CanonicalArch(k.Key.Arch)
		sum, ok := all[arch]
		if !ok {
			sum, ok = all[""]
		}
		if !ok {
			same = false
			continue
		}
		if one == nil {
			one = sum
		}
		same = same && bytes.Equal(one, sum)
		out[arch] = sum
	}
	if same {
		return map[string][]byte{"": one}
	}
	return out
}

// groupObjects returns the distinct objects, those for the same machines together. An object that is
// there several times is for the machines of all of them.
func groupObjects(objects []Object) ([][]Object, error) {
	byName := slices.Clone(objects)
	for i := range byName {
		o := &byName[i]
		if len(o.Sum) < btfa.ObjectSumSize {
			return nil, fmt.Errorf("object %s: hash of %d bytes, want %d", o.Name, len(o.Sum), btfa.ObjectSumSize)
		}
		o.Sum, o.Arches = o.Sum[:btfa.ObjectSumSize:btfa.ObjectSumSize], canonicalArches(o.Arches)
		for _, a := range o.Arches {
			if a == "" || (kernel.Key{Arch: a}).Validate() != nil {
				return nil, fmt.Errorf("object %s: no arch %q", o.Name, a)
			}
		}
	}
	compare := func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Sum, b.Sum))
	}
	slices.SortFunc(byName, compare)
	var out []Object
	for _, o := range byName {
		if n := len(out); n > 0 && compare(out[n-1], o) == 0 {
			if len(o.Arches) == 0 || len(out[n-1].Arches) == 0 {
				out[n-1].Arches = nil
			} else {
				out[n-1].Arches = canonicalArches(slices.Concat(out[n-1].Arches, o.Arches))
			}
			continue
		}
		out = append(out, o)
	}
	if len(out) > btfa.MaxObjects {
		return nil, tooLarge("%d objects, more than %d", len(out), btfa.MaxObjects)
	}
	byMachines := make(map[string][]Object)
	for _, o := range out {
		if len(o.Arches) > btfa.MaxMachines {
			return nil, tooLarge("object %s: for %d machines, more than %d", o.Name, len(o.Arches), btfa.MaxMachines)
		}
		m := strings.Join(o.Arches, "/") // which no arch has in it
		byMachines[m] = append(byMachines[m], o)
	}
	var groups [][]Object
	for _, m := range slices.Sorted(maps.Keys(byMachines)) {
		groups = append(groups, byMachines[m])
	}
	return groups, nil
}
