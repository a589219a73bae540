// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

func TestError(t *testing.T) {
	for _, tt := range []struct {
		err    *Error
		reason string
	}{
		{&Error{"p", "", errors.New("cause")}, "cause"},
		{&Error{"p", "xz", errors.New("xz: two\nlines")}, "xz: two lines"},
		{&Error{"p", "elf: .BTF", errors.New("a <b> & c")}, "elf: .BTF: a <b> & c"},
	} {
		if got := tt.err.Error(); got != "p: "+tt.reason {
			t.Errorf("%q, want the reason %q", got, tt.reason)
		}
	}
}

func TestErrors(t *testing.T) {
	a, b, other := &Error{Path: "a", Err: ErrNoKernel}, &Error{Path: "b", Err: errEmpty}, errors.New("other")
	var got []string
	for _, e := range Errors(errors.Join(a, errors.Join(b, other))) {
		got = append(got, e.Error())
	}
	if d := cmp.Diff([]string{a.Error(), b.Error(), "other"}, got); d != "" || Errors(nil) != nil {
		t.Error(d)
	}
	if err := wrap("outer", "xz", fmt.Errorf("read: %w", a)); err != error(a) {
		t.Errorf("wrapped twice: %v", err)
	}
}

// TestLoad checks that the error of a kernel's BTF does not repeat its name.
func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		vmlinux, module []byte
		want            string
	}{
		{blobLE, splitLE, ""},
		{blobLE[:40], splitLE, "header: string section at 40+5 exceeds 40 bytes of data"},
	} {
		k := &Kernel{BTF: tt.vmlinux, Modules: []relo.Module{{Name: "nf", BTF: tt.module}}, ModulePaths: []string{"nf.btf"}}
		err := k.Load(t.Context(), new(core.Target), "name")
		if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
		if err == nil && (len(k.Modules)+len(k.ModulePaths) > 0 || len(k.unfit) != 1) {
			t.Errorf("%d modules, %v", len(k.Modules), k.unfit)
		}
	}
}
