// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Taker adds kernels of another file to the file of a Writer.
type Taker struct {
	w  *Writer
	f  *File
	at map[int]int // numbers in the writer's file of the kernels that have the same chunks there
}

// From returns a Taker of kernels of f.
func (w *Writer) From(f *File) *Taker { return &Taker{w, f, make(map[int]int)} }

// Take adds kernel i with its chunks, whose SHA-256 it checks, without encoding it again. It returns false, and adds nothing, if they are encoded against those of a kernel that the
// Taker has not added before. If the file has the key already, the error is ErrOther. Like Plan, it is for one goroutine at a time.
func (t *Taker) Take(i int) (taken bool, err error) {
	w, from := t.w, t.f.entries[i]
	if _, ok := w.at[from.Key.Canonical()]; ok {
		return false, ErrOther
	}
	if w.Len() == limits.CorpusKernels {
		return false, &limits.Exceeded{Max: limits.CorpusKernels, What: "kernels"}
	}
	e := *from
	for p := range numParts {
		c := e.Chunks[p]
		if !e.has(p) || c.Parent < 0 {
			continue
		}
		parent, ok := t.at[c.Parent]
		if !ok {
			return false, nil
		}
		e.setParent(p, parent, w.file.entries)
	}
	w.mu.Lock()
	at := w.end
	w.end += e.Packed()
	w.mu.Unlock()
	for p := range e.Chunks {
		for _, f := range from.Chunks[p].frames() {
			if err := f.copy(io.NewOffsetWriter(w.spool, at), t.f.reader); err != nil {
				return false, from.wrap(context.Background(), f, err)
			}
			at += f.Packed
		}
	}
	e.setOffset(at - e.Packed())
	t.at[i] = w.Len()
	w.append(&e)
	return true, nil
}

// copy copies a frame, and checks its sum.
func (f *frame) copy(to io.Writer, from io.ReaderAt) error {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.NewSectionReader(from, f.offset, f.Packed))
	switch {
	case err != nil:
		return err
	case n < f.Packed:
		return btfa.ErrCut
	case n > 0 && Sum(sum.Sum(nil)) != f.Check:
		return errFrame
	}
	return nil
}

// Input returns kernel i as Prepare takes it, to be encoded anew.
func (f *File) Input(ctx context.Context, i int) (in Input, err error) {
	e := f.entries[i]
	in = Input{Key: e.Key, Made: e.Made, Shape: e.Shape, OwnBTF: e.OwnBTF}
	if in.BTF, err = f.BTF(ctx, i, nil); err == nil {
		in.Modules, err = f.Modules(ctx, i)
	}
	if err == nil {
		in.Extras, err = f.Extras(ctx, i)
	}
	return in, err
}

// Contents returns a sum of the keys and the contents of kernels in this order. It does not depend on how the file stores them, nor on other
// kernels. The contents are BTF and modules by the sums in the index, and configuration and symbols, which it reads.
func (f *File) Contents(ctx context.Context, kernels []int) (sum Sum, err error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, i := range kernels {
		e := f.entries[i]
		x, err := f.Extras(ctx, i)
		if err != nil {
			return sum, err
		}
		// An empty OwnBTF is left out, so that older files keep their sums.
		if err := enc.Encode(struct {
			Key             kernel.Key
			Size            int64
			Sum             Sum
			Made            Made
			Shape           Shape
			OwnBTF          OwnBTF `json:",omitzero"`
			Modules         int
			ModulesSum      Sum
			Config, Symbols Sum
		}{e.Key, e.Size, e.Sum, e.Made, e.Shape, e.OwnBTF, e.Modules, e.ModulesSum, sha256.Sum256(x.Config), sha256.Sum256(x.Symbols)}); err != nil {
			return sum, err
		}
	}
	h.Sum(sum[:0])
	return sum, nil
}
