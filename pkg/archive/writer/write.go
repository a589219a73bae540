// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Write writes an archive of some kernels in any order. The BTFs must be what
// pkg/minimize emits: types that are not in its canonical order are refused,
// because they could not be had back byte for byte. That they can is checked
// here, for each. Equal inputs give equal bytes. Kernels with equal keys must
// have equal BTFs. Of info.Relocations it keeps what tells apart what the arches of
// these kernels were made for.
func Write(w io.Writer, info archive.Info, kernels []archive.Kernel) error {
	b, err := encode(info, kernels)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func encode(info archive.Info, kernels []archive.Kernel) ([]byte, error) {
	kernels, err := sortKernels(kernels)
	if err != nil {
		return nil, err
	}
	streams, err := encodeStreams(info, kernels)
	if err != nil {
		return nil, err
	}
	out, err := pack(streams)
	if err != nil {
		return nil, err
	}
	return out, verify(out, kernels)
}

// encodeStreams makes the streams for sorted kernels.
func encodeStreams(info archive.Info, kernels []archive.Kernel) (*[btfa.NumStreams][]byte, error) {
	layouts, of, err := distinctLayouts(kernels)
	if err != nil {
		return nil, err
	}
	e := encoder{names: make(map[string]uint64)}
	if err := e.meta(info, kernels); err != nil {
		return nil, err
	}
	e.kernels(kernels, of)
	p := newPool(layouts)
	e.pool(p)
	e.layouts(p)
	return &e.streams, nil
}

// sortKernels checks and sorts the kernels, and drops those that occur again.
func sortKernels(kernels []archive.Kernel) ([]archive.Kernel, error) {
	if len(kernels) > btfa.MaxKernels {
		return nil, fmt.Errorf("%d kernels, more than %d", len(kernels), btfa.MaxKernels)
	}
	seen := make(map[kernel.Key]int, len(kernels))
	var out []archive.Kernel
	for _, k := range kernels {
		if err := btfa.CheckKey(k.Key); err != nil {
			return nil, err
		}
		c := k.Key.Canonical()
		if i, ok := seen[c]; ok {
			if !bytes.Equal(out[i].BTF, k.BTF) {
				return nil, fmt.Errorf("kernel %s: two different BTFs", k.Key)
			}
			if btfa.KeyText(k.Key) < btfa.KeyText(out[i].Key) { // by an alias
				out[i].Key = k.Key
			}
			continue
		}
		seen[c] = len(out)
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b archive.Kernel) int { return cmp.Compare(btfa.KeyText(a.Key), btfa.KeyText(b.Key)) })
	return out, nil
}

// distinctLayouts returns the different BTFs in the order of the first kernel
// with each, and for each kernel which it has.
func distinctLayouts(kernels []archive.Kernel) (layouts []layoutDefs, of []int, err error) {
	seen := make(map[[sha256.Size]byte]int)
	shared := make(map[memory]int) // kernels mostly share the memory of their BTF
	for _, k := range kernels {
		if i, ok := shared[memoryOf(k.BTF)]; ok {
			of = append(of, i)
			continue
		}
		sum := sha256.Sum256(k.BTF)
		i, ok := seen[sum]
		if !ok {
			defs, order, err := define(k.BTF)
			if err != nil {
				return nil, nil, fmt.Errorf("kernel %s: %w", k.Key, err)
			}
			i = len(layouts)
			seen[sum] = i
			layouts = append(layouts, layoutDefs{defs, order == binary.BigEndian})
		}
		shared[memoryOf(k.BTF)] = i
		of = append(of, i)
	}
	return layouts, of, nil
}

// memory is where a slice is. Slices of the same memory have the same content.
type memory struct {
	start *byte
	len   int
}

func memoryOf(b []byte) memory { return memory{unsafe.SliceData(b), len(b)} }

var errNotCanonical = errors.New("BTF is not in the canonical form of minimized BTF")

// verify reads an archive back and compares.
func verify(out []byte, kernels []archive.Kernel) error {
	a, err := archive.Open(out)
	if err != nil {
		return fmt.Errorf("archive cannot be read back: %w", err)
	}
	read, err := a.Kernels()
	if err != nil {
		return fmt.Errorf("archive cannot be read back: %w", err)
	}
	if len(read) != len(kernels) {
		return fmt.Errorf("archive cannot be read back: %d kernels of %d", len(read), len(kernels))
	}
	kernels = slices.Clone(kernels)
	slices.SortFunc(kernels, func(a, b archive.Kernel) int { return a.Key.Compare(b.Key) })
	type pair struct{ read, written memory }
	equal := make(map[pair]bool)
	for i, k := range kernels {
		if read[i].Key != k.Key {
			return fmt.Errorf("kernel %s: is %s when read back", k.Key, read[i].Key)
		}
		p := pair{memoryOf(read[i].BTF), memoryOf(k.BTF)}
		if equal[p] {
			continue
		}
		if equal[p] = bytes.Equal(read[i].BTF, k.BTF); !equal[p] {
			return fmt.Errorf("kernel %s: %w", k.Key, errNotCanonical)
		}
	}
	return nil
}

// kernels writes keys, which are sorted: how much of the one before they
// share, which layout they have (0 is the next new one, 1 the newest, 2 the one
// before), and the rest of the text.
func (e *encoder) kernels(kernels []archive.Kernel, of []int) {
	e.put(btfa.StreamKernels, uint64(len(kernels)))
	last, layouts := "", 0
	for i, k := range kernels {
		s := btfa.KeyText(k.Key)
		n := 0
		for n < len(s) && n < len(last) && s[n] == last[n] {
			n++
		}
		e.put(btfa.StreamKernels, uint64(n), uint64(layouts-of[i]))
		e.putString(btfa.StreamKernels, s[n:])
		if of[i] == layouts {
			layouts++
		}
		last = s
	}
}
