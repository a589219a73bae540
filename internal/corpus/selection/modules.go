// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/text/suggest"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Modules chooses modules by their names. A nil one chooses all. It is safe for concurrent use.
type Modules struct {
	names []string // sorted; empty for no module

	mu     sync.Mutex
	unread bool            // some kernels
	found  map[string]bool // names of the kernels' modules, up to limits.Modules
}

// NoModules chooses no module.
func NoModules() *Modules { return &Modules{} }

// Words for modules that are no names.
const (
	allModules = "all"
	noModules  = "none"
)

// ParseModules reads names with commas between them, or "all" or "none". In names - is _, as in lsmod.
func ParseModules(text string) (*Modules, error) {
	switch text {
	case allModules:
		return nil, nil
	case noModules:
		return NoModules(), nil
	}
	m := &Modules{found: make(map[string]bool)}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.ReplaceAll(strings.TrimSpace(name), "-", "_")
		switch {
		case name == "":
			return nil, errors.New("a name is missing")
		case name == allModules || name == noModules:
			return nil, fmt.Errorf("%s does not go with other names", name)
		case naming.Stem(name) != name:
			return nil, fmt.Errorf("%s is a file name, want %s", name, naming.Stem(name))
		}
		if err := kernel.CheckName(name); err != nil {
			return nil, err
		}
		m.names = append(m.names, name)
	}
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
	return m, nil
}

// Names returns the sorted names, nil for all modules, and "none" for no module.
func (m *Modules) Names() []string {
	switch {
	case m == nil:
		return nil
	case len(m.names) == 0:
		return []string{noModules}
	}
	return m.names
}

// None reports whether no module is chosen.
func (m *Modules) None() bool { return m != nil && len(m.names) == 0 }

// Has reports whether a module is chosen, and notes that a kernel has it.
func (m *Modules) Has(name string) bool {
	if m == nil || m.None() {
		return m == nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, chosen := slices.BinarySearch(m.names, name)
	if chosen || len(m.found) < limits.Modules {
		m.found[name] = true
	}
	return chosen
}

// Unread notes that not all kernels are read, so that modules may be in others.
func (m *Modules) Unread() {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.unread = true
	}
}

// NotFound is a chosen module that no kernel has.
type NotFound struct {
	Name    string
	Nearest string // a similar name of a module that a kernel has, or ""
}

// NotFound returns the chosen modules that no kernel has, if all kernels were read.
func (m *Modules) NotFound() (all []NotFound) {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := slices.Sorted(maps.Keys(m.found))
	for _, name := range m.names {
		if !m.found[name] && !m.unread {
			all = append(all, NotFound{name, suggest.Word(name, known)})
		}
	}
	return all
}
