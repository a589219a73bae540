// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/text/words"
)

// objects is what the OBJECT arguments came to.
type objects struct {
	list  []*core.Object // with relocations
	data  [][]byte       // the ELF file of each
	paths []string       // of the files that were read
}

// readObjects reads the objects, and those embedded in executables. What
// cannot be used is reported and left out; nothing usable at all is an error.
func readObjects(c *cli.Context, args []string) (*objects, error) {
	o := new(objects)
	var err error
	o.paths, err = eachObject(c, args, func(name string, data []byte) (*core.Object, error) {
		obj, err := core.ParseObject(name, data)
		if err == nil && obj.Empty() != "" {
			err = emptyError{name, obj.Empty()}
		}
		return obj, err
	}, func(obj *core.Object, data []byte) {
		o.list, o.data = append(o.list, obj), append(o.data, data)
	})
	if err != nil {
		return nil, err
	}
	if len(o.list) == 0 {
		tellNotes(c)
		return nil, fmt.Errorf("no object with CO-RE relocations")
	}
	return o, nil
}

// programs is objects for those with programs.
type programs struct {
	list  []*check.Object
	data  [][]byte
	paths []string
}

// readPrograms is readObjects for objects with programs, which need no
// relocations.
func readPrograms(c *cli.Context, args []string) (*programs, error) {
	o := new(programs)
	parse := func(name string, data []byte) (*check.Object, error) { return check.Parse(c.Context, name, data) }
	var err error
	o.paths, err = eachObject(c, args, parse, func(obj *check.Object, data []byte) {
		o.list, o.data = append(o.list, obj), append(o.data, data)
	})
	if err != nil {
		return nil, err
	}
	if len(o.list) == 0 {
		return nil, errors.New("no object with programs")
	}
	return o, nil
}

// errNoRelocations is why an object is left out though nothing is wrong with it.
var errNoRelocations = errors.New("no CO-RE relocations")

// emptyError is an errNoRelocations that says more.
type emptyError struct{ name, why string }

func (e emptyError) Error() string        { return e.name + ": " + e.why }
func (e emptyError) Is(target error) bool { return target == errNoRelocations }

// boundObject is an object as relolog and check have it.
type boundObject[T any] interface {
	Name() string
	Order() binary.ByteOrder
	Machines() []string
	ForMachines(machines ...string) T
}

// eachObject parses every object that the arguments stand for, gives it the machines that it is for, tells which, and
// gives use the results in their order. What cannot be read or parsed is told. It returns the files
// that were read.
func eachObject[T boundObject[T]](c *cli.Context, args []string, parse func(name string, data []byte) (T, error), use func(object T, data []byte)) (paths []string, err error) {
	if len(args) == 0 {
		return nil, usagef("no BPF object given")
	}
	files, err := objectFiles(c.Context, args)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		paths = append(paths, f.path)
	}
	all, err := embedded.ParseFiles(c.Context, paths, parse)
	var list []binding
	for _, o := range all {
		if files[o.File].chance && errors.Is(o.Err, embedded.ErrNone) {
			continue
		}
		var b binding
		if o.Err == nil {
			b, o.Err = bind(&files[o.File], &o.Object, o.Value.Name(), o.Value.Order())
		}
		if o.Err != nil {
			tellObject(c, files[o.File].path, o.Err)
			continue
		}
		if b.why != "" {
			o.Value = o.Value.ForMachines(b.machines...)
		} else {
			b.why = "by the registers it reads"
		}
		b.machines = o.Value.Machines()
		list = append(list, b)
		use(o.Value, o.Data)
	}
	tellMachines(c, list)
	return paths, err
}

// tellObject tells why an object of a file, or the file, is left out.
func tellObject(c *cli.Context, path string, err error) {
	if path == embedded.Stdin {
		path = "standard input" // as errors call it
	}
	x := finding{Class: classOf(err), Message: err.Error(), File: path}
	if text, ok := strings.CutPrefix(x.Message, path+": "); ok {
		x.Message = text
	} else if name, text, ok := strings.Cut(x.Message, ": "); ok && strings.HasPrefix(name, filepath.Base(path)) {
		x.Object, x.Message = name, text
	}
	if x.Class == skipped {
		if x.Object == "" { // to be counted as one
			x.Object, x.File = path, ""
		}
		note(c, x)
	} else {
		tellOf(c, x)
	}
}

// binding says which machines an object is for.
type binding struct {
	name     string
	machines []string // none means any
	why      string   // empty where the object itself tells
}

// bind says which machines an object of a file is for: those that the user told, or else those that the file is named
// for, or that the program runs on that embeds it.
func bind(f *objectFile, in *embedded.Object, name string, order binary.ByteOrder) (binding, error) {
	b := binding{name: name}
	switch {
	case f.told:
		b.machines, b.why = machine.OfOrder(f.machines, order), "as told"
		if len(b.machines) == 0 && len(f.machines) > 0 {
			which := "little"
			if order == binary.BigEndian {
				which = "big"
			}
			return b, fmt.Errorf("%s: is %s-endian, and %s is not", name, which, strings.Join(f.machines, ", "))
		}
	case len(in.Hosts) > 0:
		if b.machines = machine.OfOrder(in.Hosts, order); len(b.machines) > 0 {
			b.why = "as its program runs there"
		}
	case in.Name == "" && f.path != embedded.Stdin:
		if b.machines = machine.OfFileName(f.path, order); len(b.machines) > 0 {
			b.why = "by its name"
		}
	}
	return b, nil
}

// tellMachines tells which objects are for some machines only.
func tellMachines(c *cli.Context, list []binding) {
	list = slices.DeleteFunc(list, func(b binding) bool { return len(b.machines) == 0 })
	if found(c).quiet || len(list) == 0 || !found(c).canVerbose { // min_core_btf is as silent as bpftool
		return
	}
	if found(c).verbose {
		for _, b := range list {
			say(c, "btfgen: %s is for %s, %s", b.name, strings.Join(b.machines, ", "), b.why)
		}
		return
	}
	names := make(map[string][]string) // by machines
	for _, b := range list {
		m := strings.Join(b.machines, ", ")
		names[m] = append(names[m], b.name)
	}
	var parts []string
	for _, m := range slices.Sorted(maps.Keys(names)) {
		text := words.Names(names[m], false) + " are for "
		switch l := names[m]; len(l) {
		case 1:
			text = l[0] + " is for "
		case 2:
			text = l[0] + " and " + l[1] + " are for "
		}
		parts = append(parts, text+m)
	}
	say(c, "btfgen: %s", strings.Join(parts, "; "))
}
