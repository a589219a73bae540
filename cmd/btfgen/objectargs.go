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
	told     bool     // which machines they are for
	machines []string // canonical, of either byte order; none means any
	chance   bool     // found in a directory, and perhaps no object after all
}

// objectFiles returns the files that OBJECT arguments stand for: [MACHINE=]PATH, where PATH is a file, a directory,
// @LIST, or - for standard input. A directory stands for the BPF object files in it.
func objectFiles(ctx context.Context, args []string) ([]objectFile, error) {
	x := expansion{ctx: ctx, left: limits.ObjectFiles}
	for _, a := range args {
		f := splitMachine(a)
		var err error
		if list, ok := strings.CutPrefix(f.path, "@"); ok {
			err = x.list(f, list)
		} else {
			err = x.path(f)
		}
		if err != nil {
			return nil, err
		}
	}
	return x.files, nil
}

func splitMachine(arg string) objectFile {
	machines, path, told := machine.Cut(arg)
	return objectFile{path: path, told: told, machines: machines}
}

// expansion is one objectFiles.
type expansion struct {
	ctx   context.Context
	files []objectFile
	left  int // files to look at
	stdin bool
}

// look is called for each file that is looked at.
func (x *expansion) look() error {
	if x.left--; x.left < 0 {
		return &limits.Exceeded{Max: limits.ObjectFiles, What: "files to look for BPF objects in"}
	}
	return x.ctx.Err()
}

// path adds what a path stands for.
func (x *expansion) path(f objectFile) error {
	if f.path == embedded.Stdin {
		if x.stdin {
			return usagef("standard input is given twice")
		}
		x.stdin = true
		x.files = append(x.files, f)
		return nil
	}
	fi, err := os.Stat(f.path)
	if err == nil && fi.IsDir() {
		return x.dir(f)
	}
	if names, _, ok := strings.Cut(f.path, "="); ok && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(names, `/\.`) {
		return usagef("%s: no such file, and %s is no machine", f.path, names)
	}
	x.files = append(x.files, f) // who reads it says what is wrong
	return x.look()
}

// list adds what a file with one OBJECT a line stands for. A # begins a comment, at the start of a line or after a
// blank. Paths are relative to the folder of the list, which says for which machines those objects are that do not.
func (x *expansion) list(list objectFile, name string) error {
	data, err := readList(name)
	if err != nil {
		return err
	}
	before, n := len(x.files), 0
	for line := range strings.Lines(data) {
		n++
		line = strings.ReplaceAll(" "+line, "\t", " ")
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		f := splitMachine(line)
		if !f.told {
			f.told, f.machines = list.told, list.machines
		}
		switch {
		case f.path == embedded.Stdin:
			return usagef("%s:%d: %s: standard input is for the command line", name, n, f.path)
		case strings.HasPrefix(f.path, "@"):
			return usagef("%s:%d: %s: a list inside a list", name, n, f.path)
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
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limits.ObjectList+1))
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

// dir adds the BPF object files in a directory and those below it, in order of name. It passes over what they are not,
// programs that embed some among them.
func (x *expansion) dir(dir objectFile) error {
	before := len(x.files)
	err := filepath.WalkDir(dir.path+string(filepath.Separator), func(p string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, x.look()); err != nil || e.IsDir() {
			return err
		}
		if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() { // a link may lead to one
			return nil
		}
		ok, err := isObjectFile(p)
		if ok {
			x.files = append(x.files, objectFile{p, dir.told, dir.machines, true})
		}
		return err
	})
	if err == nil && len(x.files) == before {
		return fmt.Errorf("%s: no BPF object in this directory", dir.path)
	}
	return err
}

// isObjectFile reports whether a file begins as a BPF object does.
func isObjectFile(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, embedded.HeadBytes))
	return embedded.MayBeObject(head), err
}
