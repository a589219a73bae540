// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/btfgen/btfgen/internal/workers"
)

// Parsed is one object of several files.
type Parsed[T any] struct {
	Object     // without data if the file could not be read
	File   int // index of the file
	Value  T
	Err    error // why there is no value
}

// Stdin is the path of standard input.
const Stdin = "-"

// ParseFiles reads files as [ReadFile] does and parses every object in them, on all CPUs. The results are in order of the
// files and of the objects in them; a file that cannot be read is one result with an error. So is an object or file whose
// parsing panics. ParseFiles fails only if ctx ends.
//
// Several goroutines call parse. name is the base name of the file, or its path if an earlier file has that name, or "stdin";
// then "!" and the object's own name, if it has one.
func ParseFiles[T any](ctx context.Context, paths []string, parse func(name string, data []byte) (T, error)) ([]Parsed[T], error) {
	files := make([][]Object, len(paths))
	errs := make([]error, len(paths))
	err := parallel(ctx, len(paths), func(i int) {
		if d := workers.Catch(ctx, func() { files[i], errs[i] = ReadFile(paths[i]) }); d != nil {
			errs[i] = fmt.Errorf("%s: %w", paths[i], d)
		}
	})
	if err != nil {
		return nil, err
	}
	var out []Parsed[T]
	var names []string // of out
	taken := make(map[string]bool)
	for i, p := range paths {
		if errs[i] != nil {
			out, names = append(out, Parsed[T]{File: i, Err: errs[i]}), append(names, "")
		}
		file := filepath.Base(p)
		switch {
		case p == Stdin:
			file = "stdin"
		case taken[file]:
			file = p
		}
		for _, o := range files[i] {
			taken[file] = true
			name := file
			if o.Name != "" {
				name += "!" + o.Name
			}
			out, names = append(out, Parsed[T]{Object: o, File: i}), append(names, name)
		}
	}
	return out, parallel(ctx, len(out), func(i int) {
		o := &out[i]
		if o.Err != nil {
			return
		}
		if d := workers.Catch(ctx, func() { o.Value, o.Err = parse(names[i], o.Data) }); d != nil {
			o.Err = fmt.Errorf("%s: %w", names[i], d)
		}
	})
}

// parallel calls do for each of 0 to n-1, on all CPUs, unless ctx ends.
func parallel(ctx context.Context, n int, do func(i int)) error {
	return workers.Each(ctx, runtime.GOMAXPROCS(0), n, func(i int) error {
		do(i)
		return nil
	})
}
