// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/dryrun"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestRun runs objects of both byte orders on a big-endian and a damaged kernel.
func TestRun(t *testing.T) {
	const name = "6.12.107+deb13-s390x.btf.zst"
	src := testinput.Path(t, "testdata", "vmlinux", "debian", "13", "s390x", name)
	bad := filepath.Join(t.TempDir(), "bad.btf.zst")
	data, err := os.ReadFile(src)
	if err == nil {
		err = os.WriteFile(bad, data[:1000], 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := corpus.Open(t.Context(), []string{src, bad}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var objs []*core.Object
	names := []string{"execsnoop.bpfeb.o", "execsnoop.bpfel.o", "biolat.bpfeb.o"}
	for _, n := range names {
		objs = append(objs, testinput.Named(t, n).Object)
	}
	cfg := dryrun.Config{Objects: objs, Corpus: c, Jobs: 2}
	var got, skipped []string
	err = dryrun.Run(t.Context(), cfg, func(l dryrun.Log) error {
		n := 0
		for range l.Entries {
			n++
		}
		if n == 0 {
			t.Errorf("%s: empty log", l.Object)
		}
		got = append(got, l.Object+" on "+l.Kernel)
		return nil
	}, func(e *corpus.Error) { skipped = append(skipped, e.Path) })
	kernel := " on debian/13/s390x/6.12.107+deb13-s390x"
	if want := []string{names[0] + kernel, names[2] + kernel}; !slices.Equal(got, want) || err != nil {
		t.Errorf("%q, want %q; %v", got, want, err)
	}
	if want := []string{bad, names[1]}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	mine := errors.New("mine")
	if err := dryrun.Run(t.Context(), cfg, func(dryrun.Log) error { return mine }, func(*corpus.Error) {}); err != mine {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dryrun.Run(ctx, cfg, func(dryrun.Log) error { return nil }, func(*corpus.Error) {}); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// TestRunPanics checks that a panic on one object does not affect the others.
func TestRunPanics(t *testing.T) {
	src := testinput.Path(t, "testdata", "vmlinux", "debian", "12", "x86_64", "6.1.0-47-amd64.btf.zst")
	c, err := corpus.Open(t.Context(), []string{src}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objs := []*core.Object{testinput.Named(t, "execsnoop.bpfel.o").Object, testinput.Named(t, "biolat.bpfel.o").Object}
	real := *dryrun.Decide
	defer func() { *dryrun.Decide = real }()
	*dryrun.Decide = func(s *core.Set, ctx context.Context, k *core.Target) (*core.LibbpfDecider, error) {
		for _, o := range s.Objects() {
			if o == objs[0] {
				panic("trouble")
			}
		}
		return real(s, ctx, k)
	}
	var logs, skipped []string
	err = dryrun.Run(t.Context(), dryrun.Config{Objects: objs, Corpus: c, Jobs: 1}, func(l dryrun.Log) error {
		logs = append(logs, l.Object)
		return nil
	}, func(e *corpus.Error) { skipped = append(skipped, e.Error()) })
	want := "execsnoop.bpfel.o on debian/12/x86_64/6.1.0-47-amd64: defect of btfgen: trouble"
	if err != nil || !slices.Equal(logs, []string{"biolat.bpfel.o"}) || !slices.Equal(skipped, []string{want}) {
		t.Errorf("logs %q, skipped %q; %v", logs, skipped, err)
	}
}
