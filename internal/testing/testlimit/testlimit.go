// SPDX-License-Identifier: Apache-2.0

// Package testlimit has a context that ends after so many looks at it. It is for
// tests only.
package testlimit

import "context"

// Context is one that ends when it is looked at more than Left times.
// Work looks at its context once in so many steps, so that this bounds steps
// where a deadline would bound time.
type Context struct {
	context.Context
	Left int // looks
}

// Looks returns a context that ends after n looks.
func Looks(n int) *Context { return &Context{context.Background(), n} }

// Err counts the look.
func (c *Context) Err() error {
	if c.Left--; c.Left < 0 {
		return context.Canceled
	}
	return nil
}
