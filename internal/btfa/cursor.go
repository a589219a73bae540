// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCut says that a file ends too early.
var ErrCut = errors.New("cut short")

// Cursor reads a stream. After an error all values are zero.
type Cursor struct {
	B   []byte // what is left
	Err error
}

// Fail ends reading with an error. The first one counts.
func (c *Cursor) Fail(err error) {
	if c.Err == nil {
		c.Err = err
	}
	c.B = nil
}

// Byte reads a byte.
func (c *Cursor) Byte() byte {
	if len(c.B) == 0 {
		c.Fail(ErrCut)
		return 0
	}
	v := c.B[0]
	c.B = c.B[1:]
	return v
}

var errVarint = errors.New("number of more than 64 bits")

// Uvarint reads a number.
func (c *Cursor) Uvarint() uint64 {
	if len(c.B) > 0 && c.B[0] < 0x80 {
		v := c.B[0]
		c.B = c.B[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(c.B)
	switch {
	case n == 0:
		c.Fail(ErrCut)
		return 0
	case n < 0:
		c.Fail(errVarint)
		return 0
	}
	c.B = c.B[n:]
	return v
}

// Count reads a number of things that take at least one byte each in one of the
// streams, so that room can be made for them.
func (c *Cursor) Count(limit int, what string) int {
	v := c.Uvarint()
	if v > uint64(limit) {
		c.Fail(fmt.Errorf("%d %s, more than %d", v, what, limit))
		return 0
	}
	return int(v)
}

// Bytes reads n bytes.
func (c *Cursor) Bytes(n int) []byte {
	if n > len(c.B) {
		c.Fail(ErrCut)
		return nil
	}
	b := c.B[:n:n]
	c.B = c.B[n:]
	return b
}

// Text reads up to a NUL byte.
func (c *Cursor) Text() []byte {
	i := bytes.IndexByte(c.B, 0)
	if i < 0 {
		c.Fail(ErrCut)
		return nil
	}
	b := c.B[:i:i]
	c.B = c.B[i+1:]
	return b
}

// End checks that nothing is left.
func (c *Cursor) End() {
	if c.Err == nil && len(c.B) > 0 {
		c.Fail(fmt.Errorf("%d bytes too many", len(c.B)))
	}
}
