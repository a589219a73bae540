// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Machines returns the machines that the object is for, as kernel.CanonicalArch
// spells them, sorted. None means any.
func (o *Object) Machines() []string { return slices.Clone(o.machines) }

// ForMachines returns the same object for these machines, in any spelling that
// kernel.CanonicalArch knows. None means any.
func (o *Object) ForMachines(machines ...string) *Object {
	var canonical []string
	for _, m := range machines {
		canonical = append(canonical, kernel.CanonicalArch(m))
	}
	slices.Sort(canonical)
	return o.withMachines(slices.Compact(canonical))
}

// IsFor reports whether the object is for a kernel: of its byte order, and for
// its machine if that is known. [Run] does not check it.
func (o *Object) IsFor(k *Kernel) bool {
	return o.order == k.Order() && (len(o.machines) == 0 || o.fits(k.Machine()))
}

func (o *Object) fits(machine string) bool {
	return len(o.machines) == 0 || machine == "" || slices.Contains(o.machines, machine)
}

// OnMachine returns the objects that are used on kernels of a machine, in any
// spelling that kernel.CanonicalArch knows: those of its byte order that are for
// it, or for any. For "", an unknown machine, it returns all of them.
func OnMachine(name string, objects ...*Object) []*Object {
	name = kernel.CanonicalArch(name)
	order := machine.OrderOf(name)
	return slices.DeleteFunc(slices.Clone(objects), func(o *Object) bool {
		return !o.fits(name) || order != nil && o.order != order
	})
}
