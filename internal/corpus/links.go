// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"sync"

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

// tarLinks has the links in a tar file, and the members with BTF whose names are not those of a kernel. Both are read at the end, when it
// is known which kernels the links are.
type tarLinks struct {
	links   []tarLink
	to      map[string]string // where they lead, by name
	unnamed []string
	members map[string]bool // whether a member may be a kernel, by name
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
	const most = 40 // the limit that Linux has
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
