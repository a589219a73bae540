// SPDX-License-Identifier: Apache-2.0

// Package testlimit has a context that ends after a number of checks. It is for tests
// only.
package testlimit

import "context"

// Context ends when it is checked more than Left times. Code checks its context after a
// number of steps, so this limits steps, and a deadline would limit time.
type Context struct {
	context.Context
	Left int // checks
}

// Looks returns a context that ends after n checks.
func Looks(n int) *Context { return &Context{context.Background(), n} }

// Err counts a check.
func (c *Context) Err() error {
	if c.Left--; c.Left < 0 {
		return context.Canceled
	}
	return nil
}
