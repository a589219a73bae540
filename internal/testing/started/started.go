// SPDX-License-Identifier: Apache-2.0

// Package started cancels a context as soon as a program has started, so that tests of how programs are ended need no time limit.
package started

import (
	"context"
	"os"
	"testing"
	"time"
)

// Context returns a context that is cancelled once there is a file at path. A script makes it as its first command:
//
//	: >path
func Context(t *testing.T, path string) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for t.Context().Err() == nil {
			if _, err := os.Stat(path); err == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return ctx
}
