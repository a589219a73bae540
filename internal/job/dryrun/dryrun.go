// SPDX-License-Identifier: Apache-2.0

// Package dryrun makes the relocation logs of objects on the kernels of a corpus.
package dryrun

import (
	"context"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Config says what to run on what.
type Config struct {
	Objects []*core.Object // of either byte order, for any machines
	Corpus  *corpus.Corpus
	Jobs    int // objects at once, at least 1
}

// Run gives to log the log of each object on each kernel that it is for: kernels as the corpus has
// them, for each of them objects as they are given. skip is told what was left out: what the corpus skips,
// what cannot be read, and kernels and objects of which none is for the other. Both are called by
// the caller's goroutine. An error of log ends the run and is returned, and so does ctx.
func Run(ctx context.Context, cfg Config, log func(*relo.Log) error, skip func(*corpus.Error)) error {
	r := &run{Config: cfg, log: log, skip: skip, met: make([]bool, len(cfg.Objects))}
	r.left(cfg.Corpus.Skipped)
	var scratch corpus.Scratch
	for _, f := range cfg.Corpus.Files {
		var failed error
		err := f.Read(ctx, &scratch, func(k *corpus.Kernel) error {
			failed = r.kernel(ctx, k)
			return failed
		})
		if failed != nil || ctx.Err() != nil {
			return err
		}
		r.left(corpus.Errors(err))
	}
	for i, met := range r.met {
		if !met {
			skip(cfg.Corpus.Unmet(cfg.Objects[i].Name()))
		}
	}
	return nil
}

// runObject is core.Run, but for a test that has it panic.
var runObject = core.Run

type run struct {
	Config
	log  func(*relo.Log) error
	skip func(*corpus.Error)
	met  []bool // the object has met a kernel that it is for
}

func (r *run) left(skipped []*corpus.Error) {
	for _, e := range skipped {
		r.skip(e)
	}
}

// kernel runs all objects on one kernel.
func (r *run) kernel(ctx context.Context, k *corpus.Kernel) error {
	target := new(core.Kernel)
	if err := k.Load(ctx, target, k.Name); err != nil {
		r.skip(&corpus.Error{Path: k.Name, Err: err})
		return nil
	}
	logs, defects := make([]*relo.Log, len(r.Objects)), make([]error, len(r.Objects))
	err := workers.Each(ctx, r.Jobs, len(r.Objects), func(i int) (err error) {
		if !r.Objects[i].IsFor(target) {
			return nil
		}
		defects[i] = workers.Catch(ctx, func() { logs[i], err = runObject(ctx, r.Objects[i], target) })
		return err
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		r.skip(&corpus.Error{Path: k.Name, Err: err})
		return nil
	}
	met := false
	for i, log := range logs {
		if d := defects[i]; d != nil {
			met, r.met[i] = true, true
			r.skip(&corpus.Error{Path: r.Objects[i].Name() + " on " + k.Name, Err: d})
		}
		if log == nil {
			continue
		}
		met, r.met[i] = true, true
		if err := r.log(log); err != nil {
			return err
		}
	}
	if !met {
		r.skip(&corpus.Error{Path: k.Name, Err: corpus.ErrNoObject})
	}
	return nil
}
