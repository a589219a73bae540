// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func machineObject(t *testing.T, name string) *core.Object {
	t.Helper()
	o, err := core.ParseObject(name, read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestIsFor pairs objects with kernels whose machine is in their BTF or is set.
func TestIsFor(t *testing.T) {
	x86, arm64, s390 := machineObject(t, "regs_x86_bpfel.o"), machineObject(t, "regs_arm64_bpfel.o"), machineObject(t, "regs_s390_bpfeb.o")
	little, big := machineObject(t, "execsnoop.bpfel.o"), machineObject(t, "execsnoop.bpfeb.o")
	all := []*core.Object{x86, arm64, s390, little, big}
	want := map[string][]*core.Object{
		"x86_64": {x86, little}, "arm64": {arm64, little}, "s390x": {s390, big}, "arm": {little}, "ppc64le": {little},
	}
	sets := core.NewSets(all)
	check := func(target *core.Target, machine string) {
		t.Helper()
		got := slices.DeleteFunc(slices.Clone(all), func(o *core.Object) bool { return !o.IsFor(target) })
		if !slices.Equal(got, want[machine]) {
			t.Errorf("%s, %q: %d objects, want %d", target.Name(), machine, len(got), len(want[machine]))
		}
		if set := sets.For(target); set == nil || set != sets.For(target) {
			t.Errorf("%s: the set is made twice, or not at all", target.Name())
		}
	}
	n := 0
	for _, k := range testinput.Kernels(t, "6.1.") {
		target, err := testinput.NewKernel(k.Name, k.BTF)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if core.NewSets([]*core.Object{s390}).For(target) != nil {
			t.Errorf("%s: a set without objects", k.Name)
		}
		machine := k.Key.Canonical().Arch
		if target.Machine() != machine {
			t.Errorf("%s: is of %q by its BTF", k.Name, target.Machine())
		}
		check(target, machine)
		for _, told := range []string{"amd64", "aarch64", "armhf", "ppc64el"} {
			target.SetMachine(told)
			check(target, kernel.CanonicalArch(told))
		}
		target.SetMachine("")
		check(target, machine)
	}
	if n < 2 {
		t.Fatalf("%d kernels", n)
	}
	want[""] = all // of either byte order
	for machine, objects := range want {
		got := core.OnMachine(machine, all...)
		if !slices.Equal(got, objects) {
			t.Errorf("on %q: %d objects, want %d", machine, len(got), len(objects))
		}
	}
}

// TestForMachines checks that spellings do not count and that the object does not change.
func TestForMachines(t *testing.T) {
	o := machineObject(t, "regs_x86_bpfel.o")
	if got := strings.Join(o.ForMachines("x86", "aarch64", "amd64").Machines(), " "); got != "arm64 x86_64" {
		t.Errorf("for %q", got)
	}
	if got := o.ForMachines().Machines(); len(got) != 0 {
		t.Errorf("for %q, want any", got)
	}
	if got := strings.Join(o.Machines(), " "); got != "x86_64" {
		t.Errorf("now for %q", got)
	}
	if o.ForMachines("arm64").Len() != o.Len() || core.Hash(o) != core.Hash(o.ForMachines()) {
		t.Error("another object")
	}
}
