package relolog

import (
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/engine"
)

// ErrNotBPF says that an ELF file is not a BPF object.
var ErrNotBPF = engine.ErrNotBPF

// Object is the local side: a BPF object with its types and relocation
// records. It is immutable and safe for use by many goroutines.
type Object struct{ o *engine.Object }

// ParseObject reads a BPF ELF object. The name is used in messages and logs.
// An object without .BTF, without .BTF.ext or without relocations is no error:
// [Object.Empty] says so. data must not change while the object is in use.
// Errors begin with the name; that of a file for another machine is
// [ErrNotBPF].
func ParseObject(name string, data []byte) (*Object, error) {
	o, err := engine.ParseObject(name, data)
	if err != nil {
		return nil, err
	}
	return &Object{o}, nil
}

// Name returns the name that was given to ParseObject.
func (o *Object) Name() string { return o.o.Name() }

// Order returns the byte order of the object.
func (o *Object) Order() binary.ByteOrder { return o.o.Order() }

// Len returns the number of relocation records.
func (o *Object) Len() int { return len(o.o.Records()) }

// Empty says why the object has no relocations, or "" if it has some.
func (o *Object) Empty() string { return o.o.Empty() }

// Hash returns a hash of the distinct relocations of some objects, of either
// byte order. It depends on what the relocations ask and on the byte order of
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
