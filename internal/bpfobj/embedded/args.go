// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/limits"
)

// File is a file with BPF objects, or standard input.
type File struct {
	Path     string
	Found    bool // found in a directory, so it may have no object
	explicit bool // the user named the machines
	machines []string
}

// ErrArgument is returned for arguments that are wrong whatever the files contain.
var ErrArgument = errors.New("wrong argument")

type argumentError struct{ text string }

func (e argumentError) Error() string        { return e.text }
func (e argumentError) Is(target error) bool { return target == ErrArgument }

func argumentf(format string, args ...any) error { return argumentError{fmt.Sprintf(format, args...)} }

func splitMachine(arg string) File {
	machines, path, explicit := machine.Cut(arg)
	return File{Path: path, explicit: explicit, machines: machines}
}

// Files expands arguments to files. An argument is [MACHINE=]PATH, where PATH is a file, a directory, or - for standard
// input. A directory expands to the BPF object files in it.
func Files(ctx context.Context, args []string) ([]File, error) {
	x := expansion{ctx: ctx, left: limits.ObjectFiles}
	for _, a := range args {
		if err := x.path(splitMachine(a)); err != nil {
			return nil, err
		}
	}
	return x.files, nil
}

// MachinesOf returns the machines of an object in the file, and why: the user named them, the program that embeds the
// object runs there, or the file is named for them. Without any reason, the object itself must show them.
func (f *File) MachinesOf(o *Object, name string, order binary.ByteOrder) (machines []string, why string, err error) {
	switch {
	case f.explicit:
		machines = machine.OfOrder(f.machines, order)
		if len(machines) == 0 && len(f.machines) > 0 {
			which := "little"
			if order == binary.BigEndian {
				which = "big"
			}
			err = &bpfobj.Error{Object: name, Err: fmt.Errorf("is %s-endian, and %s is not", which, strings.Join(f.machines, ", "))}
		}
		return machines, "as given", err
	case len(o.Hosts) > 0:
		machines, why = machine.OfOrder(o.Hosts, order), "the machine of its program"
	case o.Name == "" && f.Path != Stdin:
		machines, why = machine.OfFileName(f.Path, order), "by its name"
	}
	if len(machines) == 0 {
		why = ""
	}
	return machines, why, nil
}

type expansion struct {
	ctx   context.Context
	files []File
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
func (x *expansion) path(f File) error {
	if f.Path == Stdin && slices.ContainsFunc(x.files, func(o File) bool { return o.Path == f.Path }) {
		return argumentf("standard input is given twice")
	}
	fi, err := os.Stat(f.Path)
	if err == nil && fi.IsDir() {
		return x.dir(f)
	}
	if names, _, ok := strings.Cut(f.Path, "="); ok && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(names, `/\.`) {
		return argumentf("%s: no such file, and %s is not a machine", f.Path, names)
	}
	x.files = append(x.files, f)
	return x.count()
}

// dir adds the BPF object files in a directory and below it, in order of name. Executables with embedded objects are not
// among them.
func (x *expansion) dir(dir File) error {
	before := len(x.files)
	err := filepath.WalkDir(dir.Path+string(filepath.Separator), func(p string, e fs.DirEntry, err error) error {
		if err = cmp.Or(err, x.count()); err != nil || e.IsDir() {
			return err
		}
		if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() { // a link may lead to a file
			return nil
		}
		head, err := readHead(p, HeadBytes)
		if err == nil && MayBeObject(head) {
			x.files = append(x.files, File{p, true, dir.explicit, dir.machines})
		}
		return err
	})
	if err == nil && len(x.files) == before {
		return fmt.Errorf("%s: no BPF object in this directory", dir.Path)
	}
	return err
}

// IsObject reports whether a file may be a BPF object.
func IsObject(path string) bool {
	head, err := readHead(path, HeadBytes)
	return err == nil && MayBeObject(head)
}

func readHead(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}
