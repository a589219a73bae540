package embedded

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/btfgen/btfgen/internal/pool"
)

// Parsed is one object of several files.
type Parsed[T any] struct {
	Value T
	Data  []byte // that it was parsed from
	Err   error  // why there is no value
}

// ParseFiles reads files as [ReadFile] does and parses every object in them, on all CPUs. The results
// are in order of the files and of the objects in them; a file that cannot be read is one with an error.
//
// It fails only if ctx ends. parse is called by several goroutines. name is the base name of the file, or its path if an earlier one
// has that name, followed by "!" and the object's own name if it has one.
func ParseFiles[T any](ctx context.Context, paths []string, parse func(name string, data []byte) (T, error)) ([]Parsed[T], error) {
	files := make([][]Object, len(paths))
	errs := make([]error, len(paths))
	if err := parallel(ctx, len(paths), func(i int) { files[i], errs[i] = ReadFile(paths[i], 0) }); err != nil {
		return nil, err
	}
	var out []Parsed[T]
	var names []string // of out
	taken := make(map[string]bool)
	for i, p := range paths {
		if errs[i] != nil {
			out, names = append(out, Parsed[T]{Err: errs[i]}), append(names, "")
		}
		for _, o := range files[i] {
			name := filepath.Base(p)
			if taken[name] && o.Name == "" {
				name = p
			}
			if o.Name != "" {
				name += "!" + o.Name
			}
			taken[name] = true
			out, names = append(out, Parsed[T]{Data: o.Data}), append(names, name)
		}
	}
	err := parallel(ctx, len(out), func(i int) {
		if o := &out[i]; o.Err == nil {
			o.Value, o.Err = parse(names[i], o.Data)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// parallel calls do for each of 0 to n-1, on all CPUs, unless ctx ends.
func parallel(ctx context.Context, n int, do func(i int)) error {
	return pool.Each(ctx, runtime.GOMAXPROCS(0), n, func(i int) error {
		do(i)
		return nil
	})
}
