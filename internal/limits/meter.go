// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"errors"
	"fmt"
)

// Meter counts the steps of work on outside data. The work ends when there are
// more of them than a limit allows, or when a context is done. What takes long
// has one, and asks it often. It is for one goroutine at a time.
type Meter struct {
	ctx  context.Context
	what string
	max  int64
	left int64 // steps
	next int64 // of left, when the context is looked at again
	err  error
}

// interval is how many steps go by between two looks at the context: less than
// a millisecond's work.
const interval = 1 << 12

// NewMeter returns a meter that allows max steps. what names them in the plural,
// for the error: "comparisons of types".
func NewMeter(ctx context.Context, max int64, what string) *Meter {
	return &Meter{ctx: ctx, what: what, max: max, left: max, next: max}
}

// Step takes n steps and reports whether the work may go on. Once it may not,
// it never may.
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

// Err says why the work must not go on: an [*Exceeded], or the error of the
// context. It is nil as long as Step returns true.
func (m *Meter) Err() error { return m.err }

// ErrTooLarge is what every [Exceeded] is, for errors.Is. The public packages export
// it.
var ErrTooLarge = errors.New("too large to tell")

// Exceeded is the error of input that takes more than a limit allows.
type Exceeded struct {
	Max  int64
	What string // what there are too many of: "comparisons of types"
}

// Error returns "too large to tell: more than 5 comparisons of types".
func (e *Exceeded) Error() string {
	return fmt.Sprintf("%v: more than %d %s", ErrTooLarge, e.Max, e.What)
}

// Is reports whether target is ErrTooLarge.
func (e *Exceeded) Is(target error) bool { return target == ErrTooLarge }
