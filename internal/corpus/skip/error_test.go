// SPDX-License-Identifier: Apache-2.0

package skip

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestError(t *testing.T) {
	for _, tt := range []struct {
		err    *Error
		reason string
	}{
		{&Error{Path: "p", What: "", Err: errors.New("cause")}, "cause"},
		{&Error{Path: "p", What: "xz", Err: errors.New("xz: two\nlines")}, "xz: two lines"},
		{&Error{Path: "p", What: "elf: .BTF", Err: errors.New("a <b> & c")}, "elf: .BTF: a <b> & c"},
	} {
		if got := tt.err.Error(); got != "p: "+tt.reason {
			t.Errorf("%q, want the reason %q", got, tt.reason)
		}
	}
}

func TestErrors(t *testing.T) {
	a, b, other := &Error{Path: "a", Err: errors.New("no kernel")}, &Error{Path: "b", Err: errors.New("empty")}, errors.New("other")
	var got []string
	for _, e := range Errors(errors.Join(a, errors.Join(b, other))) {
		got = append(got, e.Error())
	}
	if d := cmp.Diff([]string{a.Error(), b.Error(), "other"}, got); d != "" || Errors(nil) != nil {
		t.Error(d)
	}
	if err := Wrap("outer", "xz", fmt.Errorf("read: %w", a)); err != error(a) {
		t.Errorf("wrapped twice: %v", err)
	}
}
