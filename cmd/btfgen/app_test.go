// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestMessages checks that each of joined errors is a message, and that messages are lines.
func TestMessages(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, tt := range []struct {
		err  error
		want []string
	}{
		{a, []string{"a"}},
		{errors.Join(a, b), []string{"a", "b"}},
		{usageError{errors.Join(a, errors.Join(b))}, []string{"a", "b"}},
		{fmt.Errorf("x: %w", errors.Join(a, b)), []string{"x: a; b"}},
		{errors.New("yaml: unmarshal errors:\n  line 1: a\n  line 2: b"), []string{"yaml: unmarshal errors: line 1: a; line 2: b"}},
	} {
		if got := messages(tt.err); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.err, got, tt.want)
		}
	}
}
