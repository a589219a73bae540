// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// FuzzKernel minimizes kernels that are not what they claim to be. Each
// gives a BTF that decides the same, which Minimize proves, or an error of its
// own.
func FuzzKernel(f *testing.F) {
	objs := objects(f)
	eachKernel(f, func(name string, data []byte) {
		full, err := relolog.NewTarget(name, data)
		if err != nil {
			f.Fatal(err)
		}
		out, err := minimize.New(objs, minimize.Options{}).Minimize(f.Context(), full)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(out)
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		full, err := relolog.NewTarget("fuzz", data)
		if err != nil {
			return
		}
		m := minimize.New(objs, minimize.Options{})
		out, err := m.Minimize(t.Context(), full)
		if errors.Is(err, minimize.ErrProof) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if _, err := rawbtf.New(out, nil); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range m.Decisions() {
			n++
		}
		if n == 0 {
			t.Error("no decisions")
		}
	})
}

// TestEndless asks for a typedef that leads back to itself.
func TestEndless(t *testing.T) {
	b := btfenc.NewBuilder(binary.LittleEndian)
	b.Type("cpumask_t", btfenc.KindTypedef, false, 0, 2)
	b.Type("", btfenc.KindConst, false, 0, 1)
	kernel, err := relolog.NewTarget("k", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	m := minimize.New(objects(t), minimize.Options{})
	if _, err := m.Minimize(t.Context(), kernel); err == nil || err.Error() != "type 2: typedefs and modifiers without end" {
		t.Errorf("error %v", err)
	}
}

// TestContainsItself has two structs of one name with an anonymous member each
// whose anonymous member is of its own type.
func TestContainsItself(t *testing.T) {
	b := btfenc.NewBuilder(binary.LittleEndian)
	b.Type("int", btfenc.KindInt, false, 0, 4) // 1
	b.Word(btfenc.IntSigned<<24 | 32)
	for id := uint32(2); id <= 4; id += 2 {
		b.Type("task_struct", btfenc.KindStruct, false, 2, 64)
		b.Word(b.String("pid"), 1, 0)
		b.Word(0, id+1, 32)
		b.Type("", btfenc.KindStruct, false, 2, 32)
		b.Word(b.String("tgid"), 1, 0)
		b.Word(0, id+1, 0)
	}
	kernel, err := relolog.NewTarget("k", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := minimize.New(objects(t), minimize.Options{}).Minimize(t.Context(), kernel); errors.Is(err, minimize.ErrProof) {
		t.Error(err)
	}
}
