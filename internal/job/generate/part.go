// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
)

// Of a kernel of a .btfc file only the types that relocations can reach are read, a part that is quick to decode. The SHA-256 of each
// chunk that is read is checked. The minimized BTF is made from the part and proven against it. If the minimizer or the proof looks at a
// type that was left out, or anything else fails, the kernel is read as a whole. Kernels with equal parts share the result.
//
// A manifest has sums of the chunks that a result was made from, not of the kernel that the file claims they hold.

// readParts lets the corpus read the types that relocations can reach. It returns false if kernels have to be read as a whole.
func readParts(cfg *Config) bool {
	if len(cfg.Options.Keep.Patterns()) > 0 {
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

// keyOf returns the key for kernels with the same machine as f, and the same data.
func keyOf(f *corpus.File, data ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(append([]byte(f.Key.Canonical().Arch), 0))
	for _, d := range data {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(d))))
		h.Write(d)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// packed processes a kernel of a .btfc file. It returns false for other files, and for kernels that have to be read as usual, which reports
// any error.
func (w *worker) packed(ctx context.Context, f *corpus.File, sums []Sum) (done bool, err error) {
	e := f.Entry()
	if e == nil {
		return false, nil
	}
	var identity [][]byte
	if sums != nil { // a manifest vouches for these
		for _, s := range sums {
			identity = append(identity, s[:])
		}
	} else { // kernels with the same content may have other chunks
		for _, s := range e.Sums() {
			identity = append(identity, s[:])
		}
	}
	made, shared := w.same.Do(keyOf(f, identity...), func() *Kernel {
		if w.parts {
			return w.part(ctx, f)
		}
		kernels, errs := w.read(ctx, f.Read)
		if len(errs) > 0 || len(kernels) != 1 {
			return nil
		}
		return &kernels[0]
	})
	if made == nil {
		return false, nil
	}
	k := *made
	k.Key, k.Name, k.Path, k.SourceSize = f.Key, f.Key.String(), f.Path, f.Size
	k.from, k.Sources, k.byFile, k.Shared = f, sums, !f.Key.Known(), shared || k.Shared
	return true, w.add(k)
}

// part reads and minimizes the part of a kernel, unless one with the same part was processed before. It returns nil if the kernel has to be
// read as a whole.
func (w *worker) part(ctx context.Context, f *corpus.File) (k *Kernel) {
	start, busy := time.Now(), time.Duration(0)
	err := f.ReadPart(ctx, func(it *corpus.Kernel) error {
		began := time.Now()
		data := [][]byte{it.BTF}
		for _, m := range it.Modules {
			data = append(data, []byte(m.Name), m.BTF)
		}
		made, shared := w.equal.Do(keyOf(f, data...), func() *Kernel {
			k, err := w.kernel(ctx, it)
			if err != nil {
				return nil
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.share(k)
			return k
		})
		if made != nil {
			own := *made
			own.RawSize, own.Shared = it.PartOf, shared
			k = &own
		}
		busy += time.Since(began)
		return nil
	})
	w.spent("read", start.Add(busy))
	if err != nil {
		return nil
	}
	return k
}
