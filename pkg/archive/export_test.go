// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TemporaryFile is NewFile on systems without files in memory.
var TemporaryFile = temporaryFile

// Payload returns the payload that Write compresses.
func Payload(ctx context.Context, info Info, kernels []Kernel) ([]byte, error) {
	kernels, err := sortKernels(kernels)
	if err != nil {
		return nil, err
	}
	streams, _, err := encodeStreams(ctx, info, kernels)
	if err != nil {
		return nil, err
	}
	return append(head(streams), slices.Concat(streams[:]...)...), nil
}

// Equal returns an archive for look-ups only. Kernels with equal contents have the same BTF.
func Equal(contents map[kernel.Key]string) *Archive {
	a := &Archive{index: make(map[kernel.Key]int)}
	layouts := make(map[string]int32)
	for _, k := range slices.SortedFunc(maps.Keys(contents), kernel.Key.Compare) {
		n, ok := layouts[contents[k]]
		if !ok {
			n = int32(len(layouts))
			layouts[contents[k]] = n
		}
		a.index[k.Canonical()] = len(a.keys)
		a.keys, a.layoutOf = append(a.keys, k), append(a.layoutOf, n)
	}
	return a
}

// TypesOf returns the types of a BTF as Write encodes them.
func TypesOf(b *btf.BTF) []*canonical.Type {
	var types []*canonical.Type
	for id := btf.TypeID(1); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		c := canonical.Read(&t, func(id btf.TypeID) int { return int(id) - 1 }) // void is -1 in canonical, too
		types = append(types, &c)
	}
	return types
}
