// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/limits"
)

// objectFile is a file with BPF objects, or standard input.
type objectFile struct {
	path     string
	explicit bool     // the user named the machines
	machines []string // canonical, of either byte order; none means any
	found    bool     // in a directory: it may have no object
}

func splitMachine(arg string) objectFile {
	machines, path, explicit := machine.Cut(arg)
	return objectFile{path: path, explicit: explicit, machines: machines}
}

// objectFiles returns the files of OBJECT arguments. An argument is [MACHINE=]PATH, where PATH is a file, a directory,
// @LIST, or - for standard input. A directory stands for the BPF object files in it.
func objectFiles(ctx context.Context, args []string) ([]objectFile, error) {
	x := expansion{ctx: ctx, left: limits.ObjectFiles}
	for _, a := range args {
		f := splitMachine(a)
		add := x.path
		if strings.HasPrefix(f.path, "@") {
			add = x.list
		}
		if err := add(f); err != nil {
			return nil, err
		}
	}
	return x.files, nil
}

type expansion struct {
	ctx   context.Context
	files []objectFile
	left  int // how many files may still be looked at
}

// count is called for each file that is looked at.
func (x *expansion) count() error {
	if x.left--; x.left < 0 {
		return &limits.Exceeded{Max: limits.ObjectFiles, What: "files to look for BPF objects in"}
	}
	return x.ctx.Err()
}

// path adds a file, the object files in a directory, or standard input.
func (x *expansion) path(f objectFile) error {
	if f.path == embedded.Stdin && slices.ContainsFunc(x.files, func(o objectFile) bool { return o.path == f.path }) {
		return usagef("standard input is given twice")
	}
	fi, err := os.Stat(f.path)
	if err == nil && fi.IsDir() {
		return x.dir(f)
	}
	if names, _, ok := strings.Cut(f.path, "="); ok && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(names, `/\.`) {
		return usagef("%s: no such file, and %s is not a machine", f.path, names)
	}
	x.files = append(x.files, f)
	return x.count()
}

// list adds the objects of a list, with one OBJECT on each line. A # at the start of a line or after a blank begins a
// comment. Paths are relative to the folder of the list. The machines of the list apply to objects without machines.
func (x *expansion) list(list objectFile) error {
	name := list.path[1:]
	data, err := readList(name)
	if err != nil {
		return err
	}
	before, n := len(x.files), 0
	for line := range strings.Lines(data) {
		n++
		line, _, _ = strings.Cut(strings.ReplaceAll(" "+line, "\t", " "), " #")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f := splitMachine(line)
		if !f.explicit {
			f.explicit, f.machines = list.explicit, list.machines
		}
		switch {
		case f.path == embedded.Stdin, strings.HasPrefix(f.path, "@"):
			return usagef("%s:%d: %s: not allowed in a list", name, n, f.path)
		case !filepath.IsAbs(f.path):
			f.path = filepath.Join(filepath.Dir(name), f.path)
		}
		if err := x.path(f); err != nil {
			return err
		}
	}
	if len(x.files) == before {
		return fmt.Errorf("%s: no object in this list", name)
	}
	return nil
}

func readList(name string) (string, error) {
	data, err := readHead(name, limits.ObjectList+1)
	switch {
	case err != nil:
		return "", err
	case len(data) > limits.ObjectList:
		return "", fmt.Errorf("%s: larger than %d bytes: not a list of objects", name, limits.ObjectList)
	case slices.Contains(data, 0):
		return "", fmt.Errorf("%s: has a zero byte: not a list of objects", name)
	}
	return string(data), nil
}

func readHead(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// dir adds the BPF object files in a directory and below it, in order of name. Executables with embedded objects are not
// among them.
func (x *expansion) dir(dir objectFile) error {
	before := len(x.files)
	err := filepath.WalkDir(dir.path+string(filepath.Separator), func(p string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, x.count()); err != nil || e.IsDir() {
			return err
		}
		if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() { // a link may lead to a file
			return nil
		}
		head, err := readHead(p, embedded.HeadBytes)
		if err == nil && embedded.MayBeObject(head) {
			x.files = append(x.files, objectFile{p, dir.explicit, dir.machines, true})
		}
		return err
	})
	if err == nil && len(x.files) == before {
		return fmt.Errorf("%s: no BPF object in this directory", dir.path)
	}
	return err
}
