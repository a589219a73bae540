// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/image"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// part is a file that may hold kernels, modules or extras.
type part struct {
	path   string     // as given by the user, extended by the names below
	abs    string     // the same, absolute and with slashes
	below  string     // the part of the path with the key, see sources
	key    kernel.Key // from the path
	size   int64
	kind   sniff.Kind         // by its first bytes
	split  bool         // raw BTF that needs a base
	bpf    bool         // an ELF file for the BPF machine
	what   error        // of a file of no known kind
	source bool         // named by the user
	mods   bool         // only modules are expected in it
	extra  naming.Extra // a file with nothing else
}

// look identifies the file by its first bytes.
func (f *part) look() error {
	r, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return err
	}
	f.size = fi.Size()
	var buf [sniff.Len]byte
	n, err := r.ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return err
	}
	head := buf[:n]
	f.kind = sniff.Of(head)
	f.bpf, f.what = embedded.MayBeObject(head), sniff.Unrecognized(head)
	if (f.kind == sniff.Unknown || f.kind == sniff.Zero) && image.IsS390(r) {
		f.kind = sniff.Image
	}
	if f.kind == sniff.Unknown && (strings.HasSuffix(f.path, ".btfc") || btfc.Ends(r, f.size)) {
		f.kind = sniff.BTFC // a damaged one
	}
	if h, err := sniff.ReadHeader(head, f.size); f.kind == sniff.BTF && err == nil {
		if f.split = h.Strings.Len == 0; !f.split {
			if _, err := r.ReadAt(buf[:1], int64(h.Strings.Off)); err != nil {
				return err
			}
			f.split = buf[0] != 0
		}
	}
	return nil
}

// module reports whether the file is for modules rather than a kernel, by content or else by name.
func (f *part) module() bool {
	base := path.Base(f.abs)
	return f.split || naming.IsModule(base) || naming.IsModulesArchive(base)
}

// extraFiles returns the files with the extras of the kernel in a file.
func extraFiles(f *part) (parts []part) {
	dir, base := filepath.Dir(f.path), path.Base(f.abs)
	names := map[naming.Extra][]string{
		naming.Config:  {filepath.Join(dir, naming.Stem(base)+naming.ConfigSuffix)},
		naming.Symbols: {filepath.Join(dir, naming.Stem(base)+naming.SymbolsSuffix)},
	}
	if rel := f.key.Release; rel != "" && naming.ValidRelease(rel) == rel {
		names[naming.Config] = append(names[naming.Config], filepath.Join(dir, "config-"+rel))
		names[naming.Symbols] = append(names[naming.Symbols], filepath.Join(dir, "System.map-"+rel))
		if naming.ReleaseFromTree(f.abs) == rel { // lib/modules/RELEASE/vmlinuz
			names[naming.Config] = append(names[naming.Config], filepath.Join(dir, "config"))
			names[naming.Symbols] = append(names[naming.Symbols], filepath.Join(dir, "System.map"))
		}
	}
	if f.abs == kernel.HostBTF {
		names[naming.Config] = []string{"/proc/config.gz", "/boot/config-" + f.key.Release}
		names[naming.Symbols] = []string{"/proc/kallsyms"}
	}
	for _, kind := range []naming.Extra{naming.Config, naming.Symbols} {
		if p, ok := firstFile(names[kind]); ok {
			p.extra = kind
			parts = append(parts, p)
		}
	}
	return parts
}

// firstFile returns the first file of these names that exists, compressed or not.
func firstFile(names []string) (part, bool) {
	for _, name := range names {
		for _, suffix := range append([]string{""}, naming.Compressions...) {
			if fi, err := os.Stat(name + suffix); err == nil && fi.Mode().IsRegular() {
				return part{path: name + suffix, size: fi.Size()}, true
			}
		}
	}
	return part{}, false
}
