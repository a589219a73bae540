// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
)

// TemporaryFile is what NewFile does where there are no files in memory.
var TemporaryFile = temporaryFile

// Payload returns what Write compresses.
func Payload(ctx context.Context, info Info, kernels []Kernel) ([]byte, error) {
	kernels, err := sortKernels(kernels)
	if err != nil {
		return nil, err
	}
	streams, err := encodeStreams(ctx, info, kernels)
	if err != nil {
		return nil, err
	}
	return append(head(streams), slices.Concat(streams[:]...)...), nil
}

// TypesOf returns the types of a BTF as Write encodes them.
func TypesOf(b *btf.BTF) ([]*canonical.Type, error) {
	var types []*canonical.Type
	d := &definer{btf: b}
	for id := btf.TypeID(1); int(id) < b.NumTypes(); id++ {
		typ := b.Type(id)
		var refs []int
		n, err := d.node(typ, func(id btf.TypeID) ref {
			refs = append(refs, int(id)-1) // void is -1 in canonical, too
			return ref{}
		})
		if err != nil {
			return nil, err
		}
		types = append(types, &canonical.Type{
			Kind: n.kind, Flag: n.flag, Name: string(typ.Name()), Size: n.size, Fields: n.fields, Refs: refs, Copies: 1,
		})
	}
	return types, nil
}
