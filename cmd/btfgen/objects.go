package main

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/btfgen/btfgen/internal/embedded"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// objects is what the OBJECT arguments came to.
type objects struct {
	list []*relolog.Object // with relocations
	data [][]byte          // the ELF file of each
	bad  int               // left out, and reported
}

// readObjects reads the objects, and those embedded in executables. What
// cannot be used is reported and left out; nothing usable at all is an error.
func readObjects(paths []string, stderr io.Writer) (*objects, error) {
	if len(paths) == 0 {
		return nil, usagef("no BPF object given")
	}
	o := new(objects)
	o.bad = eachObject(paths, stderr, func(name string, data []byte) (*relolog.Object, error) {
		obj, err := relolog.ParseObject(name, data)
		if err == nil && obj.Empty() != "" {
			err = fmt.Errorf("%s: %s", name, obj.Empty())
		}
		return obj, err
	}, func(obj *relolog.Object, data []byte) {
		o.list, o.data = append(o.list, obj), append(o.data, data)
	})
	if len(o.list) == 0 {
		return nil, fmt.Errorf("no object with CO-RE relocations")
	}
	return o, nil
}

// eachObject parses every object of the files, on several CPUs, with a name to
// call it by, and gives use the results in their order. What cannot be read or
// parsed is reported; it returns how many those are.
func eachObject[T any](paths []string, stderr io.Writer, parse func(name string, data []byte) (T, error), use func(object T, data []byte)) (bad int) {
	type object struct {
		name  string
		data  []byte
		value T
		err   error
	}
	files := make([][]object, len(paths))
	parallel(len(paths), func(i int) {
		found, err := embedded.ReadFile(paths[i], 0)
		if err != nil {
			files[i] = []object{{err: err}}
		}
		for _, f := range found {
			files[i] = append(files[i], object{name: f.Name, data: f.Data})
		}
	})
	names := make(map[string]bool)
	for i, p := range paths {
		for j := range files[i] {
			o := &files[i][j]
			if o.err != nil {
				continue
			}
			name := filepath.Base(p)
			if names[name] && o.name == "" {
				name = p
			}
			if o.name != "" {
				name += "!" + o.name
			}
			names[name] = true
			o.name = name
		}
	}
	parallel(len(paths), func(i int) {
		for j := range files[i] {
			if o := &files[i][j]; o.err == nil {
				o.value, o.err = parse(o.name, o.data)
			}
		}
	})
	for _, f := range files {
		for _, o := range f {
			if o.err != nil {
				bad++
				fmt.Fprintf(stderr, "btfgen: skipped: %s\n", strings.ReplaceAll(o.err.Error(), "\n", " "))
				continue
			}
			use(o.value, o.data)
		}
	}
	return bad
}

// parallel calls do for each of 0 to n-1, on all CPUs.
func parallel(n int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // nothing fails
}
