// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
)

// Of a kernel of a .btfc file only the types that relocations can reach are read, a part that is quick to decode. The SHA-256 of each
// chunk that is read is checked. The minimized BTF is made from the part and proven against it. If the minimizer or the proof looks at a
// type that was left out, or anything else fails, the kernel is read as a whole. Kernels with equal parts share the result.
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
	whole  bool       // the part does not do, so every kernel is read as a whole
}

// outcome returns the shared result for kernels with the same machine as f, and the same data.
func (r *run) outcome(f *corpus.File, data ...[]byte) *outcome {
	h := sha256.New()
	h.Write(append([]byte(f.Key.Canonical().Arch), 0))
	for _, d := range data {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(d))))
		h.Write(d)
	}
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
	var identity [][]byte
	for _, s := range e.Sums() {
		identity = append(identity, s[:])
	}
	same := w.outcome(f, identity...)
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
	k.Key, k.Name, k.Path, k.SourceSize = f.Key, f.Key.String(), f.Path, f.Size
	k.from, k.Sources, k.byFile, k.Shared = f, sums, !f.Key.Known(), shared
	return true, w.add(k)
}

// part reads and minimizes the part of a kernel, unless one with the same part was processed before. It returns nil if the kernel has to be
// read as a whole.
func (w *worker) part(ctx context.Context, f *corpus.File) (k *Kernel, shared bool) {
	var same *outcome
	var size int64
	k = w.only(ctx, func(ctx context.Context, yield func(*corpus.Kernel) error) error {
		return f.ReadPart(ctx, func(it *corpus.Kernel) error {
			data := [][]byte{it.BTF}
			for _, m := range it.Modules {
				data = append(data, []byte(m.Name), m.BTF)
			}
			size, same = it.PartOf, w.outcome(f, data...)
			same.mu.Lock()
			if same.kernel != nil || same.whole {
				return nil
			}
			return yield(it)
		})
	})
	if same == nil {
		return nil, false
	}
	defer same.mu.Unlock()
	switch {
	case same.kernel != nil:
		other := *same.kernel
		other.RawSize = size
		return &other, true
	case k == nil:
		same.whole = true
	default:
		w.mu.Lock()
		w.share(k)
		w.mu.Unlock()
		same.kernel = k
	}
	return k, false
}

// only returns the result for the only kernel that a reader yields, or nil after any error.
func (w *worker) only(ctx context.Context, read reader) *Kernel {
	kernels, errs := w.read(ctx, read)
	if len(errs) > 0 || len(kernels) != 1 {
		return nil
	}
	return &kernels[0]
}
