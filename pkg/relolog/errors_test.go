// SPDX-License-Identifier: Apache-2.0

package relolog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestErrors checks that callers can distinguish what goes wrong, and that errors
// begin with what they are about.
func TestErrors(t *testing.T) {
	object := testbtf.Object(t, binary.LittleEndian, "struct task 4: pid int 0", "byte_off struct task.pid")
	types := testbtf.Types(t, binary.LittleEndian, "struct task 4: pid int 0")
	parse := func(data []byte) error {
		_, err := relolog.ParseObject("x.bpf.o", data)
		return err
	}
	target := func(ctx context.Context, data []byte, modules ...relolog.Module) error {
		_, err := relolog.NewTarget(ctx, "6.1", data, modules...)
		return err
	}
	on := func(types []byte, use func(*relolog.Object, *relolog.Target) error) error {
		o, err := relolog.ParseObject("x.bpf.o", object)
		if err != nil {
			t.Fatal(err)
		}
		k, err := relolog.NewTarget(t.Context(), "6.1", types)
		if err != nil {
			t.Fatal(err)
		}
		return use(o, k)
	}
	run := func(o *relolog.Object, k *relolog.Target) error {
		_, err := relolog.Run(t.Context(), o, k)
		return err
	}
	reduce := func(o *relolog.Object, k *relolog.Target) error {
		_, err := minimize.New([]*relolog.Object{o}, minimize.Options{}).Minimize(t.Context(), k)
		return err
	}
	x86 := bytes.Clone(object)
	binary.LittleEndian.PutUint16(x86[18:], 62)
	long := testbtf.Types(t, binary.LittleEndian, "struct task___"+strings.Repeat("x", 5000)+" 4: pid int 0")
	big := testbtf.Types(t, binary.BigEndian, "struct task 4: pid int 0")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name   string
		err    error
		want   error
		prefix string
	}{
		{"x86-64 object", parse(x86), relolog.ErrNotBPF, "x.bpf.o: "},
		{"no BTF", target(t.Context(), make([]byte, 100)), relolog.ErrNotBTF, "6.1: "},
		{"module without BTF", target(t.Context(), types, relolog.Module{Name: "nf", BTF: make([]byte, 100)}), relolog.ErrNotBTF, "6.1: module nf: "},
		{"ended context", target(ended, types), context.Canceled, ""},
		{"big-endian kernel", on(big, run), relolog.ErrByteOrder, ""},
		{"long name", on(long, run), relolog.ErrTooLarge, ""},
		{"long name, minimized", on(long, reduce), minimize.ErrTooLarge, ""},
		{"big-endian kernel, minimized", on(big, reduce), minimize.ErrNoObject, ""},
	} {
		if !errors.Is(tt.err, tt.want) || !strings.HasPrefix(tt.err.Error(), tt.prefix) {
			t.Errorf("%s: error %q, want one that begins with %q and is %q", tt.name, tt.err, tt.prefix, tt.want)
		}
		for _, other := range []error{relolog.ErrNotBPF, relolog.ErrNotBTF, relolog.ErrByteOrder, relolog.ErrTooLarge, minimize.ErrNoObject, minimize.ErrProof} {
			if other != tt.want && errors.Is(tt.err, other) {
				t.Errorf("%s: error %q is also %q", tt.name, tt.err, other)
			}
		}
	}
}
