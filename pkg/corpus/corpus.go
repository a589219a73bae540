// SPDX-License-Identifier: Apache-2.0

// Package corpus reads the kernels that btfgen reads: single files, directories,
// BTFHub's trees, packages and images of distributions, .btfc files, and the running
// kernel. It finds out which kernel a file is, decompresses it, and pairs kernels
// and modules.
//
// With packages relolog, minimize and archive it does in a Go program what
// 'btfgen generate' does. The example shows that.
package corpus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/core/facade"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Options select kernels and modules. The zero value selects all.
type Options struct {
	// Select keeps the kernels that any of these selectors matches, all if there are
	// none; Exclude then drops those that any of its selectors matches. A selector is as
	// for --select of btfgen: "debian>=11,x86_64".
	Select, Exclude []string
	// Modules are names of kernel modules, as for --modules of btfgen: "nf_conntrack,btrfs",
	// "all" or "none". "" is "all".
	Modules string
}

// Kernel is one kernel of a corpus.
type Kernel struct {
	Key    kernel.Key // read from the path, or else from the content; its fields are "" where neither has them
	Name   string     // the key if it is known, else the path
	Path   string     // the file, followed by "!member" for each container that it is in
	Target *relolog.Target
}

// Kernels yields the kernels of sources, which are files and directories, in the
// order of their paths. The Target of a kernel is valid until the next iteration;
// the other fields stay. Of several files with one key it yields the first.
//
// A file that is damaged is yielded as an error with a nil kernel, and iteration goes
// on, as it does for modules that do not fit their kernel. A context that is done, an
// option that cannot be parsed, a source that cannot be read, and a corpus without any
// kernel are the last thing that is yielded. The iterator may be used several times,
// each on one goroutine; it reads the sources again.
func Kernels(ctx context.Context, sources []string, opts Options) iter.Seq2[*Kernel, error] {
	return func(yield func(*Kernel, error) bool) {
		c, err := open(ctx, sources, &opts)
		if err != nil {
			yield(nil, err)
			return
		}
		k := new(core.Target)
		for _, f := range c.Files {
			stopped := false
			err := f.Read(ctx, func(it *corpus.Kernel) error {
				if err := it.Load(ctx, k, it.Name); err != nil {
					return err
				}
				if !yield(&Kernel{it.Key, it.Name, it.Path, facade.NewTarget(k).(*relolog.Target)}, nil) {
					stopped = true
					return errStopped
				}
				return nil
			})
			if stopped || err != nil && !yield(nil, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// errStopped ends reading because the caller wants no more kernels.
var errStopped = errors.New("stopped")

func open(ctx context.Context, sources []string, o *Options) (*corpus.Corpus, error) {
	opts := corpus.Options{}
	var err error
	for _, text := range []struct {
		from []string
		to   *[]selection.Selector
	}{{o.Select, &opts.Select}, {o.Exclude, &opts.Exclude}} {
		for _, t := range text.from {
			s, err := selection.Parse(t)
			if err != nil {
				return nil, fmt.Errorf("selector %q: %w", t, err)
			}
			*text.to = append(*text.to, s)
		}
	}
	if o.Modules != "" {
		if opts.Modules, err = selection.ParseModules(o.Modules); err != nil {
			return nil, fmt.Errorf("modules %q: %w", o.Modules, err)
		}
	}
	c, err := corpus.Open(ctx, slices.Clone(sources), opts)
	if err != nil {
		return nil, err
	}
	return c, c.Distinct(ctx, 1)
}
