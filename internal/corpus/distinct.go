// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Second returns the error for a kernel whose key another one has. key names the kernel, owner is the path of the other one, and same says
// whether the BTF of both is the same.
func Second(key, owner string, same bool) error {
	if same {
		return again(key, owner)
	}
	return fmt.Errorf("%w is %s: %s", ErrTaken, key, owner)
}

// Distinct keeps one file for each key, the first. The others move to Skipped, with the error of [Second]. It reads only files that share
// a key, with up to jobs workers. Files that are damaged, or whose keys are known only after reading, are kept. It must be called before
// c is used otherwise.
func (c *Corpus) Distinct(ctx context.Context, jobs int) error {
	count := make(map[kernel.Key]int)
	for _, f := range c.Files {
		count[f.Key]++
	}
	type sum = [sha256.Size]byte
	sums := make([]sum, len(c.Files)) // zero if the kernel is the only one, or damaged
	err := workers.Each(ctx, jobs, len(c.Files), func(i int) error {
		if f := c.Files[i]; f.Key.Known() && count[f.Key] > 1 {
			sums[i] = f.btfSum(ctx)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	var kept []*File
	first := make(map[kernel.Key]int)
	for i, f := range c.Files {
		owner, again := first[f.Key]
		switch {
		case sums[i] == sum{}:
			kept = append(kept, f)
		case !again:
			first[f.Key] = i
			kept = append(kept, f)
		default:
			c.seconds = append(c.seconds, f)
			c.Skipped = append(c.Skipped, &Error{Path: f.Path, Err: Second(f.Key.String(), c.Files[owner].Path, sums[i] == sums[owner])})
		}
	}
	c.Files = kept
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

// btfSum returns the SHA-256 of the BTF of the file's only kernel. It is zero if the file has an error or other kernels.
func (f *File) btfSum(ctx context.Context) (sum [sha256.Size]byte) {
	if f.btfc != nil {
		return f.btfc.entryOf().Sum
	}
	n := 0
	err := f.Read(ctx, func(k *Kernel) error {
		n++
		if sum = sha256.Sum256(k.BTF); k.Key != f.Key {
			n++
		}
		return nil
	})
	if n != 1 || err != nil {
		sum = [sha256.Size]byte{}
	}
	return sum
}
