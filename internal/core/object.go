// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ErrNotBPF says that an ELF file is not a BPF object.
var ErrNotBPF = bpfobj.ErrNotBPF

// Object is the local side: a BPF object with its types and relocation
// records. It is immutable and safe for use by many goroutines.
type Object struct {
	name    string
	btf     *btf.BTF // nil without .BTF
	raw     []byte   // the bytes of btf
	order   binary.ByteOrder
	why     error // why there are no relocations
	records []Record
	specs   []*spec // distinct ones, in the order of their first record

	machines []string // canonical spellings, sorted; none means any
	linked   func() ([]LinkedProgram, error)
}

// Record is one CO-RE relocation record of an object.
type Record struct {
	Section string // ELF section of the instruction
	Program string // function that the instruction is in, "" if unknown
	Index   int    // position among the records of the section, from 0
	Insn    int    // position in the function, or in the section where that is unknown, in instructions
	Kind    relo.Kind
	Offset  uint32 // offset of the instruction in the section, bytes

	line bpfobj.Line
	insn insn
	spec int32 // number of the spec
}

// ParseObject reads a BPF ELF object. An object without relocations is not an
// error: [Object.Empty] gives the reason. data must not change while the object is
// in use. The machines are those whose registers the relocations read, any if they
// read none. Errors begin with the name.
func ParseObject(name string, data []byte) (*Object, error) {
	f, err := bpfobj.Open(data)
	if err != nil {
		return nil, &bpfobj.Error{Object: name, Err: err}
	}
	return NewObject(name, f, func() (*bpfobj.Code, error) { return f.Parse(context.Background()) })
}

// NewObject makes an object of an opened file, as [ParseObject] does. parse returns the code, when it is needed.
func NewObject(name string, f *bpfobj.File, parse func() (*bpfobj.Code, error)) (*Object, error) {
	o := &Object{name: name, order: f.Order, btf: f.BTF, raw: f.Types}
	o.linked = sync.OnceValues(func() ([]LinkedProgram, error) { return link(parse()) })
	if err := o.addRecords(f); err != nil {
		return nil, &bpfobj.Error{Object: name, Err: err}
	}
	switch {
	case f.BTF == nil:
		o.why = errors.New(f.WithoutTypes())
	case f.Ext == nil:
		o.why = errors.New("no .BTF.ext section, which clang --target=bpf -g writes")
	case len(o.records) == 0:
		o.why = ErrNoRelocations
	}
	return o.withMachines(machinesOf(o.btf, o.specs)), nil
}

// withMachines returns a copy of o for these machines.
func (o *Object) withMachines(machines []string) *Object {
	c := *o
	c.machines = machines
	return &c
}

// Name returns the name that was given to ParseObject.
func (o *Object) Name() string { return o.name }

// Order returns the byte order of the object.
func (o *Object) Order() binary.ByteOrder { return o.order }

// Len returns the number of relocation records.
func (o *Object) Len() int { return len(o.records) }

// Records returns the relocation records in the object's order. The slice
// belongs to the object.
func (o *Object) Records() []Record { return o.records }

// BTF returns the object's own types, nil if it has none.
func (o *Object) BTF() *btf.BTF { return o.btf }

// Relocation returns kind and local side of a record: "byte_off struct task_struct.mm.pgd".
func (o *Object) Relocation(r *Record) string { return o.specs[r.spec].String() }

// Root returns the local type that a record is about, void if it does not exist.
func (o *Object) Root(r *Record) btf.Type {
	root := o.specs[r.spec].root
	if int(root) >= o.btf.NumTypes() {
		root = 0
	}
	return o.btf.Type(root)
}

// Local returns kind and local side of a record: "byte_off" and "struct task_struct.mm.pgd".
func (o *Object) Local(r *Record) (kind, name string) {
	s := o.specs[r.spec]
	return s.kind.String(), s.localName()
}

// Source returns file:line of a record, "" without line info.
func (o *Object) Source(r *Record) string { return r.line.Source(o.btf) }

// Empty returns why the object has no relocations, or nil if it has some: [ErrNoRelocations], or an error that names the missing section.
func (o *Object) Empty() error { return o.why }

// ErrNoRelocations is what Empty returns for an object with all sections but no relocation.
var ErrNoRelocations = errors.New("no CO-RE relocations")

// addRecords reads the records. Equal ones share a spec.
func (o *Object) addRecords(f *bpfobj.File) error {
	if f.Ext == nil {
		return nil
	}
	type key struct {
		typeID       btf.TypeID
		access, kind uint32
	}
	specs := make(map[key]int32)
	names, relos := 0, 0 // bytes, records
	for _, s := range f.Ext.Sections {
		relos += len(s.Records)
	}
	o.records = make([]Record, 0, relos)
	for _, s := range f.Ext.Sections {
		if len(s.Records) == 0 {
			continue
		}
		code, err := f.Section(s.Name)
		if err != nil {
			return err
		}
		for i := range s.Records {
			rec := &s.Records[i]
			k := key{rec.Type, rec.Access, rec.Kind}
			n, ok := specs[k]
			if !ok {
				n = int32(len(o.specs))
				specs[k] = n
				spec := parseSpec(o.btf, relo.Kind(rec.Kind), rec.Type, string(o.btf.Name(rec.Access)))
				if names += spec.size(); names > limits.SignatureBytes {
					return &limits.Exceeded{Max: limits.SignatureBytes, What: "bytes of names in access paths"}
				}
				o.specs = append(o.specs, spec)
			}
			o.records = append(o.records, Record{
				Section: s.Name, Program: rec.Func, Index: i, Insn: int((rec.Off - rec.Start) / insnSize),
				Kind: relo.Kind(rec.Kind), line: rec.Line, insn: readInsn(code, rec.Off, o.order), spec: n, Offset: rec.Off,
			})
		}
	}
	return nil
}

// Spec returns the number of the record's spec, which equal records share.
func (r *Record) Spec() int { return int(r.spec) }

// Machines returns the machines that the object is for, as kernel.CanonicalArch
// spells them, sorted. None means any.
func (o *Object) Machines() []string { return slices.Clone(o.machines) }

// Named returns the same object with another name.
func (o *Object) Named(name string) *Object {
	out := *o
	out.name = name
	return &out
}

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

func (o *Object) fits(machine string) bool {
	return len(o.machines) == 0 || machine == "" || slices.Contains(o.machines, machine)
}

// LinkedPrograms returns the linked programs of the object, none if its code cannot be read. The error
// is a [limits.Exceeded].
func (o *Object) LinkedPrograms() ([]LinkedProgram, error) { return o.linked() }
