// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// chooseLinks adds to the files found the links that are kernels of their own, with the links to their modules, and leaves out the others. A
// file without a kernel's name that such a link leads to is left out.
func chooseLinks(l *links, found *find.Found, opts *Options) {
	key := func(f *find.File) kernel.Key { return opts.key(f.Path, f.Below, f.Abs) }
	taken := make(map[kernel.Key]*find.File)
	for _, f := range found.Files {
		if k := key(f); k.Known() && !f.HasModules() {
			taken[k] = cmp.Or(taken[k], f)
		}
	}
	unnamed := make(map[*find.File]bool) // files in whose place links are kernels
	dirs := make(map[string]bool)        // directories of such links
	own := make(map[kernel.Key]bool)     // keys of such links
	slices.SortFunc(found.Links, func(a, b find.Link) int { return strings.Compare(a.Path, b.Path) })
	for _, link := range found.Links {
		if link.HasModules() {
			continue
		}
		k, to := key(link.File), key(link.To)
		owner := taken[k]
		switch {
		case link.Kind == sniff.BTFC || link.Kind == sniff.Image || owner == nil && !ownKernel(k, to):
			l.leave(link.Path, to, link.To.Path)
		case owner != nil:
			l.leave(link.Path, k, owner.Path)
		default:
			found.Files = append(found.Files, link.File)
			dirs[path.Dir(link.Abs)] = true
			if k.Known() {
				taken[k], own[k] = link.File, true
				unnamed[link.To] = unnamed[link.To] || !to.Known()
			}
		}
	}
	for _, link := range found.Links {
		withKernel := dirs[path.Dir(link.Abs)] || naming.IsModulesArchive(path.Base(link.Abs)) && own[naming.ModuleKey(link.Below)]
		if link.HasModules() && withKernel {
			found.Files = append(found.Files, link.File)
		}
	}
	found.Files = slices.DeleteFunc(found.Files, func(f *find.File) bool { return unnamed[f] && !f.Source })
}

// chooseInTar chooses among the links of a tar file, like chooseLinks. It returns the names of the kernels to be read from members, by member.
func chooseInTar(t *tarLinks, a *assembler) map[string][]string {
	key := func(name string) kernel.Key { return a.source.opts.key(name, name, "") }
	names := make(map[string][]string)
	taken := make(map[kernel.Key]string)
	for name := range t.members {
		if k := key(name); k.Known() && (taken[k] == "" || name < taken[k]) {
			taken[k] = name
		}
	}
	slices.SortFunc(t.links, func(x, y tarLink) int { return strings.Compare(x.name, y.name) })
	for _, link := range t.links {
		full := a.source.Path + "!" + link.name
		member, ok := t.follow(link)
		if !ok {
			a.Fail(skip.Wrap(full, "", errDangling))
			continue
		}
		k, to := key(link.name), key(member)
		switch owner := taken[k]; {
		case owner == "" && !ownKernel(k, to):
			a.source.opts.links.leave(full, to, a.source.Path+"!"+member)
		case owner != "":
			a.source.opts.links.leave(full, k, a.source.Path+"!"+owner)
		default:
			if k.Known() {
				taken[k] = link.name
			}
			names[member] = append(names[member], link.name)
		}
	}
	for _, name := range t.unnamed {
		if names[name] == nil {
			names[name] = []string{name}
		}
	}
	return names
}
