package testinput

import "context"

// LookLimit is a context that ends when it is looked at more than Left times.
// Work looks at its context once in so many steps, so that this bounds steps
// where a deadline would bound time.
type LookLimit struct {
	context.Context
	Left int
}

// Looks returns a context that ends after n looks.
func Looks(n int) *LookLimit { return &LookLimit{context.Background(), n} }

// Err counts the look.
func (c *LookLimit) Err() error {
	if c.Left--; c.Left < 0 {
		return context.Canceled
	}
	return nil
}
