// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Reach tells the poisoned relocations that the verifier can get to from those that programs guard: it fills
// Reached and Guarded of the report that a run with cfg came to. objects are those of cfg that can be judged. Kernels with poisoned relocations
// are read once more; where that fails, neither list has them. The error is ctx's.
func Reach(ctx context.Context, cfg *Config, objects []*check.Object, rep *Report) error {
	wanted := make(map[string]bool) // kernels and objects
	for _, u := range rep.Unresolved {
		if u.Result == relolog.Poisoned {
			wanted[u.Object] = true
			for _, k := range u.Kernels {
				wanted[k] = true
			}
		}
	}
	files := make(map[*corpus.File]bool)
	for _, k := range rep.Kernels {
		if wanted[k.Name] {
			files[k.from] = true
		}
	}
	if len(files) == 0 || len(objects) == 0 {
		return ctx.Err()
	}
	some := &corpus.Corpus{}
	for _, f := range cfg.Corpus.Files {
		if files[f] {
			some.Files = append(some.Files, f)
		}
	}
	verdict, err := check.Run(ctx, check.Config{
		Corpus: some, Jobs: cfg.Jobs,
		Objects: slices.DeleteFunc(slices.Clone(objects), func(o *check.Object) bool { return !wanted[o.Name()] }),
	})
	if err != nil {
		return err
	}
	rep.reach(verdict)
	return nil
}

// use is a relocation of an object on a kernel.
type use struct{ object, relo, kernel string }

// reach sorts the kernels of poisoned relocations. A relocation of code that is in no program is out of reach.
func (r *Report) reach(verdict *check.Report) {
	reached, judged := make(map[use]bool), make(map[use]bool)
	for _, p := range verdict.Programs {
		for k, s := range p.Status {
			if s != check.Other {
				judged[use{object: p.Object, kernel: verdict.Kernels[k].Name}] = true
			}
		}
		for _, f := range p.Findings {
			if f.Topic != check.TopicCORE || f.Status <= check.Other {
				continue
			}
			for _, k := range f.Kernels {
				reached[use{p.Object, f.Subject, verdict.Kernels[k].Name}] = true
			}
		}
	}
	for i := range r.Unresolved {
		u := &r.Unresolved[i]
		for _, k := range u.Kernels {
			switch {
			case u.Result != relolog.Poisoned || !judged[use{object: u.Object, kernel: k}]:
			case reached[use{u.Object, u.Relo, k}]:
				u.Reached = append(u.Reached, k)
			default:
				u.Guarded = append(u.Guarded, k)
			}
		}
	}
}
