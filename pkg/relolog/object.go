// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
)

// ErrNotBPF is returned for an ELF file that is not a BPF object.
var ErrNotBPF = core.ErrNotBPF

// ErrTooLarge is returned for an object or a kernel that exceeds a limit of
// docs/limits.md, which no real one comes near. The error names the limit.
var ErrTooLarge = limits.ErrTooLarge

// Object is the local side: a BPF object with its types and relocation
// records. It is immutable and safe for use by many goroutines.
type Object struct {
	object *core.Object
	set    func() *core.Set // set of o alone
}

func newObject(o *core.Object) *Object {
	return &Object{o, core.Alone(o)}
}

// ParseObject reads a BPF ELF object. The name is used in messages and logs. An
// object without relocations is not an error: [Object.Empty] gives the reason. data
// must not change while the object is in use. The object is for the machines whose
// registers its relocations read, and for any machine if they read none or test
// whether they exist. The error begins with the name; it is [ErrNotBPF],
// [ErrTooLarge], or says what is damaged.
func ParseObject(name string, data []byte) (*Object, error) {
	o, err := core.ParseObject(name, data)
	if err != nil {
		return nil, err
	}
	return newObject(o), nil
}

// Name returns the name that was given to ParseObject.
func (o *Object) Name() string { return o.object.Name() }

// Machines returns the machines that the object is for, as kernel.CanonicalArch
// spells them, sorted. None means any.
func (o *Object) Machines() []string { return o.object.Machines() }

// ForMachines returns the same object for these machines, in any spelling that
// kernel.CanonicalArch knows. None means any.
func (o *Object) ForMachines(machines ...string) *Object {
	return newObject(o.object.ForMachines(machines...))
}

// IsFor reports whether the object is for a kernel: of its byte order, and for
// its machine if that is known. [Run] does not check it.
func (o *Object) IsFor(t *Target) bool { return o.object.IsFor(t.kernel()) }

// OnMachine returns the objects that are used on kernels of a machine, in any
// spelling that kernel.CanonicalArch knows: those of its byte order that are for
// it, or for any. For "" it returns all of them.
func OnMachine(name string, objects ...*Object) []*Object {
	var out []*Object
	for _, o := range objects {
		if len(core.OnMachine(name, o.object)) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// Len returns the number of relocation records.
func (o *Object) Len() int { return o.object.Len() }

// Empty returns why the object has no relocations, or nil if it has some:
// [ErrNoRelocations], or an error that names the missing section.
func (o *Object) Empty() error { return o.object.Empty() }

// ErrNoRelocations is what [Object.Empty] returns for an object with all sections but
// no relocation.
var ErrNoRelocations = core.ErrNoRelocations

// Hash returns a hash of the distinct relocations of some objects and their byte
// order. Objects from [OnMachine] with equal hashes have equal minimized BTF. Names
// of objects, code, type IDs, and how often a relocation occurs do not count, nor do
// relocations that no loader accepts or that do not depend on the kernel.
func Hash(objects ...*Object) [32]byte {
	all := make([]*core.Object, len(objects))
	for i, o := range objects {
		all[i] = o.object
	}
	return core.Hash(all...)
}
