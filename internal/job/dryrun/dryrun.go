// SPDX-License-Identifier: Apache-2.0

// Package dryrun makes the relocation logs of objects on the kernels of a corpus.
package dryrun

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Config configures a run.
type Config struct {
	Objects []*core.Object // objects in either byte order, for any machines
	Corpus  *corpus.Corpus
	Jobs    int // objects at once, at least 1
}

// Log is the relocation log of an object on a kernel.
type Log struct {
	Object, Kernel string
	Entries        iter.Seq[*relo.Entry] // each is valid until the next; they are made while they are read, once
}

// Run calls log with the log of each object on each kernel that it is for, in the order of the corpus, and for each kernel in the
// order of the objects. A log is valid until log returns. Run calls skipped for what could not be read, and for kernels and objects without a counterpart. Both
// are called in the caller's goroutine. Run returns an error of log, or ctx's, or one that no kernel could be read.
func Run(ctx context.Context, cfg Config, log func(Log) error, skipped func(*corpus.Error)) error {
	r := &run{Config: cfg, log: log, skip: skipped, used: make([]bool, len(cfg.Objects))}
	for _, o := range cfg.Objects {
		r.sets = append(r.sets, core.Alone(o))
	}
	for _, e := range cfg.Corpus.Skipped {
		skipped(e)
	}
	for _, f := range cfg.Corpus.Files {
		var failed error
		err := f.Read(ctx, func(k *corpus.Kernel) error {
			failed = r.kernel(ctx, k)
			return failed
		})
		if failed != nil || ctx.Err() != nil {
			return err
		}
		for _, e := range skip.Errors(err) {
			skipped(e)
		}
	}
	if !r.read {
		return errors.New("no kernel could be read")
	}
	for i, used := range r.used {
		if !used {
			skipped(cfg.Corpus.Unmet(cfg.Objects[i].Name()))
		}
	}
	return nil
}

// decide decides the relocations of the first object of a set; a test replaces it.
var decide = (*core.Set).Decide

type run struct {
	Config
	sets []func() *core.Set // each returns a set of one object
	log  func(Log) error
	skip func(*corpus.Error)
	used []bool // whether each object is for some kernel
	read bool   // some kernel
}

// kernel runs all objects on one kernel.
func (r *run) kernel(ctx context.Context, k *corpus.Kernel) error {
	target := new(core.Target)
	decided, defects := make([]*core.LibbpfDecider, len(r.Objects)), make([]error, len(r.Objects))
	err := k.Load(ctx, target, k.Name)
	if err == nil {
		err = workers.Each(ctx, r.Jobs, len(r.Objects), func(i int) (err error) {
			if r.Objects[i].IsFor(target) {
				defects[i] = workers.Catch(ctx, func() { decided[i], err = decide(r.sets[i](), ctx, target) })
			}
			return err
		})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.skip(&corpus.Error{Path: k.Name, Err: err})
		return nil
	}
	used := false
	r.read = true
	for i, l := range decided {
		if l == nil && defects[i] == nil {
			continue
		}
		used, r.used[i] = true, true
		name, d := r.Objects[i].Name(), defects[i]
		if d == nil {
			d = workers.Catch(ctx, func() { err = r.log(Log{name, k.Name, l.Entries(ctx, 0)}) })
		}
		decided[i] = nil // frees its memory
		if d != nil {
			r.skip(&corpus.Error{Path: name + " on " + k.Name, Err: d})
		} else if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	if !used {
		r.skip(&corpus.Error{Path: k.Name, Err: corpus.ErrNoObject})
	}
	return nil
}
