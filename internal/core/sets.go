// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Sets are the questions of some objects, one set for those that are used on the same kernels: of one byte order, and
// for one machine or any. A set is made when the first kernel needs it. Sets are safe for many goroutines.
type Sets struct {
	objects []*Object
	mu      sync.Mutex
	made    map[string]*Set // sets made so far, keyed by their objects
}

// NewSets returns the sets of objects.
func NewSets(objects []*Object) *Sets {
	return &Sets{objects: objects, made: make(map[string]*Set)}
}

// OtherOrder reports whether all objects have the other byte order than a kernel.
func (s *Sets) OtherOrder(k *Target) bool {
	return len(s.objects) > 0 && !slices.ContainsFunc(s.objects, func(o *Object) bool { return o.order == k.Order() })
}

// For returns the set of the objects that are used on a kernel, nil if there are none.
func (s *Sets) For(k *Target) *Set {
	which := make([]byte, len(s.objects))
	var used []*Object
	for i, o := range s.objects {
		if o.IsFor(k) {
			which[i] = 1
			used = append(used, o)
		}
	}
	if len(used) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.made[string(which)]
	if set == nil {
		set = NewSet(used...)
		s.made[string(which)] = set
	}
	return set
}

// OnMachine returns the objects for kernels of a machine, in any spelling: objects of
// its byte order for this machine or for any. For "" it returns all.
func OnMachine(name string, objects ...*Object) []*Object {
	name = kernel.CanonicalArch(name)
	m := machine.Named(name)
	return slices.DeleteFunc(slices.Clone(objects), func(o *Object) bool {
		return !o.fits(name) || m != nil && o.order != m.Order
	})
}

// IsFor reports whether the object is for a kernel: of its byte order, and for
// its machine if that is known. [Set.Run] does not check it.
func (o *Object) IsFor(k *Target) bool {
	return o.order == k.Order() && (len(o.machines) == 0 || o.fits(k.Machine()))
}
