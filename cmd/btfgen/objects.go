package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/embedded"
	"github.com/btfgen/btfgen/internal/foreign"
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
func readObjects(ctx context.Context, paths []string, stderr io.Writer) (*objects, error) {
	if len(paths) == 0 {
		return nil, usagef("no BPF object given")
	}
	o := new(objects)
	var err error
	o.bad, err = eachObject(ctx, paths, stderr, func(name string, data []byte) (*relolog.Object, error) {
		obj, err := relolog.ParseObject(name, data)
		if err == nil && obj.Empty() != "" {
			err = fmt.Errorf("%s: %s", name, obj.Empty())
		}
		return obj, err
	}, func(obj *relolog.Object, data []byte) {
		o.list, o.data = append(o.list, obj), append(o.data, data)
	})
	if err != nil {
		return nil, err
	}
	if len(o.list) == 0 {
		return nil, fmt.Errorf("no object with CO-RE relocations")
	}
	return o, nil
}

// eachObject parses every object of the files and gives use the results in
// their order. What cannot be read or parsed is reported; it returns how many
// those are.
func eachObject[T any](ctx context.Context, paths []string, stderr io.Writer, parse func(name string, data []byte) (T, error), use func(object T, data []byte)) (bad int, err error) {
	all, err := embedded.ParseFiles(ctx, paths, parse)
	for _, o := range all {
		if o.Err != nil {
			bad++
			foreign.Fprintf(stderr, "btfgen: skipped: %s\n", strings.ReplaceAll(o.Err.Error(), "\n", " "))
			continue
		}
		use(o.Value, o.Data)
	}
	return bad, err
}
