// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"encoding/binary"
	"sort"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/btf"
)

// Code is the code of a BPF object, with its maps and types. It is immutable and safe for use by many goroutines.
type Code struct {
	Order     binary.ByteOrder
	License   string     // "" for none
	Version   uint32     // number in the section "version"; 0 for none
	BTF       *btf.BTF   // nil without .BTF
	Funcs     []Function // sorted by section, then by offset
	Programs  []Program  // sorted by the section's name, then by offset
	Maps      []Map      // sorted by name
	StructOps []StructOpsMap
	Unread    string   // the first section for which libbpf ≥ 1.0 does not open the object; "" for none
	Static    string   // the first static function outside .text, for which libbpf does not open the object; "" for none
	ArenaData bool     // it has variables of an arena
	Data      []Data   // read-only data sections
	Externs   []Extern // sorted by name
	Sites     []Site   // one per CO-RE record; Fn is -1 if no function contains the instruction

	Unfolded uint64 // bytes of compressed sections and of those without bytes in the file

	lines map[string]sectionLines // keyed by section
	calls [][]int                 // functions that each calls or takes the address of
}

// Function is a function of the object.
type Function struct {
	Name    string // symbol
	Section string
	Start   int // slot in the section
	Insns   []Insn
	Global  bool // verified on its own
}

// Program is a function that is loaded, with the functions that it can call.
type Program struct {
	Fn       int
	Section  string   // name without the ? that keeps loaders from loading the program
	Attach   *Section // the meaning of the section's name; nil if no loader knows it
	AutoLoad bool     // loaded by default
	Funcs    []int    // Fn first
	Records  []int    // indices of the sites of Funcs, function by function
}

// Map is a map definition. Values that it does not have are 0: the loader sets or knows them.
type Map struct {
	Name       string
	Type       uint32 // enum bpf_map_type
	KeySize    uint32 // bytes
	ValueSize  uint32 // bytes
	MaxEntries uint32
	Flags      uint32   // BPF_F_*
	Pinning    uint32   // enum libbpf_pin_type
	Pinned     bool     // the definition says whether it is pinned
	TypedValue bool     // ValueSize is that of a type
	Tags       []string // tags of pointers in the type of the values, "kptr"; each once, in order
	Special    []string // structs in the type of the values that the kernel finds by name, "bpf_timer"; each once, in order
	Weak       bool     // its symbol is weak
	Inner      *Map     // inner map of a map of maps; nil if the definition has none
	Funcs      []int    // functions in the initial values of a program array
}

// StructOpsMap is a variable that loaders turn into a map of functions for the kernel.
type StructOpsMap struct {
	Name     string
	Type     string   // essential name of the kernel's struct
	Optional bool     // libbpf does not create it by default
	Link     bool     // it is attached by a link
	Members  []string // members that are set, in order
	Funcs    []int    // the functions of Members, -1 for those without one

	typ     btf.TypeID
	section string
}

// Data is a section whose content the loader freezes.
type Data struct {
	Bytes []byte
	vars  []variable // sorted by offset
}

// variable is a piece of a data section.
type variable struct {
	name      string
	off, size int64
}

// Variables returns the names of all variables.
func (d *Data) Variables() (names []string) {
	for _, v := range d.vars {
		names = append(names, v.name)
	}
	return names
}

// Variable returns the name of the variable that contains the byte at off, "" for none. Of variables with the same offset
// the last symbol is used.
func (d *Data) Variable(off int64) string {
	i := sort.Search(len(d.vars), func(i int) bool { return d.vars[i].off > off }) - 1
	if i < 0 || off-d.vars[i].off >= d.vars[i].size {
		return ""
	}
	return d.vars[i].name
}

// Extern is something that the kernel or the loader supplies.
type Extern struct {
	Name string
	Kind ExternKind
	Weak bool
	Size int        // bytes of a kconfig variable
	Type btf.TypeID // its VAR or FUNC; 0 when untyped
}

// ExternKind is the kind of an extern.
type ExternKind uint8

// The kinds of externs.
const (
	ExternUndeclared ExternKind = iota // not declared in BTF
	ExternKsym                         // a kfunc or a variable of the kernel
	ExternKconfig                      // a setting of the kernel's configuration, or a value that the loader knows
)

// Site is an instruction: its function and slot.
type Site struct{ Fn, Insn int }

// Source returns file:line of an instruction, "" if it is unknown.
func (o *Code) Source(s Site) string {
	f := &o.Funcs[s.Fn]
	return o.lines[f.Section].at(uint32(f.Start+s.Insn)*asm.InstructionSize, uint32(f.Start)*asm.InstructionSize).Source(o.BTF)
}
