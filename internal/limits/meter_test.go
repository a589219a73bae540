// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"errors"
	"testing"
)

// TestMeter checks that a meter allows exactly the limit, in steps of any size.
func TestMeter(t *testing.T) {
	for _, n := range []int{1, 7, interval, 3 * interval, 10 * interval} {
		m := NewMeter(context.Background(), int64(10*n), "steps")
		for i := range 10 {
			if !m.Step(n) {
				t.Fatalf("%d: ends after %d of 10: %v", n, i, m.Err())
			}
		}
		var over *Exceeded
		first, second := m.Step(1), m.Step(1)
		if first || second || !errors.As(m.Err(), &over) {
			t.Errorf("%d: goes on, or ends with %v", n, m.Err())
		}
	}
}

// TestMeterContext checks that work ends soon after its context.
func TestMeterContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m := NewMeter(ctx, 1<<40, "steps")
	if !m.Step(1) {
		t.Fatal(m.Err())
	}
	cancel()
	for n := 0; m.Step(1); n++ {
		if n > interval {
			t.Fatalf("%d steps after the end", n)
		}
	}
	if m.Err() != context.Canceled || m.Step(0) {
		t.Errorf("error %v", m.Err())
	}
}
