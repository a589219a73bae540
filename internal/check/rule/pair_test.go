// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/check/interp"
)

// pairOn is an object without relocations on a kernel, for loaders that open it, those of Loaders if none are given.
func pairOn(o *Object, k *Inventory, loaders ...Loader) *Pairing {
	if loaders == nil {
		loaders = Loaders()
	}
	if open := slices.DeleteFunc(slices.Clone(loaders), func(l Loader) bool { return len(o.Unopened(l)) > 0 }); len(open) > 0 {
		loaders = open
	}
	return NewPairing(o, k, Decisions{}, Loading{Loaders: loaders, SetsMap: func(string) bool { return false }})
}

// onCode explores the code of the program, and returns the findings on it.
func (e *Evaluation) onCode(ctx context.Context) (l []Finding) {
	for _, precise := range []bool{false, true} {
		in := e.Input()
		in.Settable, in.Precise = func(string) bool { return false }, precise
		l = nil
		add := func(f Finding) {
			if !slices.Contains(l, f) {
				l = append(l, f)
			}
		}
		if !e.JudgeCode(interp.Explore(ctx, e.o.Code, e.pr, &in), add) {
			break
		}
	}
	return l
}
