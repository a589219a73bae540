// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/btfgen/btfgen/internal/btfc"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/unwrap"
	"github.com/btfgen/btfgen/pkg/minimize"
)

// Of kernels in a corpus in one file only what relocations look at is read. Neighbours mostly have the same of that, and what
// became of one of them became of all.

// partsFor returns what reads parts of kernels, nil if that would not do.
func partsFor(cfg *Config) *corpus.Parts {
	if len(cfg.Options.Keep.Patterns()) > 0 {
		return nil
	}
	reach := make(map[string]rawbtf.Reach)
	for _, o := range cfg.Objects {
		if !unwrap.Object(o).Reach(reach) {
			return nil
		}
	}
	return corpus.NewParts(btfc.NewQuery(reach))
}

// part does the kernel of a file by a part of its BTF, and reports whether it could. Where it fails for any reason, the
// whole tells that reason, or succeeds.
func (w *worker) part(ctx context.Context, f *corpus.File, sums [][sha256.Size]byte) (done bool, err error) {
	if w.parts == nil || w.Keyed && !findable(f.Key) {
		return false, nil
	}
	whole, ok := w.parts.Sum(f)
	if !ok {
		return false, nil
	}
	start, busy := time.Now(), time.Duration(0)
	var k *Kernel
	if k = w.again(f, identity(f, whole[:])); k != nil {
		k.from, k.Sources, k.byFile = f, sums, !f.Key.Known()
		return true, w.add(*k)
	}
	failed := w.parts.Read(ctx, f, &w.scratch, func(it *corpus.Kernel) error {
		began := time.Now()
		defer func() { busy = time.Since(began) }()
		k, err = w.known(ctx, f, it, identity(f, whole[:]))
		return nil
	})
	w.stages.Read += time.Since(start) - busy
	if failed != nil || err != nil && !errors.Is(err, minimize.ErrNoObject) {
		return false, nil
	}
	k.from, k.Sources, k.byFile = f, sums, !f.Key.Known()
	return true, w.add(*k)
}

// identity is what tells what becomes of a kernel: its BTF or what is read of it, and the machine.
func identity(f *corpus.File, data []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(append([]byte(f.Key.Canonical().Arch), 0))
	h.Write(data)
	return [sha256.Size]byte(h.Sum(nil))
}

// again returns what became of another kernel, as that of f, nil if there has not been one of this identity.
func (w *worker) again(f *corpus.File, id [sha256.Size]byte) *Kernel {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := w.same[id]
	if same == nil {
		return nil
	}
	k := *same
	k.Key, k.Name, k.Path, k.SourceSize = f.Key, f.Key.String(), f.Path, f.Size
	return &k
}

// known is kernel for what was read of one in part, unless that is known. whole is the identity of all of its BTF.
func (w *worker) known(ctx context.Context, f *corpus.File, it *corpus.Kernel, whole [sha256.Size]byte) (k *Kernel, err error) {
	part := identity(f, it.BTF)
	if k = w.again(f, part); k == nil {
		if k, err = w.kernel(ctx, it); err != nil && !errors.Is(err, minimize.ErrNoObject) {
			return k, err
		}
	}
	k.RawSize, k.Shared = it.FullSize, true
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.BTF != nil {
		w.share(k)
	}
	keep := *k
	w.same[part], w.same[whole] = &keep, &keep
	return k, err
}
