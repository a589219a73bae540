// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

var errShard = fmt.Errorf("part of a run: want I of N with 1 ≤ I ≤ N ≤ %d", btfa.MaxShards)

func (a *Archive) readMeta(c *btfa.Cursor) {
	info := &a.info
	info.Tool = string(c.Text())
	if n := c.Uvarint(); n > 0 {
		i := c.Uvarint()
		if c.Err == nil && (i == 0 || i > n || n > btfa.MaxShards) {
			c.Fail(errShard)
		}
		info.Shard = Shard{int(i), int(n)}
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
	slices.SortStableFunc(info.Objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
}

var errArch = errors.New("not an arch")

// readObjects reads the names of the objects that are for the same machines.
func (a *Archive) readObjects(c *btfa.Cursor) {
	var arches []string
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
