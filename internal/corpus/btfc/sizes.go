// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"fmt"
)

// StreamSize is what one sort of thing takes in the chunk of a kernel.
type StreamSize struct {
	Name   string
	Plain  int // bytes before compression
	Packed int // bytes when compressed alone, which is about its share
}

// Sizer tells what the bytes of kernels are spent on. It is for one goroutine at a time.
type Sizer struct{ m *Maker }

// NewSizer returns a sizer.
func NewSizer() (*Sizer, error) {
	m, err := NewMaker()
	return &Sizer{m}, err
}

// Sizes returns what the bytes of kernel i are spent on. What it is encoded against is not read.
func (s *Sizer) Sizes(ctx context.Context, f *File, i int) ([]StreamSize, error) {
	e := &f.entries[i]
	var sizes []StreamSize
	add := func(name string, plain []byte) error {
		packed, _, err := s.m.pack(plain)
		if n := len(sizes) - 1; n >= 0 && sizes[n].Name == name {
			sizes[n].Plain += len(plain)
			sizes[n].Packed += len(packed)
		} else {
			sizes = append(sizes, StreamSize{name, len(plain), len(packed)})
		}
		return err
	}
	offset, packed := e.chunk()
	if e.Plain {
		sizes = append(sizes, StreamSize{"kept as bytes", int(e.payload), int(packed)})
	} else {
		payload, err := f.chunk(ctx, offset, packed, e.payload, nil)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", e.Key, err)
		}
		streams, err := split(payload)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", e.Key, err)
		}
		for i := range streams {
			if err := add(streamTexts[i], streams[i].Rest()); err != nil {
				return nil, err
			}
		}
	}
	if e.Modules > 0 {
		sizes = append(sizes, StreamSize{"modules", int(e.modules), int(e.ModulesPacked)})
	}
	if e.hasExtras() {
		sizes = append(sizes, StreamSize{"configuration and symbols", int(e.Config + e.Symbols), int(e.ExtrasPacked)})
	}
	return sizes, ctx.Err()
}
