// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"encoding/binary"
	"iter"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/btf"
)

// Object is a BPF object with its code. After [File.Parse] nothing of it changes, and
// it is safe for use by many goroutines.
type Object struct {
	Order     binary.ByteOrder
	License   string     // "" for none
	BTF       *btf.BTF   // nil without .BTF
	Funcs     []Function // by section, then by offset
	Programs  []Program  // by name of section, then by offset
	Maps      []Map      // by name
	StructOps StructOps
	Unread    string   // the first section for which libbpf, since its version 1.0, does not open the object; "" for none
	Static    string   // the first static function outside .text, for which libbpf does not open the object; "" for none
	Data      []Data   // read-only data sections
	Externs   []Extern // by name
	Sites     []Site   // of the records; Fn is -1 where no function has the instruction

	Unfolded uint64 // bytes of sections that are not in the file as they are: compressed ones, and those of zeros

	ext   map[string]*ExtSection // by section
	calls [][]int                // functions that each calls or takes the address of
}

// Function is a function of the object.
type Function struct {
	Name    string
	Section string
	Start   int // in the section, slots
	Insns   []Insn
	Global  bool // verified on its own

	ignores registers // see Ignores
}

// Program is a function that is loaded, with all that it can call.
type Program struct {
	Fn       int
	Section  string   // without the ? that keeps loaders from loading it
	Attach   *Section // what the section's name means; nil for one that no loader knows
	AutoLoad bool     // loaded unless told otherwise
	Funcs    []int    // Fn first
	Records  []int    // those of its functions, by function
}

// Map is a map definition. What it does not say is 0: the loader sets it, or knows
// what it has to be.
type Map struct {
	Name       string
	Type       uint32 // enum bpf_map_type
	KeySize    uint32 // bytes
	ValueSize  uint32 // bytes
	MaxEntries uint32
	Flags      uint32 // BPF_F_*
	Typed      bool   // it has types of key and value
	Weak       bool   // its symbol is
	TypedValue bool   // ValueSize is that of a type
	Inner      *Map   // of a map of maps, nil where the definition does not say
}

// StructOps says which struct_ops maps an object has, and of which kinds they are.
type StructOps struct {
	Plain, Link bool
	Maps        []StructOpsMap
}

// StructOpsMap is a variable of which loaders make a map of functions for the kernel.
type StructOpsMap struct {
	Name     string
	Type     string // essential name of the kernel's struct
	Optional bool   // libbpf does not make it unless it is told to
}

// Data is a section whose content the loader freezes.
type Data struct {
	Bytes []byte
	vars  []variable // by offset
}

// variable is a piece of a data section.
type variable struct {
	name      string
	off, size int64
}

// Variables returns the names of all variables.
func (d *Data) Variables() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range d.vars {
			if !yield(v.name) {
				return
			}
		}
	}
}

// Variable returns the name of the variable that has the byte at off, "" where
// there is none. Of those with the same beginning the last symbol counts.
func (d *Data) Variable(off int64) string {
	i, _ := slices.BinarySearchFunc(d.vars, off, func(v variable, off int64) int {
		if v.off <= off {
			return -1
		}
		return 1
	})
	if i == 0 || off-d.vars[i-1].off >= d.vars[i-1].size {
		return ""
	}
	return d.vars[i-1].name
}

// Extern is what the kernel or the loader has to supply.
type Extern struct {
	Name string
	Kind ExternKind
	Weak bool
	Size int        // of a kconfig variable, bytes
	Type btf.TypeID // its VAR or FUNC; 0 when untyped
}

// ExternKind is where an extern is looked for.
type ExternKind uint8

// The kinds of externs.
const (
	ExternUndeclared ExternKind = iota // nothing says what it is
	ExternKsym                         // a kfunc or a variable of the kernel
	ExternKconfig                      // a setting of the kernel's build, or a fact that the loader knows
)

// Site is an instruction: its function, and the slot in there.
type Site struct{ Fn, Insn int }

// Source returns file:line of an instruction, "" where it is not known.
func (o *Object) Source(s Site) string {
	f := &o.Funcs[s.Fn]
	sec, ok := o.ext[f.Section]
	if !ok {
		return ""
	}
	l := sec.line(uint32(f.Start+s.Insn)*asm.InstructionSize, uint32(f.Start)*asm.InstructionSize)
	return l.source(o.BTF)
}
