// SPDX-License-Identifier: Apache-2.0

package workers

import "sync"

// Once computes a result once for each key. It is safe for concurrent use.
type Once[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*once[V]
}

type once[V any] struct {
	value *V            // nil for none
	done  chan struct{} // closed when value is set
}

// Do returns the result for a key. Of several callers with the same key the first computes it, and the others wait and share it. shared
// reports whether it is the result of another caller. compute must not wait for what callers hold, such as memory of kernels: they may
// wait for it.
func (o *Once[K, V]) Do(key K, compute func() *V) (value *V, shared bool) {
	o.mu.Lock()
	r, shared := o.of[key]
	if !shared {
		if o.of == nil {
			o.of = make(map[K]*once[V])
		}
		r = &once[V]{done: make(chan struct{})}
		o.of[key] = r
	}
	o.mu.Unlock()
	if shared {
		<-r.done
		return r.value, r.value != nil
	}
	defer close(r.done) // also after a panic
	r.value = compute()
	return r.value, false
}

// Clear forgets all results.
func (o *Once[K, V]) Clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of = nil
}
