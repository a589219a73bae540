// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"encoding/binary"
	"slices"

	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/machine"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ErrNotBPF says that an ELF file is not a BPF object.
var ErrNotBPF = engine.ErrNotBPF

// Object is the local side: a BPF object with its types and relocation
// records. It is immutable and safe for use by many goroutines.
type Object struct {
	o        *engine.Object
	machines []string
}

// ParseObject reads a BPF ELF object. The name is used in messages and logs.
// An object without .BTF, without .BTF.ext or without relocations is no error:
// [Object.Empty] says so. data must not change while the object is in use.
// The object is for the machines whose registers its relocations read, for any if they read none or ask first whether
// they exist; [Object.ForMachines] says otherwise. Errors begin with the name; that of a file for another machine is
// [ErrNotBPF].
func ParseObject(name string, data []byte) (*Object, error) {
	o, err := engine.ParseObject(name, data)
	if err != nil {
		return nil, err
	}
	return &Object{o, machine.OfObject(o)}, nil
}

// Name returns the name that was given to ParseObject.
func (o *Object) Name() string { return o.o.Name() }

// Order returns the byte order of the object.
func (o *Object) Order() binary.ByteOrder { return o.o.Order() }

// Machines returns the machines that the object is for, as kernel.CanonicalArch spells them, sorted. None means any.
func (o *Object) Machines() []string { return slices.Clone(o.machines) }

// ForMachines returns the same object for these machines, in any spelling that kernel.CanonicalArch knows. None means
// any.
func (o *Object) ForMachines(machines ...string) *Object {
	out := &Object{o: o.o}
	for _, m := range machines {
		out.machines = append(out.machines, kernel.CanonicalArch(m))
	}
	slices.Sort(out.machines)
	out.machines = slices.Compact(out.machines)
	return out
}

// IsFor reports whether the object is for a kernel: of its byte order, and of one of its machines unless nothing
// tells the kernel's. [Run] does not ask.
func (o *Object) IsFor(t *Target) bool {
	return o.Order() == t.Order() && (len(o.machines) == 0 || o.fits(t.Machine()))
}

func (o *Object) fits(machine string) bool {
	return len(o.machines) == 0 || machine == "" || slices.Contains(o.machines, machine)
}

// OnMachine returns those of objects that are used on kernels of a machine, in any spelling that
// kernel.CanonicalArch knows: those of its byte order that are for it, or for any. "" stands for a machine that
// nothing tells, where all of them are used.
func OnMachine(name string, objects ...*Object) []*Object {
	name = kernel.CanonicalArch(name)
	order := machine.OrderOf(name)
	return slices.DeleteFunc(slices.Clone(objects), func(o *Object) bool {
		return !o.fits(name) || order != nil && o.Order() != order
	})
}

// Len returns the number of relocation records.
func (o *Object) Len() int { return len(o.o.Records()) }

// Empty says why the object has no relocations, or "" if it has some.
func (o *Object) Empty() string { return o.o.Empty() }

// NoRelocations is what [Object.Empty] says of an object that has all it takes for relocations and merely
// has none, as small programs do. Other answers name a section that is missing.
const NoRelocations = engine.NoRelocations

// Hash returns a hash of the distinct relocations of some objects, of either
// byte order and any machines: what of [OnMachine] has one hash gets one minimized BTF. It depends on what the relocations ask and on the byte order of
// those who ask, but not on names of objects, on code, on type IDs, or on how
// often something is asked: a change of an object that keeps the hash keeps its
// minimized BTF. Relocations that no loader accepts do not count, nor do those
// that ask nothing of the kernel.
func Hash(objects ...*Object) [32]byte {
	all := make([]*engine.Object, len(objects))
	for i, o := range objects {
		all[i] = o.o
	}
	return engine.Hash(all...)
}

func init() {
	engine.Public.Object = func(o any) *engine.Object { return o.(*Object).o }
	engine.Public.Kernel = func(t any) *engine.Kernel { return &t.(*Target).k }
}
