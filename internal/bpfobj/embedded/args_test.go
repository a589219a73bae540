// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/limits"
)

// TestSplitMachine separates the machines of an argument from the path.
func TestSplitMachine(t *testing.T) {
	for arg, want := range map[string]File{
		"a.o":             {Path: "a.o"},
		"x86_64=a.o":      {Path: "a.o", explicit: true, machines: []string{"x86_64"}},
		"amd64,aarch64=a": {Path: "a", explicit: true, machines: []string{"x86_64", "arm64"}},
		"powerpc=a":       {Path: "a", explicit: true, machines: []string{"ppc64", "ppc64le"}},
		"any=a":           {Path: "a", explicit: true},
		"arm64=a=b":       {Path: "a=b", explicit: true, machines: []string{"arm64"}},
		"a=b.o":           {Path: "a=b.o"},
		"./x86_64=a.o":    {Path: "./x86_64=a.o"},
		"=a":              {Path: "=a"},
		"x86_64,=a":       {Path: "x86_64,=a"},
		"x86_64,any=a":    {Path: "x86_64,any=a"},
		"x86_64,x87=a":    {Path: "x86_64,x87=a"},
		"dir/x86_64=a.o":  {Path: "dir/x86_64=a.o"},
		"x86_64":          {Path: "x86_64"},
	} {
		if d := cmp.Diff(want, splitMachine(arg), cmp.AllowUnexported(File{})); d != "" {
			t.Errorf("%s: %s", arg, d)
		}
	}
}

// TestFilesLimits checks that files are bounded, and that directories end with their context.
func TestFilesLimits(t *testing.T) {
	var over *limits.Exceeded
	if _, err := Files(t.Context(), slices.Repeat([]string{"x"}, limits.ObjectFiles+1)); !errors.As(err, &over) {
		t.Errorf("too many objects: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Files(ctx, []string{t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
