// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// group makes a File of each kernel found, with the files that have its modules.
// Modules whose kernel is not among the sources are returned as skipped.
//
// A module finds its kernel by the key of its path, as in BTFHub's
// modules/<ID>/<VERSION_ID>/<arch>/<release>.modules.tar.xz, or by the release in it, as in
// /lib/modules/<release>, or by lying next to it, as in /sys/kernel/btf. A module that the user
// named goes with the only kernel there is.
func group(files []*find.File, opts *Options) (grouped []*File, skipped []*Error) {
	slices.SortFunc(files, func(a, b *find.File) int { return strings.Compare(a.Path, b.Path) })
	ix := index{make(map[kernel.Key]*File), make(map[string][]*File), make(map[string][]*File)}
	var mods []diskFile
	for _, f := range files {
		p := diskFile{File: f}
		if f.HasModules() {
			mods = append(mods, p)
			continue
		}
		p.key = opts.key(p.Path, p.Below, p.Abs)
		u := &File{Path: p.Path, Key: p.key, Size: p.Size, files: []diskFile{p}}
		if opts.Extras {
			u.files = append(u.files, extraFiles(&p)...)
		}
		grouped = append(grouped, u)
		ix.add(u, p.Abs)
	}
	for _, p := range mods {
		base := path.Base(p.Abs)
		unselected := !naming.IsModulesArchive(base) && !opts.Modules.Has(naming.ModuleName(base))
		if unselected || naming.IsExtrasPackage(base) && !opts.Extras {
			continue
		}
		p.key, p.mods = naming.ModuleKey(p.Below), true
		u := ix.kernelOf(&p)
		if u == nil && p.Source && len(grouped) == 1 {
			u = grouped[0]
		}
		if u == nil {
			skipped = append(skipped, &Error{Path: p.Path, Err: ErrNoKernel})
			continue
		}
		u.files = append(u.files, p)
		u.Size += p.Size
	}
	return grouped, skipped
}

// index finds the kernels that modules may belong to.
type index struct {
	key     map[kernel.Key]*File // the first, if two sources have it
	release map[string][]*File
	dir     map[string][]*File
}

func (ix *index) add(u *File, abs string) {
	if u.Key.Known() && ix.key[u.Key] == nil {
		ix.key[u.Key] = u
	}
	ix.release[u.Key.Release] = append(ix.release[u.Key.Release], u)
	dir := path.Dir(abs)
	if naming.IsVmlinux(abs) {
		ix.dir[dir] = []*File{u}
	} else if all := ix.dir[dir]; len(all) == 0 || !naming.IsVmlinux(all[0].Path) {
		ix.dir[dir] = append(all, u)
	}
}

// kernelOf returns the kernel of a module's file, nil if there is none or no single one.
func (ix *index) kernelOf(p *diskFile) *File {
	k := p.key
	if u := ix.key[k]; u != nil {
		return u
	}
	if all := ix.release[k.Release]; k.Release != "" && len(all) == 1 && compatible(all[0].Key, k) {
		return all[0]
	}
	if all := ix.dir[path.Dir(p.Abs)]; len(all) == 1 && !naming.IsModulesArchive(path.Base(p.Abs)) {
		return all[0]
	}
	return nil
}

// compatible reports whether two keys of the same release can be of the same kernel.
func compatible(a, b kernel.Key) bool {
	same := func(x, y string) bool { return x == "" || y == "" || x == y }
	return same(a.ID, b.ID) && same(a.VersionID, b.VersionID) && same(a.Arch, b.Arch)
}
