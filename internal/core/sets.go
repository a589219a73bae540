// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync"
)

// Sets are the questions of some objects, one set for those that are used on the same kernels: of one byte order, and
// for one machine or any. A set is made when the first kernel needs it. Sets are safe for many goroutines.
type Sets struct {
	objects []*Object
	mu      sync.Mutex
	made    map[string]*Set // by which of the objects it has
}

// NewSets returns the sets of objects.
func NewSets(objects []*Object) *Sets {
	return &Sets{objects: objects, made: make(map[string]*Set)}
}

// For returns the set of the objects that are used on a kernel, nil if there are none.
func (s *Sets) For(k *Kernel) *Set {
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
		set = NewSet(k.Order(), used...)
		s.made[string(which)] = set
	}
	return set
}
