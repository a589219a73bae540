// SPDX-License-Identifier: Apache-2.0

// Package find walks directories for files that may hold kernels, modules or extras, and identifies them.
package find

import (
	"io"
	"os"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
)

// File is a file that was found.
type File struct {
	Path   string // the user's path, extended by the names below
	Abs    string // the same, absolute and with slashes
	Below  string // the part of the path with the key, see naming.Sources
	Size   int64
	Kind   sniff.Kind // shown by the first bytes
	Source bool       // named by the user

	real  string // the path without links
	split bool   // raw BTF that needs a base
	bpf   bool   // an ELF file for the BPF machine
	what  error  // the error to report if Kind is Unknown
}

// look identifies the file by its first bytes.
func (f *File) look() error {
	r, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return err
	}
	f.Size = fi.Size()
	var buf [sniff.Len]byte
	n, err := r.ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return err
	}
	head := buf[:n]
	f.Kind = sniff.Of(head)
	f.bpf, f.what = embedded.MayBeObject(head), sniff.Unrecognized(head)
	if (f.Kind == sniff.Unknown || f.Kind == sniff.Zero) && image.IsS390(r) {
		f.Kind = sniff.Image
	}
	if f.Kind == sniff.Unknown && (strings.HasSuffix(f.Path, ".btfc") || btfc.Ends(r, f.Size)) {
		f.Kind = sniff.BTFC // a damaged one
	}
	if h, err := sniff.ReadHeader(head, f.Size); f.Kind == sniff.BTF && err == nil {
		if f.split = h.Strings.Len == 0; !f.split {
			if _, err := r.ReadAt(buf[:1], int64(h.Strings.Off)); err != nil {
				return err
			}
			f.split = buf[0] != 0
		}
	}
	return nil
}

// HasModules reports whether the file is for modules rather than a kernel, by content or else by name.
func (f *File) HasModules() bool {
	base := path.Base(f.Abs)
	return f.split || naming.IsModule(base) || naming.IsModulesArchive(base)
}
