package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

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
	o.bad = eachObject(paths, stderr, func(name string, data []byte) error {
		obj, err := relolog.ParseObject(name, data)
		switch {
		case err != nil:
			return err
		case obj.Empty() != "":
			return fmt.Errorf("%s: %s", name, obj.Empty())
		}
		o.list, o.data = append(o.list, obj), append(o.data, data)
		return nil
	})
	if len(o.list) == 0 {
		return nil, fmt.Errorf("no object with CO-RE relocations")
	}
	return o, nil
}

// eachObject gives use every object of the files, with a name to call it by.
// What cannot be read, and what use does not want, is reported; it returns how
// many those are.
func eachObject(paths []string, stderr io.Writer, use func(name string, data []byte) error) (bad int) {
	skip := func(err error) {
		bad++
		fmt.Fprintf(stderr, "btfgen: skipped: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	names := make(map[string]bool)
	for _, p := range paths {
		found, err := embedded.ReadFile(p, 0)
		if err != nil {
			skip(err)
			continue
		}
		for _, f := range found {
			name := filepath.Base(p)
			if names[name] && f.Name == "" {
				name = p
			}
			if f.Name != "" {
				name += "!" + f.Name
			}
			names[name] = true
			if err := use(name, f.Data); err != nil {
				skip(err)
			}
		}
	}
	return bad
}
