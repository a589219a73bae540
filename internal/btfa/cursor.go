// SPDX-License-Identifier: Apache-2.0

package btfa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCut is returned for a file that ends too early.
var ErrCut = errors.New("cut short")

// Cursor reads a stream. After an error all values are zero.
type Cursor struct {
	b []byte
	// at is the offset in b. To cut b off instead would write a pointer, which is slower during garbage collection.
	at  int
	Err error
}

// NewCursor returns a cursor at the beginning of b.
func NewCursor(b []byte) Cursor { return Cursor{b: b} }

// Fail ends reading with an error. Later errors are ignored.
func (c *Cursor) Fail(err error) {
	if c.Err == nil {
		c.Err = err
	}
	c.b, c.at = nil, 0
}

// Len returns the number of unread bytes.
func (c *Cursor) Len() int { return len(c.b) - c.at }

// Rest reads all unread bytes.
func (c *Cursor) Rest() []byte { return c.Bytes(c.Len()) }

// Byte reads a byte.
func (c *Cursor) Byte() byte {
	if uint(c.at) < uint(len(c.b)) {
		v := c.b[c.at]
		c.at++
		return v
	}
	return c.cut()
}

func (c *Cursor) cut() byte {
	c.Fail(ErrCut)
	return 0
}

// Uvarint reads a number.
func (c *Cursor) Uvarint() uint64 {
	if uint(c.at) < uint(len(c.b)) && c.b[c.at] < 0x80 {
		v := c.b[c.at]
		c.at++
		return uint64(v)
	}
	return c.uvarint()
}

func (c *Cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b[c.at:])
	switch {
	case n == 0:
		c.Fail(ErrCut)
		return 0
	case n < 0:
		c.Fail(errors.New("number of more than 64 bits"))
		return 0
	}
	c.at += n
	return v
}

// Count reads the number of things that follow. The caller can allocate memory for as
// many as limit.
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
	if n > c.Len() {
		c.Fail(ErrCut)
		return nil
	}
	b := c.b[c.at : c.at+n : c.at+n]
	c.at += n
	return b
}

// Text reads up to a NUL byte.
func (c *Cursor) Text() []byte {
	i := bytes.IndexByte(c.b[c.at:], 0)
	if i < 0 {
		c.Fail(ErrCut)
		return nil
	}
	b := c.Bytes(i)
	c.at++
	return b
}

// End fails if there are unread bytes.
func (c *Cursor) End() {
	if n := c.Len(); c.Err == nil && n > 0 {
		c.Fail(fmt.Errorf("%d bytes too many", n))
	}
}
