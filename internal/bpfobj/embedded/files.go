// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/workers"
)

// Parsed is one object of several files.
type Parsed[T any] struct {
	Object     // has no data if the file could not be read
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
	names := make([]string, len(paths))
	taken := make(map[string]bool)
	for i, p := range paths {
		names[i] = filepath.Base(p)
		switch {
		case p == Stdin:
			names[i] = "stdin"
		case taken[names[i]]:
			names[i] = p
		}
		taken[names[i]] = true
	}
	files := make([][]Parsed[T], len(paths))
	err := workers.Each(ctx, runtime.GOMAXPROCS(0), len(paths), func(i int) error {
		var objects []Object
		var err error
		if d := workers.Catch(ctx, func() { objects, err = ReadFile(paths[i]) }); d != nil {
			err = &bpfobj.Error{Object: paths[i], Err: d}
		}
		if err != nil {
			files[i] = []Parsed[T]{{File: i, Err: err}}
		}
		for _, o := range objects {
			p, name := Parsed[T]{Object: o, File: i}, names[i]
			if o.Name != "" {
				name += "!" + o.Name
			}
			if d := workers.Catch(ctx, func() { p.Value, p.Err = parse(name, o.Data) }); d != nil {
				p.Err = &bpfobj.Error{Object: name, Err: d}
			}
			files[i] = append(files[i], p)
		}
		return nil
	})
	return slices.Concat(files...), err
}
