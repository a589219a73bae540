// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ErrAgain is the cause for a kernel that is left out because the same BTF has its key already.
var ErrAgain = errors.New("again")

// Second returns the error for a kernel whose key another one has. key names the kernel, owner is the path of the other one, and same says
// whether the BTF of both is the same.
func Second(key, owner string, same bool) error {
	if same {
		return fmt.Errorf("is %s %w: %s", key, ErrAgain, owner)
	}
	return fmt.Errorf("%w is %s: %s", ErrTaken, key, owner)
}

// Distinct keeps one file for each key. The first file decides the BTF; of the files with the same BTF, the one with the most modules is
// kept. The others move to Skipped, with the error of [Second]. It reads only files that share a key, with up to jobs workers. Files
// that are damaged, or whose keys are known only after reading, are kept. It must be called before c is used otherwise.
func (c *Corpus) Distinct(ctx context.Context, jobs int) error {
	files := make(map[kernel.Key][]*File)
	for _, f := range c.Files {
		if f.Key.Known() {
			files[f.Key] = append(files[f.Key], f)
		}
	}
	maps.DeleteFunc(files, func(_ kernel.Key, all []*File) bool { return len(all) == 1 })
	again := slices.Concat(slices.Collect(maps.Values(files))...)
	contents := make([]content, len(again))
	err := workers.Each(ctx, jobs, len(again), func(i int) error {
		contents[i] = again[i].content(ctx, "")
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	of := make(map[*File]content)
	for i, f := range again {
		of[f] = contents[i]
	}
	drop := make(map[*File]bool)
	for key, all := range files {
		all = slices.DeleteFunc(all, func(f *File) bool { return !of[f].known })
		if len(all) < 2 {
			continue
		}
		owner := all[0]
		for _, f := range all[1:] {
			if of[f].sum == of[owner].sum && of[f].modules > of[owner].modules {
				owner = f
			}
		}
		for _, f := range all {
			if f != owner {
				drop[f] = true
				c.seconds = append(c.seconds, f)
				c.Skipped = append(c.Skipped, &Error{Path: f.Path, Err: Second(key.String(), owner.Path, of[f].sum == of[owner].sum)})
			}
		}
	}
	c.Files = slices.DeleteFunc(c.Files, func(f *File) bool { return drop[f] })
	slices.SortFunc(c.Skipped, (*Error).Compare)
	return nil
}

// Paths returns all files with kernels or modules, including those that Distinct left out.
func (c *Corpus) Paths() (paths []string) {
	for _, f := range slices.Concat(c.Files, c.seconds) {
		paths = append(paths, f.Paths()...)
	}
	return paths
}

// content summarizes a kernel.
type content struct {
	sum     [sha256.Size]byte // of the BTF
	modules int
	known   bool
}

// content summarizes the kernel at a path of the file, or its only one. It is unknown if the file has an error.
func (f *File) content(ctx context.Context, path string) (c content) {
	if f.packed != nil {
		e := f.packed.entryOf()
		return content{e.Sum, e.Modules, true}
	}
	n := 0
	err := f.Read(ctx, func(k *Kernel) error {
		if path == "" || k.Path == path {
			n++
			c = content{sha256.Sum256(k.BTF), len(k.Modules), true}
			c.known = path != "" || k.Key == f.Key
		}
		return nil
	})
	c.known = c.known && n == 1 && err == nil
	return c
}

// SameContent reports whether two kernels, given by their files and paths, are known to have the same BTF.
func SameContent(ctx context.Context, a *File, pathOfA string, b *File, pathOfB string) bool {
	x, y := a.content(ctx, pathOfA), b.content(ctx, pathOfB)
	return x.known && y.known && x.sum == y.sum
}
