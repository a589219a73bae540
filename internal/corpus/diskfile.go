// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"os"
	"path"
	"path/filepath"

	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// diskFile is a file on disk that may hold kernels, modules or extras.
type diskFile struct {
	*find.File
	key   kernel.Key   // shown by the path
	mods  bool         // only modules are expected in it
	extra naming.Extra // a file with nothing else
}

// extraFiles returns the files with the extras of the kernel in a file.
func extraFiles(f *diskFile) (files []diskFile) {
	dir, base := filepath.Dir(f.Path), path.Base(f.Abs)
	names := map[naming.Extra][]string{
		naming.Config:  {filepath.Join(dir, naming.Stem(base)+naming.ConfigSuffix)},
		naming.Symbols: {filepath.Join(dir, naming.Stem(base)+naming.SymbolsSuffix)},
	}
	if rel := f.key.Release; rel != "" && naming.ValidRelease(rel) == rel {
		names[naming.Config] = append(names[naming.Config], filepath.Join(dir, "config-"+rel))
		names[naming.Symbols] = append(names[naming.Symbols], filepath.Join(dir, "System.map-"+rel))
		if naming.ReleaseFromTree(f.Abs) == rel { // lib/modules/RELEASE/vmlinuz
			names[naming.Config] = append(names[naming.Config], filepath.Join(dir, "config"))
			names[naming.Symbols] = append(names[naming.Symbols], filepath.Join(dir, "System.map"))
		}
	}
	if f.Abs == kernel.HostBTF {
		names[naming.Config] = []string{"/proc/config.gz", "/boot/config-" + f.key.Release}
		names[naming.Symbols] = []string{"/proc/kallsyms"}
	}
	for _, kind := range []naming.Extra{naming.Config, naming.Symbols} {
		if p, ok := firstFile(names[kind]); ok {
			p.extra = kind
			files = append(files, p)
		}
	}
	return files
}

// firstFile returns the first file of these names that exists, compressed or not.
func firstFile(names []string) (diskFile, bool) {
	for _, name := range names {
		for _, suffix := range append([]string{""}, naming.Compressions...) {
			if fi, err := os.Stat(name + suffix); err == nil && fi.Mode().IsRegular() {
				return diskFile{File: &find.File{Path: name + suffix, Size: fi.Size()}}, true
			}
		}
	}
	return diskFile{}, false
}
