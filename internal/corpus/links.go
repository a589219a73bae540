// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// links has the links that are left out, because they are second names of kernels. It is safe for concurrent use.
//
// Trees of kernels have two sorts of links. Deduplicated ones keep kernels with equal BTF as one file, to which a link with each kernel's
// name leads; BTFHub's have debian/bullseye for debian/11. So a link is a kernel of its own unless the name of the file that it leads to
// has the same release.
type links struct {
	mu  sync.Mutex
	all []*Error
}

// Links returns the links that are left out because they are second names of kernels, sorted by path. Those in a tar file are known once
// it was read.
func (c *Corpus) Links() []*Error {
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	slices.SortFunc(c.links.all, (*Error).Compare)
	return slices.Clone(c.links.all)
}

// leave leaves out a link to a file with a kernel's key, which may be incomplete.
func (l *links) leave(link string, key kernel.Key, to string) {
	what := "the same file"
	if key.Known() {
		what = key.String()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &Error{Path: link, Err: again(what, to)})
}

// ownKernel reports whether a link with one key is a kernel of its own, given the key of the name that it leads to. vmlinuz.old has no
// release.
func ownKernel(link, to kernel.Key) bool {
	return link.Release != "" && link.Release != to.Release && (link.Known() || !to.Known())
}

// choose adds to the files found the links that are kernels of their own, with the links to their modules, and leaves out the others. A
// file without a kernel's name that such a link leads to is left out.
func (l *links) choose(found *find.Found, opts *Options) {
	key := func(f *find.File) kernel.Key { return opts.key(f.Path, f.Below, f.Abs) }
	taken := make(map[kernel.Key]*find.File)
	for _, f := range found.Files {
		if k := key(f); k.Known() && !f.HasModules() {
			taken[k] = cmp.Or(taken[k], f)
		}
	}
	unnamed := make(map[*find.File]bool) // files in whose place links are kernels
	dirs := make(map[string]bool)        // of such links
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
		if dir := path.Dir(link.Abs); link.HasModules() && (dirs[dir] || naming.IsModulesArchive(path.Base(link.Abs)) && own[naming.ModuleKey(link.Below)]) {
			found.Files = append(found.Files, link.File)
		}
	}
	found.Files = slices.DeleteFunc(found.Files, func(f *find.File) bool { return unnamed[f] && !f.Source })
}

// tarLinks has the links in a tar file, and the members with BTF whose names are not those of a kernel. Both are read at the end, when it
// is known which kernels the links are.
type tarLinks struct {
	links   []tarLink
	to      map[string]string // where they lead, by name
	unnamed []string
	members map[string]bool // that may be kernels
	full    bool            // there are too many links
}

// tarLink is a link, as paths in the tar.
type tarLink struct{ name, to string }

var errDangling = errors.New("dangling link")

// member notes a member that may be a kernel.
func (t *tarLinks) member(name string) {
	if t.members == nil {
		t.members = make(map[string]bool)
	}
	t.members[name] = true
}

// add adds a link, unless there are too many.
func (t *tarLinks) add(name, to string) error {
	if len(t.links) == limits.Links {
		if t.full {
			return nil
		}
		t.full = true
		return &limits.Exceeded{Max: limits.Links, What: "links"}
	}
	if t.to == nil {
		t.to = make(map[string]string)
	}
	t.links = append(t.links, tarLink{name, to})
	t.to[name] = to
	return nil
}

// follow returns the member that a link leads to, if there may be one.
func (t *tarLinks) follow(link tarLink) (member string, ok bool) {
	const most = 40 // as in Linux
	at := link.to
	for range most {
		next, ok := t.to[at]
		if !ok {
			return at, t.members[at]
		}
		at = next
	}
	return "", false
}

// choose chooses among the links of a tar file, like links.choose. It returns the names of the kernels to be read from members, by member.
func (t *tarLinks) choose(a *assembler) map[string][]string {
	key := func(name string) kernel.Key { return a.f.opts.key(name, name, "") }
	names := make(map[string][]string)
	taken := make(map[kernel.Key]string)
	for name := range t.members {
		if k := key(name); k.Known() && (taken[k] == "" || name < taken[k]) {
			taken[k] = name
		}
	}
	slices.SortFunc(t.links, func(x, y tarLink) int { return strings.Compare(x.name, y.name) })
	for _, link := range t.links {
		full := a.f.Path + "!" + link.name
		member, ok := t.follow(link)
		if !ok {
			a.Fail(skip.Wrap(full, "", errDangling))
			continue
		}
		k, to := key(link.name), key(member)
		switch owner := taken[k]; {
		case owner == "" && !ownKernel(k, to):
			a.f.opts.links.leave(full, to, a.f.Path+"!"+member)
		case owner != "":
			a.f.opts.links.leave(full, k, a.f.Path+"!"+owner)
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
