// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// objects are the BPF objects of OBJECT arguments.
type objects[T any] struct {
	list  []T
	data  [][]byte // ELF file of each object
	files []string // file of each object
	paths []string // paths of all files that were read

	machines string // text to print when the work begins: "x86_64: a.o; arm64: b.o"
}

// announce prints which machines the objects are for.
func (o *objects[T]) announce(c *cli.Context) {
	if o.machines != "" {
		infof(c, "btfgen: objects for %s", o.machines)
	}
}

// programs are objects with programs.
type programs = objects[*rule.Object]

// readObjects reads objects with relocations. Unusable ones are reported and skipped; it is an error if none is left.
func readObjects(c *cli.Context, args []string) (*objects[*core.Object], error) {
	return readKept(c, args, nil, false)
}

// readKept is readObjects for commands with --keep, which then need no object. With bare, objects without relocations are
// usable, as for bpftool.
func readKept(c *cli.Context, args []string, keep *core.KeepPatterns, bare bool) (*objects[*core.Object], error) {
	if len(args) == 0 && len(keep.Patterns()) > 0 {
		return new(objects[*core.Object]), nil
	}
	o, err := readEach(c, args, func(name string, data []byte) (*core.Object, error) {
		obj, err := core.ParseObject(name, data)
		switch {
		case err != nil || obj.Empty() == nil || bare && obj.Empty() == core.ErrNoRelocations:
		case bare:
			err = &bpfobj.Error{Object: name, Err: obj.Empty()}
		default:
			err = &bpfobj.Error{Object: name, Err: emptyError{obj.Empty()}}
		}
		return obj, err
	})
	if err == nil && len(o.list) == 0 {
		reportHidden(c)
		return nil, errors.New("no object with CO-RE relocations")
	}
	return o, err
}

// readPrograms is readObjects for objects with programs, which need no relocations.
func readPrograms(c *cli.Context, args []string) (*programs, error) {
	var known sync.Map // objects, keyed by hash of their file
	o, err := readEach(c, args, func(name string, data []byte) (*rule.Object, error) {
		sum := sha256.Sum256(data)
		if o, ok := known.Load(sum); ok {
			return o.(*rule.Object).Named(name), nil
		}
		o, err := rule.Parse(c.Context, name, data)
		if err == nil {
			known.Store(sum, o)
		}
		return o, err
	})
	if err == nil && len(o.list) == 0 {
		return nil, errors.New("no object with programs")
	}
	return o, err
}

// emptyError is why a valid object is skipped. It counts as [core.ErrNoRelocations] if a section is missing, too.
type emptyError struct{ error }

func (e emptyError) Is(target error) bool { return target == core.ErrNoRelocations }

// parsed is a parsed object of type T.
type parsed[T any] interface {
	Name() string
	Order() binary.ByteOrder
	Machines() []string
	ForMachines(machines ...string) T
}

// readEach reads the objects of arguments with parse and assigns their machines. It reports these, and what it skips.
func readEach[T parsed[T]](
	c *cli.Context, args []string, parse func(name string, data []byte) (T, error),
) (*objects[T], error) {
	if len(args) == 0 {
		return nil, usagef("no BPF object given")
	}
	files, err := embedded.Files(c.Context, args)
	if errors.Is(err, embedded.ErrArgument) {
		return nil, usageError{err}
	} else if err != nil {
		return nil, err
	}
	read := new(objects[T])
	for _, f := range files {
		read.paths = append(read.paths, f.Path)
	}
	all, err := embedded.ParseFiles(c.Context, read.paths, parse)
	if err != nil {
		return nil, err
	}
	byMachines := make(map[string][]string) // names of objects, keyed by machines
	for _, o := range all {
		f := &files[o.File]
		if f.Found && errors.Is(o.Err, embedded.ErrNone) {
			continue
		}
		value, why, err := assignMachines(f, &o)
		if err != nil {
			reportObject(c, f.Path, err)
			continue
		}
		read.list = append(read.list, value)
		read.data = append(read.data, o.Data)
		read.files = append(read.files, f.Path)
		text := strings.Join(value.Machines(), ", ")
		if text == "" {
			continue
		}
		byMachines[text] = append(byMachines[text], value.Name())
		if found(c).verbose {
			infof(c, "btfgen: %s is for %s, %s", value.Name(), text, why)
		}
	}
	// min_core_btf has no --verbose, and is as silent as bpftool.
	if f := found(c); f.canVerbose && !f.verbose && !f.quiet {
		read.machines = machinesText(byMachines)
	}
	return read, nil
}

// assignMachines returns an object of a file, with the machines that it is for, and why it is for these.
func assignMachines[T parsed[T]](f *embedded.File, o *embedded.Parsed[T]) (value T, why string, err error) {
	if o.Err != nil {
		return value, "", o.Err
	}
	machines, why, err := f.MachinesOf(&o.Object, o.Value.Name(), o.Value.Order())
	switch {
	case err != nil:
		return value, "", err
	case why == "":
		return o.Value, "by its registers", nil
	}
	return o.Value.ForMachines(machines...), why, nil
}

// machinesText returns "x86_64: a.o; arm64: b.o" for the names of objects by machines.
func machinesText(names map[string][]string) string {
	var parts []string
	for _, m := range slices.Sorted(maps.Keys(names)) {
		parts = append(parts, m+": "+words.Names(names[m], false))
	}
	return strings.Join(parts, "; ")
}

// reportObject reports why an object, or a whole file, is skipped.
func reportObject(c *cli.Context, path string, err error) {
	if path == embedded.Stdin {
		path = "standard input" // the name in errors
	}
	x := finding{Class: classOf(err), Message: err.Error(), File: path}
	if errors.Is(err, fs.ErrNotExist) {
		x.Class = unmatched // a pattern that matched no file, say
	}
	if e := (*bpfobj.Error)(nil); errors.As(err, &e) {
		x.Message = e.Err.Error()
		if e.Object != path {
			x.Object = e.Object
		}
	}
	compressed := strings.Contains(filepath.Base(path), kernel.FileSuffix+".") // x.btf.zst
	packed := errors.Is(err, embedded.ErrNone) && compressed
	if packed || embedded.IsKernel(err) {
		x.Message += "; name a kernel " + kernelOption(c)
	}
	if x.Class != skipped {
		reportFinding(c, x)
		return
	}
	if x.Object == "" { // a skipped file counts as an object
		x.Object, x.File = path, ""
	}
	reportIfVerbose(c, x)
}

// kernelOption returns where a command line has its kernels.
func kernelOption(c *cli.Context) string {
	switch {
	case c.Command.Name == "min_core_btf":
		return "as INPUT, the first argument"
	case c.IsSet("boot"):
		return "with --boot"
	}
	return "with --btf"
}
