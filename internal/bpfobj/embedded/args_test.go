// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/limits"
)

// TestSplitMachine separates the machines of an argument from the path.
func TestSplitMachine(t *testing.T) {
	for arg, want := range map[string]File{
		"a.o":              {Path: "a.o"},
		"x86_64=a.o":       {Path: "a.o", explicit: true, machines: []string{"x86_64"}},
		"amd64,aarch64=a":  {Path: "a", explicit: true, machines: []string{"x86_64", "arm64"}},
		"powerpc=a":        {Path: "a", explicit: true, machines: []string{"ppc64", "ppc64le"}},
		"any=a":            {Path: "a", explicit: true},
		"arm64=a=b":        {Path: "a=b", explicit: true, machines: []string{"arm64"}},
		"arm64=@list":      {Path: "@list", explicit: true, machines: []string{"arm64"}},
		"a=b.o":            {Path: "a=b.o"},
		"./x86_64=a.o":     {Path: "./x86_64=a.o"},
		"=a":               {Path: "=a"},
		"x86_64,=a":        {Path: "x86_64,=a"},
		"x86_64,any=a":     {Path: "x86_64,any=a"},
		"x86_64,x87=a":     {Path: "x86_64,x87=a"},
		"dir/x86_64=a.o":   {Path: "dir/x86_64=a.o"},
		"x86_64":           {Path: "x86_64"},
		"@lists/arm64=a.o": {Path: "@lists/arm64=a.o"},
	} {
		if d := cmp.Diff(want, splitMachine(arg), cmp.AllowUnexported(File{})); d != "" {
			t.Errorf("%s: %s", arg, d)
		}
	}
}

// TestFilesLimits checks that lists and directories are bounded, and end with their context.
func TestFilesLimits(t *testing.T) {
	list := func(text string) string {
		p := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var over *limits.Exceeded
	if _, err := Files(t.Context(), []string{"@" + list(strings.Repeat("x\n", limits.ObjectFiles+1))}); !errors.As(err, &over) {
		t.Errorf("too many objects: %v", err)
	}
	large := list("#" + strings.Repeat("x", limits.ObjectList))
	if _, err := Files(t.Context(), []string{"@" + large}); err == nil || !strings.HasSuffix(err.Error(), "larger than 1048576 bytes: not a list of objects") {
		t.Errorf("large list: %v", err)
	}
	if _, err := Files(t.Context(), []string{"@" + list("x\x00")}); err == nil || !strings.HasSuffix(err.Error(), "has a zero byte: not a list of objects") {
		t.Errorf("binary list: %v", err)
	}
	if _, err := Files(t.Context(), []string{"@" + t.TempDir()}); err == nil || !strings.HasSuffix(err.Error(), "is a directory") {
		t.Errorf("a directory as list: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Files(ctx, []string{filepath.Dir(large)}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
