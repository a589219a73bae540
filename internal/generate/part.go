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
	start, busy := time.Now(), time.Duration(0)
	var k *Kernel
	failed := w.parts.Read(ctx, f, &w.scratch, func(it *corpus.Kernel) error {
		began := time.Now()
		defer func() { busy = time.Since(began) }()
		k, err = w.known(ctx, it)
		return nil
	})
	w.stages.Read += time.Since(start) - busy
	if failed != nil || err != nil && !errors.Is(err, minimize.ErrNoObject) {
		return false, nil
	}
	k.from, k.Sources, k.byFile = f, sums, !f.Key.Known()
	return true, w.add(*k)
}

// known is kernel for what was read of one in part. Nothing but that and its machine tells what becomes of it.
func (w *worker) known(ctx context.Context, it *corpus.Kernel) (*Kernel, error) {
	h := sha256.New()
	h.Write(append([]byte(it.Key.Canonical().Arch), 0))
	h.Write(it.BTF)
	sum := [sha256.Size]byte(h.Sum(nil))
	w.mu.Lock()
	same := w.same[sum]
	w.mu.Unlock()
	if same != nil {
		k := *same
		k.Key, k.Name, k.Path, k.SourceSize, k.RawSize = it.Key, it.Name, it.Path, it.SourceSize, it.FullSize
		return &k, nil
	}
	k, err := w.kernel(ctx, it)
	k.InPart = true
	if err == nil || errors.Is(err, minimize.ErrNoObject) {
		keep := *k
		w.mu.Lock()
		defer w.mu.Unlock()
		w.same[sum] = &keep
	}
	return k, err
}
