// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

var total int // keeps the compiler from dropping the reads

// BenchmarkFull measures what a whole vmlinux costs, by the passes over it, for
// the little-endian objects of testdata and BTFGEN_DEBIAN together. "read" is
// the measure: the bytes looked at once.
func BenchmarkFull(b *testing.B) {
	k := testinput.Kernels(b, "x86_64/6.12.107")[0]
	target, err := testinput.NewKernel(k.Name, k.BTF)
	if err != nil {
		b.Fatal(err)
	}
	set, objects := setFor(b, target)
	small, err := minimize.Blob(minimize.New(objects, minimize.Options{}).Minimize(b.Context(), target))
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes of BTF, %d bytes minimized", len(k.BTF), len(small))
	bench := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(k.BTF)))
			for b.Loop() {
				if err := fn(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}

	bench("read", func() error {
		sum := 0
		for _, c := range k.BTF {
			sum += int(c)
		}
		total += sum
		return nil
	})
	var view btf.BTF
	bench("load", func() error { return view.Load(b.Context(), k.BTF, nil) })
	names, n := wanted(set, &view)
	var ids [][]btf.TypeID
	bench("find", func() error {
		var err error
		ids, err = view.Find(b.Context(), names, n, ids)
		return err
	})
	bench("load+find", func() error {
		err := view.Load(b.Context(), k.BTF, nil)
		if err == nil {
			ids, err = view.Find(b.Context(), names, n, ids)
		}
		return err
	})
	kernel := target
	var fill core.Filler
	var full core.Table
	bench("relocate", func() error { // find included
		return fill.Fill(b.Context(), &full, set, kernel, nil)
	})
	m := minimize.New(objects, minimize.Options{})
	bench("minimize", func() error { // relocate and prove included
		_, err := m.Minimize(b.Context(), target)
		return err
	})
	var proof core.Target
	var again core.Table
	bench("prove", func() error {
		if err := proof.Load(b.Context(), k.Name, small); err != nil {
			return err
		}
		if err := fill.Fill(b.Context(), &again, set, &proof, nil); err != nil {
			return err
		}
		d, err := core.Compare(b.Context(), &full, &again)
		if d != nil {
			return d
		}
		return err
	})
	bench("all", func() error {
		if err := target.Load(b.Context(), k.Name, k.BTF); err != nil {
			return err
		}
		_, err := m.Minimize(b.Context(), target)
		return err
	})
}

// setFor returns the questions of all objects of the kernel's byte order.
func setFor(b *testing.B, t *core.Target) (*core.Set, []*core.Object) {
	b.Helper()
	var list []*core.Object
	for _, o := range testinput.Objects(b) {
		if o.Order() == t.Order() {
			list = append(list, o.Object)
		}
	}
	return core.NewSets(list).For(t), list
}

// wanted returns the names in a kernel that a set of relocations is about.
func wanted(set *core.Set, v *btf.BTF) (*btf.Names, int) {
	var names []string
	for id := range v.Named {
		t := v.Type(id)
		if n := strings.Clone(btf.Essential(string(t.Name()))); set.HasName(n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return btf.NewNames(names), len(names)
}
