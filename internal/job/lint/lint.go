// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
)

// Config says what to look at.
type Config struct {
	Sweep walk.Config

	// Earlier is a listing of the corpus as it was; kernels that it has and the corpus lacks are
	// reported. Those that Selected does not want are not; it may be nil.
	Earlier  []Entry
	Selected func(*Entry) bool
}

// Finding is something wrong with one kernel or file.
type Finding struct {
	Severity Severity
	Code     Code
	Kernel   string // key, or path if there is none
	Path     string
	Detail   string // what the code does not say already
}

// Report is the outcome of a run.
type Report struct {
	Kernels    int       `json:"kernels"`    // read, damaged ones included
	Ignored    int       `json:"ignored"`    // files that have nothing to do with BTF, such as BTFHub's .failed and .hasbtf
	Unselected int       `json:"unselected"` // files that the selectors leave out
	Errors     int       `json:"errors"`
	Warnings   int       `json:"warnings"`
	Notes      int       `json:"notes"`
	Findings   []Finding `json:"-"` // the most serious first, then by code and kernel
}

// Run reads the whole corpus and reports what is wrong with it. It fails only if ctx ends.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	c := cfg.Sweep.Corpus
	// Each file's facts have their own place, so that workers need no lock.
	all := make([][]facts, len(c.Files))
	skipped, err := walk.Kernels(ctx, cfg.Sweep, func() *inspector { return &inspector{sources: c.Sources} },
		func(in *inspector, r walk.Rank, k *corpus.Kernel) error {
			all[r.File] = append(all[r.File], in.inspect(ctx, r, k))
			return nil
		})
	if err != nil {
		return nil, err
	}
	j := judge{rep: &Report{Ignored: c.Ignored, Unselected: c.Unselected, Findings: []Finding{}}}
	j.skipped(skipped)
	j.kernels(c, slices.Concat(all...))
	j.earlier(&cfg)
	j.finish()
	return j.rep, nil
}

// finish sorts and counts the findings.
func (j *judge) finish() {
	r := j.rep
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(rules[a.Code].place, rules[b.Code].place),
			cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Detail, b.Detail),
		)
	})
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			r.Errors++
		case Warning:
			r.Warnings++
		case Note:
			r.Notes++
		}
	}
}
