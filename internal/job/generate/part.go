// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
)

// Many kernels of a .btfc file have the same minimized BTF, because the types that relocations can reach are the same. These
// types, a part of the kernel, are quick to read. Kernels with equal parts share the result of the first: it is read as a
// whole, its SHA-256 is checked, and its minimized BTF is made from, and proven against, all of its types.
//
// A manifest vouches for the SHA-256 of every kernel. A run that writes one reads every kernel as a whole, and only kernels
// with the same SHA-256 share a result.

// readParts lets the corpus read the types that relocations can reach. It returns false if kernels have to be read as a whole.
func readParts(cfg *Config) bool {
	if cfg.Hash || len(cfg.Options.Keep.Patterns()) > 0 {
		return false
	}
	reach := make(map[string]btf.Reach)
	for _, o := range cfg.Objects {
		if !o.Reach(reach) {
			return false
		}
	}
	cfg.Corpus.Query(btfc.NewQuery(reach))
	return true
}

// outcome is the result that equal kernels share.
type outcome struct {
	mu     sync.Mutex // held while the first of them is processed
	kernel *Kernel    // nil before that
	apart  bool       // the part gave another result than the whole, so nothing is shared
}

// outcome returns the shared result for kernels with the same machine as f, and the same part or SHA-256, data.
func (r *run) outcome(f *corpus.File, data []byte) *outcome {
	h := sha256.New()
	h.Write(append([]byte(f.Key.Canonical().Arch), 0))
	h.Write(data)
	id := [sha256.Size]byte(h.Sum(nil))
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.outcomes[id]
	if o == nil {
		o = new(outcome)
		r.outcomes[id] = o
	}
	return o
}

// packed processes a kernel of a .btfc file. It returns false for other files, and after any error: reading the file as
// usual then reports it.
func (w *worker) packed(ctx context.Context, f *corpus.File, sums []Sum) (done bool, err error) {
	e := f.Entry()
	if e == nil {
		return false, nil
	}
	same := w.outcome(f, e.Sum[:])
	same.mu.Lock()
	defer same.mu.Unlock()
	shared := same.kernel != nil
	switch {
	case shared:
	case !w.parts:
		same.kernel = w.only(ctx, f.Read)
	default:
		same.kernel, shared = w.part(ctx, f)
	}
	if same.kernel == nil {
		return false, nil
	}
	k := *same.kernel
	k.Key, k.Name, k.Path, k.SourceSize, k.RawSize = f.Key, f.Key.String(), f.Path, f.Size, e.Size
	k.from, k.Sources, k.byFile, k.Shared = f, sums, !f.Key.Known(), shared
	return true, w.add(k)
}

// part reads the part of a kernel, and the whole kernel unless one with the same part was processed before. It returns nil
// after any error.
func (w *worker) part(ctx context.Context, f *corpus.File) (k *Kernel, shared bool) {
	var same *outcome
	k = w.only(ctx, func(ctx context.Context, yield func(*corpus.Kernel) error) error {
		return f.ReadPart(ctx, func(it *corpus.Kernel) error {
			same = w.outcome(f, it.BTF)
			same.mu.Lock()
			if same.kernel != nil || same.apart {
				return nil
			}
			return yield(it)
		})
	})
	if same == nil {
		return nil, false
	}
	defer same.mu.Unlock()
	if same.kernel != nil {
		return same.kernel, true
	}
	whole := w.only(ctx, f.Read)
	switch {
	case whole == nil || same.apart:
	case k == nil || !k.equal(whole):
		same.apart = true
	default:
		w.mu.Lock()
		w.share(whole)
		w.mu.Unlock()
		same.kernel = whole
	}
	return whole, false
}

// only returns the result for the only kernel that a reader yields, or nil after any error.
func (w *worker) only(ctx context.Context, read reader) *Kernel {
	kernels, errs := w.read(ctx, read)
	if len(errs) > 0 || len(kernels) != 1 {
		return nil
	}
	return &kernels[0]
}

// equal reports whether two kernels have the same minimized BTF and the same decisions.
func (k *Kernel) equal(o *Kernel) bool {
	return bytes.Equal(k.BTF, o.BTF) && k.Machine == o.Machine && k.Resolved == o.Resolved &&
		slices.EqualFunc(k.issues, o.issues, func(a, b *Issue) bool { return *a == *b })
}
