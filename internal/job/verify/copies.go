// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// roots are the names of all local types that cilium/ebpf relocates, by which it finds candidates.
type roots struct {
	names   []string
	ids     []bool // for each name, whether a relocation takes the ID of a type
	number  map[string]int
	matches bool // a relocation compares names of types, also behind pointers
}

// add adds the local types of an object.
func (r *roots) add(o *core.Object, c *ciliumObject) {
	for i := range c.groups {
		name := string(o.Root(&o.Records()[c.groups[i].records[0]]).Name())
		n, ok := r.number[name]
		if !ok {
			n = len(r.names)
			r.number[name] = n
			r.names, r.ids = append(r.names, name), append(r.ids, false)
		}
		for _, rec := range c.groups[i].records {
			kind := o.Records()[rec].Kind
			r.ids[n] = r.ids[n] || kind == relo.TargetTypeID
			r.matches = r.matches || kind == relo.TypeMatches
		}
	}
}

// contentsSize is how many bytes of contents may be compared for each byte of BTF. A kernel without deduplication takes 1.5.
const contentsSize = 8

// withoutCopies returns the BTF of vmlinux with fewer candidates, on which cilium/ebpf decides the same: of structs and unions with
// the same name and contents, only the first keeps its name. The others fail or resolve as that does, and agree with it, except
// in their IDs. BTF without deduplication has hundreds of copies.
func (r *roots) withoutCopies(ctx context.Context, vmlinux []byte, b *btf.BTF) ([]byte, error) {
	if r.matches {
		return vmlinux, nil
	}
	h, err := btf.ReadHeader(vmlinux, int64(len(vmlinux)))
	if err != nil {
		return nil, err
	}
	found, err := b.Find(ctx, btf.NewNames(r.names), len(r.names), nil)
	if err != nil {
		return vmlinux, ctx.Err() // Fill reports too many candidates
	}
	keep := make(map[btf.TypeID]bool)
	for n, ids := range found {
		for _, id := range ids {
			keep[id] = keep[id] || r.ids[n]
		}
	}
	all := sums{btf: b, left: contentsSize * len(vmlinux), made: make(map[contents][sha256.Size]byte)}
	first := make(map[[sha256.Size]byte]btf.TypeID)
	out := vmlinux
	for _, ids := range found {
		for _, id := range ids {
			t := b.Type(id)
			if len(ids) == 1 || keep[id] || !t.Kind().IsComposite() {
				continue
			}
			sum := all.of(contents{id: id})
			if _, ok := first[sum]; !ok {
				first[sum] = id
			}
			if first[sum] == id { // also if it has two of the names
				continue
			}
			if &out[0] == &vmlinux[0] {
				out = slices.Clone(vmlinux)
			}
			h.Order.PutUint32(out[h.Types.Off+uint64(t.Offset()):], 0)
		}
	}
	return out, ctx.Err()
}
