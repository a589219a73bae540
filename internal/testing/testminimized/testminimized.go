// SPDX-License-Identifier: Apache-2.0

// Package testminimized has the minimized kernels of testdata, for tests of archives.
// It is for tests only.
package testminimized

import (
	"context"
	"sync"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/archive"
)

// minimized is the result of the first call of Kernels.
var minimized struct {
	sync.Once
	kernels []archive.Kernel
}

// Kernels returns the kernels of testdata/vmlinux, minimized for the tools
// among the objects of testdata/bpf. The caller must not change their BTF.
func Kernels(tb testing.TB) []archive.Kernel {
	tb.Helper()
	minimized.Do(func() { minimized.kernels = minimizeAll(tb) })
	if n := len(minimized.kernels); n < 5 {
		tb.Fatalf("testdata has %d kernels", n)
	}
	return append([]archive.Kernel(nil), minimized.kernels...)
}

func minimizeAll(tb testing.TB) (kernels []archive.Kernel) {
	tb.Helper()
	var objects []*core.Object
	for _, suffix := range []string{".bpfel.o", ".bpfeb.o"} {
		for _, name := range []string{"biolat", "bitfields", "dups", "enums", "execsnoop", "filelife", "kinds", "match", "profile", "runqlat", "tcplife"} {
			objects = append(objects, testinput.Named(tb, name+suffix).Object)
		}
	}
	min := minimize.New(objects, minimize.Options{})
	c, err := corpus.Open(context.Background(), []string{testinput.Path(tb, "testdata", "vmlinux")}, corpus.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	testinput.Each(tb, c, func(it *corpus.Kernel) {
		target, err := testinput.NewKernel(it.Name, it.BTF)
		if err != nil {
			tb.Fatal(err)
		}
		res, err := min.Minimize(tb.Context(), target)
		if err != nil {
			tb.Fatal(err)
		}
		kernels = append(kernels, archive.Kernel{Key: it.Key, BTF: res.BTF})
	})
	return kernels
}
