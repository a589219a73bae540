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
	"sort"
	"strings"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

var (
	errShard = fmt.Errorf("part of a run: want I of N with 1 ≤ I ≤ N ≤ %d", btfa.MaxShards)
	errArch  = errors.New("not an arch")
)

func (a *Archive) readMeta(c *btfa.Cursor) {
	info := &a.info
	*info = Info{Tool: string(c.Text()), Relocations: []Relocations{}, Objects: []Object{}}
	if n := c.Uvarint(); n > 0 {
		i := c.Uvarint()
		if c.Err == nil && (i == 0 || i > n || n > btfa.MaxShards) {
			c.Fail(errShard)
		}
		info.Shard = Shard{Index: int(i), N: int(n)}
	}
	sum := c.Count(sha256.Size, "bytes of a hash")
	for range c.Count(btfa.MaxMachines+1, "hashes of relocations") {
		info.Relocations = append(info.Relocations, Relocations{string(c.Text()), slices.Clone(c.Bytes(sum))})
	}
	for i, r := range info.Relocations {
		if c.Err != nil {
			return
		}
		if (kernel.Key{Arch: r.Arch}).Validate() != nil {
			c.Fail(errArch)
		} else if i > 0 && r.Arch <= info.Relocations[i-1].Arch {
			c.Fail(fmt.Errorf("relocations of %q: %w", r.Arch, errOrder))
		}
	}
	sum = c.Count(sha256.Size, "bytes of a hash")
	for range c.Count(btfa.MaxObjects, "groups of objects") {
		a.readObjects(c)
	}
	sums := slices.Clone(c.Bytes(len(info.Objects) * sum))
	if c.Err != nil {
		return
	}
	for i := range info.Objects {
		info.Objects[i].Sum = sums[i*sum : (i+1)*sum : (i+1)*sum]
	}
}

// readFingerprints reads the fingerprints of the objects, if the archive has them.
func (a *Archive) readFingerprints(c *btfa.Cursor) {
	if c.Len() > 0 {
		size := c.Count(sha256.Size, "bytes of a fingerprint")
		for i := range a.info.Objects {
			a.info.Objects[i].Fingerprint = slices.Clone(c.Bytes(size))
		}
	}
	objects := a.info.Objects
	sort.SliceStable(objects, func(i, j int) bool { return objects[i].Name < objects[j].Name })
}

// readObjects reads a group of objects for the same machines, without their hashes.
func (a *Archive) readObjects(c *btfa.Cursor) {
	arches := []string{}
	for range c.Count(btfa.MaxMachines, "machines") {
		arch := string(c.Text())
		if c.Err == nil && (arch == "" || (kernel.Key{Arch: arch}).Validate() != nil) {
			c.Fail(errArch)
		}
		if c.Err != nil {
			return
		}
		arches = append(arches, arch)
	}
	n := c.Count(btfa.MaxObjects-len(a.info.Objects), "objects")
	if c.Err == nil && n == 0 {
		c.Fail(errors.New("group without objects"))
	}
	for range n {
		a.info.Objects = append(a.info.Objects, Object{Name: string(c.Text()), Arches: arches})
		if c.Err != nil {
			return
		}
	}
}

// Canonical returns the Info of an archive that [Write] writes for info and kernels:
// objects and relocations are sorted, hashes are cut to the length that archives keep,
// relocations that no kernel needs are dropped, and fingerprints if one is missing. The error is that of Write.
func (info Info) Canonical(kernels []Kernel) (Info, error) {
	if s := info.Shard; s != (Shard{}) && (s.Index < 1 || s.Index > s.N || s.N > btfa.MaxShards) {
		return info, fmt.Errorf("shard %s: want I/N with 1 ≤ I ≤ N ≤ %d", s, btfa.MaxShards)
	}
	var err error
	if info.Relocations, err = distinctRelocations(info, kernels); err == nil {
		info.Objects, err = distinctObjects(info.Objects)
	}
	return info, err
}

// machines returns a text for the machines that an object is for.
func machines(o *Object) string { return strings.Join(o.Arches, "/") } // no arch contains a slash

// meta writes the tool, the relocations and the objects, grouped by their machines.
func (e *encoder) meta(info Info, kernels []Kernel) error {
	info, err := info.Canonical(kernels)
	if err != nil {
		return err
	}
	groups := make(map[string][]Object)
	for _, o := range info.Objects {
		m := machines(&o)
		groups[m] = append(groups[m], o)
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
	e.put(btfa.StreamMeta, btfa.SumSize, uint64(len(info.Relocations)))
	for _, r := range info.Relocations {
		text(r.Arch)
		e.streams[btfa.StreamMeta] = append(e.streams[btfa.StreamMeta], r.Sum...)
	}
	e.put(btfa.StreamMeta, btfa.ObjectSumSize, uint64(len(groups)))
	var sums, fingerprints []byte
	for _, m := range slices.Sorted(maps.Keys(groups)) {
		g := groups[m]
		e.put(btfa.StreamMeta, uint64(len(g[0].Arches)))
		for _, a := range g[0].Arches {
			text(a)
		}
		e.put(btfa.StreamMeta, uint64(len(g)))
		for _, o := range g {
			text(o.Name)
			sums = append(sums, o.Sum...)
			fingerprints = append(fingerprints, o.Fingerprint...)
		}
	}
	e.streams[btfa.StreamMeta] = append(e.streams[btfa.StreamMeta], sums...)
	if len(fingerprints) > 0 {
		e.put(btfa.StreamFingerprints, btfa.FingerprintSize)
		e.streams[btfa.StreamFingerprints] = append(e.streams[btfa.StreamFingerprints], fingerprints...)
	}
	if slices.ContainsFunc(texts, func(s string) bool { return strings.IndexByte(s, 0) >= 0 }) {
		return errors.New("name of the tool, an object or an arch has a NUL byte")
	}
	return nil
}

// distinctRelocations returns one entry without an arch if all kernels have the same
// relocations, and else an entry for each arch of the kernels that has any. Without
// kernels it returns all entries.
func distinctRelocations(info Info, kernels []Kernel) ([]Relocations, error) {
	all := make(map[string]string)
	for _, r := range info.Relocations {
		if len(r.Sum) < btfa.SumSize {
			return nil, fmt.Errorf("relocations of %s: hash of %d bytes, want %d", btfa.Printable(cmp.Or(r.Arch, "all arches")), len(r.Sum), btfa.SumSize)
		}
		arch, sum := kernel.CanonicalArch(r.Arch), string(r.Sum[:btfa.SumSize])
		if old := all[arch]; old != "" && old != sum {
			return nil, fmt.Errorf("relocations of %s: two different hashes", btfa.Printable(cmp.Or(arch, "all arches")))
		}
		all[arch] = sum
	}
	if len(kernels) > 0 {
		needed, sums := make(map[string]string), make(map[string]bool)
		for _, k := range kernels {
			arch := kernel.CanonicalArch(k.Key.Arch)
			sum := cmp.Or(all[arch], all[""]) // "" if they are unknown
			sums[sum] = true
			if sum != "" {
				needed[arch] = sum
			}
		}
		if len(sums) == 1 && !sums[""] {
			needed = map[string]string{"": needed[kernel.CanonicalArch(kernels[0].Key.Arch)]}
		}
		all = needed
	}
	if len(all) > btfa.MaxMachines+1 {
		return nil, tooLarge("relocations of %d arches, more than %d", len(all), btfa.MaxMachines)
	}
	out := []Relocations{}
	for _, arch := range slices.Sorted(maps.Keys(all)) {
		out = append(out, Relocations{Arch: arch, Sum: []byte(all[arch])})
	}
	return out, nil
}

// distinctObjects merges equal objects, whose machines it unites, and sorts them by name. Without the fingerprints of all
// objects it drops them.
func distinctObjects(objects []Object) ([]Object, error) {
	all := slices.Clone(objects)
	fingerprints := true // every object has one
	for i := range all {
		if err := all[i].canonicalize(); err != nil {
			return nil, err
		}
		fingerprints = fingerprints && len(all[i].Fingerprint) > 0
	}
	if !fingerprints {
		for i := range all {
			all[i].Fingerprint = nil
		}
	}
	out := mergeEqual(all)
	if len(out) > btfa.MaxObjects {
		return nil, tooLarge("%d objects, more than %d", len(out), btfa.MaxObjects)
	}
	for _, o := range out {
		if len(o.Arches) > btfa.MaxMachines {
			return nil, tooLarge("object %s: for %d machines, more than %d", btfa.Printable(o.Name), len(o.Arches), btfa.MaxMachines)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(machines(a), machines(b))) < 0
	})
	return out, nil
}

// canonicalize checks an object, cuts its hashes to the stored lengths, and makes its machines canonical.
func (o *Object) canonicalize() error {
	if len(o.Sum) < btfa.ObjectSumSize {
		return fmt.Errorf("object %s: hash of %d bytes, want %d", btfa.Printable(o.Name), len(o.Sum), btfa.ObjectSumSize)
	}
	o.Sum = o.Sum[:btfa.ObjectSumSize:btfa.ObjectSumSize]
	if n := len(o.Fingerprint); n >= btfa.FingerprintSize {
		o.Fingerprint = o.Fingerprint[:btfa.FingerprintSize:btfa.FingerprintSize]
	} else if n > 0 {
		return fmt.Errorf("object %s: fingerprint of %d bytes, want %d", btfa.Printable(o.Name), n, btfa.FingerprintSize)
	}
	o.Arches = canonicalArches(o.Arches)
	for _, a := range o.Arches {
		if a == "" || (kernel.Key{Arch: a}).Validate() != nil {
			return fmt.Errorf("object %s: no arch %q", btfa.Printable(o.Name), a)
		}
	}
	return nil
}

// mergeEqual sorts objects by name and hash, and merges those that have both in common.
func mergeEqual(objects []Object) []Object {
	compare := func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), bytes.Compare(a.Sum, b.Sum))
	}
	// Package sort takes a tenth of the code of slices.SortFunc, which is compiled for each struct.
	sort.SliceStable(objects, func(i, j int) bool { return compare(&objects[i], &objects[j]) < 0 })
	merged := []Object{}
	for _, o := range objects {
		n := len(merged)
		if n == 0 || compare(&merged[n-1], &o) != 0 {
			merged = append(merged, o)
			continue
		}
		same := &merged[n-1]
		if len(o.Arches) == 0 || len(same.Arches) == 0 {
			same.Arches = []string{} // all
		} else {
			same.Arches = canonicalArches(slices.Concat(same.Arches, o.Arches))
		}
	}
	return merged
}
