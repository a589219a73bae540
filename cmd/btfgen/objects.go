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
	names := make(map[string]bool)
	for _, p := range paths {
		found, err := embedded.ReadFile(p, 0)
		if err != nil {
			o.skip(stderr, err.Error())
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
			obj, err := relolog.ParseObject(name, f.Data)
			switch {
			case err != nil:
				o.skip(stderr, err.Error())
			case obj.Empty() != "":
				o.skip(stderr, fmt.Sprintf("%s: %s", name, obj.Empty()))
			default:
				o.list, o.data = append(o.list, obj), append(o.data, f.Data)
			}
		}
	}
	if len(o.list) == 0 {
		return nil, fmt.Errorf("no object with CO-RE relocations")
	}
	return o, nil
}

func (o *objects) skip(stderr io.Writer, why string) {
	o.bad++
	fmt.Fprintf(stderr, "btfgen: skipped: %s\n", strings.ReplaceAll(why, "\n", " "))
}
