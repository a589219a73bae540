// SPDX-License-Identifier: Apache-2.0

package workers_test

import (
	"sync/atomic"
	"testing"

	"github.com/btfgen/btfgen/internal/workers"
)

// TestOnce checks that one caller computes and the others wait, also when it panics.
func TestOnce(t *testing.T) {
	var o workers.Once[string, int]
	var computed, shared atomic.Int64
	workers.Together(8, func() {
		v, s := o.Do("a", func() *int {
			computed.Add(1)
			n := 7
			return &n
		})
		if v == nil || *v != 7 {
			t.Errorf("got %v", v)
		}
		if s {
			shared.Add(1)
		}
	})
	if computed.Load() != 1 || shared.Load() != 7 {
		t.Errorf("computed %d times, shared %d times", computed.Load(), shared.Load())
	}
	func() {
		defer func() { _ = recover() }()
		o.Do("b", func() *int { panic("b") })
	}()
	if v, s := o.Do("b", func() *int { return new(int) }); v != nil || s {
		t.Errorf("after a panic: %v, shared %t", v, s)
	}
	o.Clear()
	if v, s := o.Do("a", func() *int { return new(int) }); *v != 0 || s {
		t.Errorf("after Clear: %d, shared %t", *v, s)
	}
}
