// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/minimize"
)

// Many kernels of a corpus in one file have the same minimized BTF, because the types that relocations look at are the same. The part of a kernel with
// these types is quick to read. The first kernel with a given part is also read as a whole: its SHA-256 is compared, and the minimized BTF is made of, and
// proven against, all of it. Other kernels with that part share the outcome.
//
// A manifest vouches for the SHA-256 of every kernel. So a run that notes these reads every kernel as a whole, and only kernels with the same SHA-256
// share an outcome.

// partsFor returns the reader of the parts that relocations look at, or nil if kernels have to be read as a whole.
func partsFor(cfg *Config) *corpus.Parts {
	if cfg.Hash || len(cfg.Options.Keep.Patterns()) > 0 {
		return nil
	}
	reach := make(map[string]btf.Reach)
	for _, o := range cfg.Objects {
		if !o.Reach(reach) {
			return nil
		}
	}
	return corpus.NewParts(btfc.NewQuery(reach))
}

// outcome is what was made of the first of the kernels that are known to give the same.
type outcome struct {
	mu     sync.Mutex // held while that kernel is processed
	kernel *Kernel    // nil if there is none yet
	apart  bool       // its part does not decide what the whole gives, so the others are processed one by one
}

// outcome returns the outcome for kernels of the machine of f whose BTF, or part, or SHA-256 is data.
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

// packed processes the kernel of a corpus in one file. It returns false if the file has to be read to know what becomes of it, which also gives the reason
// where something is wrong with it.
func (w *worker) packed(ctx context.Context, f *corpus.File, sums [][sha256.Size]byte) (done bool, err error) {
	e := f.Entry()
	if e == nil || w.Keyed && !findable(f.Key) {
		return false, nil
	}
	same := w.outcome(f, e.Sum[:])
	same.mu.Lock()
	defer same.mu.Unlock()
	shared := same.kernel != nil
	if !shared {
		if w.parts != nil {
			same.kernel, shared = w.part(ctx, f)
		} else {
			same.kernel = w.process(ctx, f, f.Read)
		}
	}
	if same.kernel == nil {
		return false, nil
	}
	k := *same.kernel
	k.Key, k.Name, k.Path, k.SourceSize, k.RawSize = f.Key, f.Key.String(), f.Path, f.Size, e.Size
	k.from, k.Sources, k.byFile, k.Shared = f, sums, !f.Key.Known(), shared
	return true, w.add(k)
}

// part returns what becomes of the kernel of a file whose part was read, or nil, and whether another kernel with the same part was processed before.
func (w *worker) part(ctx context.Context, f *corpus.File) (k *Kernel, shared bool) {
	var same *outcome
	k = w.process(ctx, f, func(ctx context.Context, s *corpus.Scratch, yield func(*corpus.Kernel) error) error {
		return w.parts.Read(ctx, f, s, func(it *corpus.Kernel) error {
			same = w.outcome(f, it.BTF)
			same.mu.Lock()
			if shared = same.kernel != nil; shared || same.apart {
				return nil
			}
			return yield(it)
		})
	})
	if same == nil {
		return nil, false
	}
	defer same.mu.Unlock()
	if shared {
		return same.kernel, true
	}
	whole := w.process(ctx, f, func(ctx context.Context, s *corpus.Scratch, yield func(*corpus.Kernel) error) error {
		return w.parts.Whole(ctx, f, s, yield)
	})
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

// process returns what becomes of the only kernel that read yields, or nil if anything goes wrong.
func (w *worker) process(ctx context.Context, f *corpus.File, read func(context.Context, *corpus.Scratch, func(*corpus.Kernel) error) error) (k *Kernel) {
	start, busy := time.Now(), time.Duration(0)
	err := read(ctx, &w.scratch, func(it *corpus.Kernel) (err error) {
		began := time.Now()
		defer func() { busy = time.Since(began) }()
		if k, err = w.kernel(ctx, it); errors.Is(err, minimize.ErrNoObject) {
			err = nil
		}
		return err
	})
	w.stages.Read += time.Since(start) - busy
	if err != nil {
		return nil
	}
	return k
}

// equal reports whether two kernels gave the same minimized BTF and the same decisions.
func (k *Kernel) equal(o *Kernel) bool {
	return bytes.Equal(k.BTF, o.BTF) && k.Machine == o.Machine && k.Resolved == o.Resolved && slices.Equal(k.issues, o.issues)
}
