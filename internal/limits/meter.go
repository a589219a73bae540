// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"errors"
	"fmt"
)

// Meter limits the steps of work on outside data. The work must stop after too many steps or when a context is done. A Meter is not safe
// for concurrent use.
type Meter struct {
	ctx  context.Context
	what string
	max  int64
	left int64 // steps
	next int64 // value of left at which the context is checked again
	err  error
}

// interval is the number of steps between two checks of the context, less than a millisecond's work.
const interval = 1 << 12

// NewMeter returns a meter that allows max steps. what is their name in the error, in the plural: "comparisons of types".
func NewMeter(ctx context.Context, max int64, what string) *Meter {
	return &Meter{ctx: ctx, what: what, max: max, left: max, next: max}
}

// Step takes n steps and reports whether the work may continue. Once it returns false, it always does.
func (m *Meter) Step(n int) bool {
	m.left -= int64(n)
	return m.left > m.next || m.look()
}

func (m *Meter) look() bool {
	if m.err == nil {
		if m.left < 0 {
			m.err = &Exceeded{m.max, m.what}
		} else {
			m.err = m.ctx.Err()
		}
	}
	if m.err != nil {
		m.left, m.next = 0, m.max
		return false
	}
	m.next = max(m.left-interval, -1)
	return true
}

// Err returns why the work must stop: an [*Exceeded] or the error of the context. It is nil while Step returns true.
func (m *Meter) Err() error { return m.err }

// ErrTooLarge matches every [Exceeded] with errors.Is. The public packages export it.
var ErrTooLarge = errors.New("too large")

// Exceeded is the error for input that exceeds a limit.
type Exceeded struct {
	Max  int64
	What string // plural, such as "comparisons of types"
}

// Error returns "too large: more than 5 comparisons of types".
func (e *Exceeded) Error() string {
	return fmt.Sprintf("%v: more than %d %s", ErrTooLarge, e.Max, e.What)
}

// Is reports whether target is ErrTooLarge.
func (e *Exceeded) Is(target error) bool { return target == ErrTooLarge }
