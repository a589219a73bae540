// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"fmt"
)

// StreamSize is what one sort of value takes in the chunks of a kernel.
type StreamSize struct {
	Name   string
	Plain  int // bytes before compression
	Packed int // bytes when compressed alone, which is about its share
}

// Sizes returns what the bytes of kernel i of a file are spent on.
func (m *Maker) Sizes(ctx context.Context, f *File, i int) (sizes []StreamSize, err error) {
	e := &f.entries[i]
	if c := e.chunks[partBTF]; e.Plain {
		sizes = append(sizes, StreamSize{"kept as bytes", int(c.size), int(c.packed)})
	} else {
		payload, err := f.read(ctx, c, nil)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", e.Key, err)
		}
		streams, err := split(payload)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", e.Key, err)
		}
		for i := range streams {
			plain := streams[i].Rest()
			packed, _, err := m.pack(plain)
			if err != nil {
				return nil, err
			}
			if n := len(sizes); n == 0 || sizes[n-1].Name != streamTexts[i] {
				sizes = append(sizes, StreamSize{Name: streamTexts[i]})
			}
			last := &sizes[len(sizes)-1]
			last.Plain += len(plain)
			last.Packed += len(packed)
		}
	}
	for p, name := range [numParts]string{partModules: "modules", partExtras: "configuration and symbols"} {
		if c := e.chunks[p]; name != "" && e.has(part(p)) {
			sizes = append(sizes, StreamSize{name, int(c.size), int(c.packed)})
		}
	}
	return sizes, ctx.Err()
}
