// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"slices"
	"sync"
)

// recent remembers values that were used last, by kernel. It is safe for concurrent use.
type recent[T any] struct {
	keep int // how many

	mu   sync.Mutex
	last []valueOf[T] // the one used last at the end
}

type valueOf[T any] struct {
	kernel int
	value  T
}

// get returns the value of kernel i, zero if it is not remembered.
func (r *recent[T]) get(i int) (value T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.at(i)
	if at < 0 {
		return value
	}
	v := r.last[at]
	r.last = append(slices.Delete(r.last, at, at+1), v)
	return v.value
}

func (r *recent[T]) at(i int) int {
	return slices.IndexFunc(r.last, func(v valueOf[T]) bool { return v.kernel == i })
}

func (r *recent[T]) put(i int, value T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.at(i); at >= 0 {
		r.last = slices.Delete(r.last, at, at+1)
	}
	r.last = append(r.last, valueOf[T]{i, value})
	r.last = slices.Delete(r.last, 0, max(len(r.last)-r.keep, 0))
}
