// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Reach finds out which poisoned relocations the verifier can reach, and which ones programs guard. It fills Reached and
// Guarded of the report of a run with cfg. objects are those of cfg that can be analysed. Kernels with poisoned relocations
// are read once more; a kernel that cannot be analysed is in neither list. The only error is ctx's.
func Reach(ctx context.Context, cfg *Config, objects []*check.Object, rep *Report) error {
	wanted := make(map[string]bool) // kernels and objects
	for _, u := range rep.Unresolved {
		if u.Result == relo.Poisoned {
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
	verdict, err := check.Run(ctx, check.Config{
		Corpus:  &corpus.Corpus{Files: slices.DeleteFunc(slices.Clone(cfg.Corpus.Files), func(f *corpus.File) bool { return !files[f] })},
		Objects: slices.DeleteFunc(slices.Clone(objects), func(o *check.Object) bool { return !wanted[o.Name()] }),
		Jobs:    cfg.Jobs,
	})
	if err != nil {
		return err
	}
	// use is a relocation of an object on a kernel, or with an empty relo the object on the kernel.
	type use struct{ object, relo, kernel string }
	analysed, reached := make(map[use]bool), make(map[use]bool)
	for _, p := range verdict.Programs {
		for k, s := range p.Status {
			if s != check.Other {
				analysed[use{p.Object, "", verdict.Kernels[k].Name}] = true
			}
		}
		for _, f := range p.Findings {
			if f.Relocation == "" || f.Status <= check.Other {
				continue
			}
			for _, k := range f.Kernels {
				reached[use{p.Object, f.Relocation + " " + f.Subject, verdict.Kernels[k].Name}] = true
			}
		}
	}
	for i := range rep.Unresolved {
		u := &rep.Unresolved[i]
		for _, k := range u.Kernels {
			switch {
			case u.Result != relo.Poisoned || !analysed[use{u.Object, "", k}]:
			case reached[use{u.Object, u.Relo, k}]:
				u.Reached = append(u.Reached, k)
			default: // also if the relocation is in no program
				u.Guarded = append(u.Guarded, k)
			}
		}
	}
	return nil
}
