// SPDX-License-Identifier: Apache-2.0

package relolog_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestZeroTarget uses the zero Target as a little-endian kernel without types.
func TestZeroTarget(t *testing.T) {
	var kernel relolog.Target
	if kernel.Name() != "" || kernel.Machine() != "" {
		t.Errorf("%q, %q", kernel.Name(), kernel.Machine())
	}
	o, err := relolog.ParseObject("biolat.bpf.o", testFile("bpf/biolat.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := relolog.Run(t.Context(), o, &kernel)
	if err != nil || len(l.Entries) != o.Len() {
		t.Fatalf("%d entries, %v", len(l.Entries), err)
	}
	if c := l.Counts(); c[relo.Poisoned] == 0 || c[relo.Resolved] != 0 {
		t.Errorf("%v", c)
	}
	big, err := relolog.ParseObject("biolat.bpf.o", testFile("bpf/biolat.bpfeb.o"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := relolog.Run(t.Context(), big, &kernel); !errors.Is(err, relolog.ErrByteOrder) {
		t.Errorf("big-endian object: %v", err)
	}
}

// TestForMachine overrides the machine of a kernel without changing the kernel.
func TestForMachine(t *testing.T) {
	x86, err := relolog.ParseObject("regs.o", testFile("bpf/regs_x86_bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	arm := x86.ForMachines("aarch64")
	for _, c := range []struct {
		machine string
		want    []*relolog.Object
	}{
		{"", []*relolog.Object{x86, arm}}, {"amd64", []*relolog.Object{x86}}, {"arm64", []*relolog.Object{arm}},
	} {
		kernel := new(relolog.Target).ForMachine(c.machine)
		var got []*relolog.Object
		for _, o := range []*relolog.Object{x86, arm} {
			if o.IsFor(kernel) {
				got = append(got, o)
			}
		}
		if !slices.Equal(got, c.want) || !slices.Equal(relolog.OnMachine(c.machine, x86, arm), c.want) {
			t.Errorf("machine %q: %d objects, want %d", c.machine, len(got), len(c.want))
		}
	}
	if new(relolog.Target).Machine() != "" {
		t.Error("ForMachine changed the kernel")
	}
}

// TestNewTargetErrors checks that errors name the kernel and the module.
func TestNewTargetErrors(t *testing.T) {
	vmlinux := testFile("vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	if _, err := relolog.NewTarget(t.Context(), "6.1", vmlinux[:100]); err == nil || err.Error()[:5] != "6.1: " {
		t.Errorf("damaged vmlinux: %v", err)
	}
	if _, err := relolog.NewTarget(t.Context(), "6.1", vmlinux, relolog.Module{Name: "ext4", BTF: []byte("x")}); err == nil || err.Error()[:18] != "6.1: module ext4: " {
		t.Errorf("damaged module: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := relolog.NewTarget(ctx, "6.1", vmlinux); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
