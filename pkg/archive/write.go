// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ErrNotCanonical is returned by [Write] for BTF that an archive cannot return byte
// for byte, because its types are not in the order and form of minimized BTF.
var ErrNotCanonical = errors.New("BTF is not in the canonical form of minimized BTF")

// ErrTooLarge is returned by [Write] for more kernels, objects or content than the
// format allows; docs/archive-format.md lists its limits.
var ErrTooLarge = errors.New("too large for an archive")

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, args...)...)
}

// Write writes an archive of kernels in any order. Their BTF must come from
// [github.com/btfgen/btfgen/pkg/minimize] or from another archive. Equal inputs give
// equal bytes. [Info.Canonical] returns the Info that Write writes.
//
// Write encodes the archive in memory, reads it back, and compares the BTF of each
// kernel. Then it calls w.Write once. It does not keep or change kernels and info. Its
// time grows about linearly with the size of the BTFs, and its memory with that of the
// different ones.
//
// The error is [ErrNotCanonical], [ErrTooLarge], that of the context or of w, or says
// which kernel, object or arch cannot be written and why: for example two different
// BTFs for one key, or a key without release or arch. w has no data unless the error is
// its own.
func Write(ctx context.Context, w io.Writer, info Info, kernels []Kernel) error {
	b, err := encode(ctx, info, kernels)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// encode cuts each BTF into definitions (define), collects the distinct ones (newPool),
// writes them as streams (encoder), compresses the streams (pack), and reads everything
// back (verify). A definition is a named type and the anonymous types inside it. It
// refers to other named types by name. So a struct that did not change stays the same
// definition when another one changes:
//
//	struct file   size 184: f_inode → pointer, f_path → struct path
//	struct path   size 16:  dentry → pointer
//	struct path   size 24:  dentry → pointer       (another variant)
//
// A layout, which is the BTF of one or more kernels, is a list of definitions. It is
// written as changes to an earlier layout. docs/archive-format.md specifies the format.
func encode(ctx context.Context, info Info, kernels []Kernel) ([]byte, error) {
	kernels, err := sortKernels(kernels)
	if err != nil {
		return nil, err
	}
	streams, layoutOf, err := encodeStreams(ctx, info, kernels)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := pack(streams)
	if err != nil {
		return nil, err
	}
	return out, verify(ctx, out, kernels, layoutOf)
}

// encodeStreams returns the streams for sorted kernels, and the layout of each kernel.
func encodeStreams(ctx context.Context, info Info, kernels []Kernel) (*[btfa.NumStreams][]byte, []int, error) {
	btfs, layoutOf, err := distinctBTFs(ctx, kernels)
	if err != nil {
		return nil, nil, err
	}
	e := encoder{names: make(map[string]uint64)}
	if err := e.meta(info, kernels); err != nil {
		return nil, nil, err
	}
	e.kernels(kernels, layoutOf)
	p, err := newPool(ctx, btfs)
	if err == nil {
		err = e.pool(ctx, p)
	}
	if err == nil {
		err = e.layouts(ctx, p)
	}
	return &e.streams, layoutOf, err
}

// sortKernels checks and sorts the kernels, and drops duplicates. Of several spellings
// of a key it keeps the first.
func sortKernels(kernels []Kernel) ([]Kernel, error) {
	if len(kernels) > btfa.MaxKernels {
		return nil, tooLarge("%d kernels, more than %d", len(kernels), btfa.MaxKernels)
	}
	for _, k := range kernels {
		if err := btfa.CheckKey(k.Key); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", btfa.KeyName(k.Key), err)
		}
	}
	kernels = slices.Clone(kernels)
	sort.SliceStable(kernels, func(i, j int) bool { return btfa.KeyText(kernels[i].Key) < btfa.KeyText(kernels[j].Key) })
	first := make(map[kernel.Key]Kernel, len(kernels))
	var out []Kernel
	for _, k := range kernels {
		f, ok := first[k.Key.Canonical()]
		switch {
		case !ok:
			first[k.Key.Canonical()] = k
			out = append(out, k)
		case !bytes.Equal(f.BTF, k.BTF):
			return nil, fmt.Errorf("kernel %s: two different BTFs", btfa.KeyName(k.Key))
		}
	}
	return out, nil
}

// distinctBTFs cuts the different BTFs into definitions, in the order of the first
// kernel with each. layoutOf has the number of each kernel's BTF.
func distinctBTFs(ctx context.Context, kernels []Kernel) (btfs []definitions, layoutOf []int, err error) {
	seen := make(map[string]int)
	for _, k := range kernels {
		i, ok := seen[string(k.BTF)]
		if !ok {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			defs, err := define(k.BTF)
			if err != nil {
				return nil, nil, fmt.Errorf("kernel %s: %w", btfa.KeyName(k.Key), err)
			}
			i = len(btfs)
			seen[string(k.BTF)] = i
			btfs = append(btfs, defs)
		}
		layoutOf = append(layoutOf, i)
	}
	return btfs, layoutOf, nil
}

// verify reads an archive back and compares it. layoutOf is the layout of each kernel.
func verify(ctx context.Context, out []byte, kernels []Kernel, layoutOf []int) error {
	a, err := Open(out)
	if errors.Is(err, errItems) {
		return tooLarge("%w", errItems)
	}
	if err == nil && a.Len() != len(kernels) {
		err = fmt.Errorf("%d kernels of %d", a.Len(), len(kernels))
	}
	if err != nil {
		return fmt.Errorf("archive cannot be read back: %w", err)
	}
	layouts := 0
	for i, k := range kernels {
		if a.keys[i] != k.Key || int(a.layoutOf[i]) != layoutOf[i] {
			return fmt.Errorf("kernel %s: archive cannot be read back: it has kernel %s with layout %d", btfa.KeyName(k.Key), btfa.KeyName(a.keys[i]), a.layoutOf[i])
		}
		if layoutOf[i] < layouts {
			continue
		}
		layouts++
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := a.pool.layoutBTF(layoutOf[i])
		switch {
		case err == errTypes || err == errContent:
			return tooLarge("kernel %s: %w", btfa.KeyName(k.Key), err)
		case err != nil:
			return fmt.Errorf("kernel %s: archive cannot be read back: %w", btfa.KeyName(k.Key), err)
		case !bytes.Equal(b, k.BTF):
			return fmt.Errorf("kernel %s: %w", btfa.KeyName(k.Key), ErrNotCanonical)
		}
	}
	return nil
}
