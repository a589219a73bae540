// SPDX-License-Identifier: Apache-2.0

package main

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

// TestSplitMachine holds what of an argument is a machine.
func TestSplitMachine(t *testing.T) {
	for arg, want := range map[string]objectFile{
		"a.o":              {path: "a.o"},
		"x86_64=a.o":       {path: "a.o", explicit: true, machines: []string{"x86_64"}},
		"amd64,aarch64=a":  {path: "a", explicit: true, machines: []string{"x86_64", "arm64"}},
		"powerpc=a":        {path: "a", explicit: true, machines: []string{"ppc64", "ppc64le"}},
		"any=a":            {path: "a", explicit: true},
		"arm64=a=b":        {path: "a=b", explicit: true, machines: []string{"arm64"}},
		"arm64=@list":      {path: "@list", explicit: true, machines: []string{"arm64"}},
		"a=b.o":            {path: "a=b.o"},
		"./x86_64=a.o":     {path: "./x86_64=a.o"},
		"=a":               {path: "=a"},
		"x86_64,=a":        {path: "x86_64,=a"},
		"x86_64,any=a":     {path: "x86_64,any=a"},
		"x86_64,x87=a":     {path: "x86_64,x87=a"},
		"dir/x86_64=a.o":   {path: "dir/x86_64=a.o"},
		"x86_64":           {path: "x86_64"},
		"@lists/arm64=a.o": {path: "@lists/arm64=a.o"},
	} {
		if d := cmp.Diff(want, splitMachine(arg), cmp.AllowUnexported(objectFile{})); d != "" {
			t.Errorf("%s: %s", arg, d)
		}
	}
}

// TestObjectFilesLimits wants lists and directories to be bounded, and to end with their context.
func TestObjectFilesLimits(t *testing.T) {
	list := func(text string) string {
		p := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var over *limits.Exceeded
	if _, err := objectFiles(t.Context(), []string{"@" + list(strings.Repeat("x\n", limits.ObjectFiles+1))}); !errors.As(err, &over) {
		t.Errorf("too many objects: %v", err)
	}
	large := list("#" + strings.Repeat("x", limits.ObjectList))
	if _, err := objectFiles(t.Context(), []string{"@" + large}); err == nil || !strings.HasSuffix(err.Error(), "larger than 1048576 bytes: not a list of objects") {
		t.Errorf("large list: %v", err)
	}
	if _, err := objectFiles(t.Context(), []string{"@" + list("x\x00")}); err == nil || !strings.HasSuffix(err.Error(), "has a zero byte: not a list of objects") {
		t.Errorf("binary list: %v", err)
	}
	if _, err := objectFiles(t.Context(), []string{"@" + t.TempDir()}); err == nil || !strings.HasSuffix(err.Error(), "is a directory") {
		t.Errorf("a directory as list: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := objectFiles(ctx, []string{filepath.Dir(large)}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
