// SPDX-License-Identifier: Apache-2.0

package oracle

import "fmt"

// Result is the output of one run of bpftool.
type Result struct {
	// Records are the relocations of all objects in order, up to the first that failed.
	Records []Record
	// Found are the candidates of each local type of an object, in the order of the log.
	Found []Found

	// ExitStatus is bpftool's: 0 for success, -1 if a signal ended it.
	ExitStatus int
	// Failure is bpftool's reason, empty if ExitStatus is 0.
	Failure string
	// Written reports whether bpftool wrote its output.
	Written bool

	// Warnings are the lines of libbpf outside the relocations.
	Warnings []string
	// Other are the lines that Parse does not understand. A test that relies on Records
	// must check that it is empty.
	Other []string
}

// Record is one relocation.
type Record struct {
	Program    string // the section
	Index      int    // position in its section, from 0
	Kind       string // libbpf's name for it: "byte_off"; empty if it could not be parsed
	Local      Spec
	Candidates []Candidate
	NoMatch    bool   // no candidate matched
	Err        string // the reason of a failure, such as ambiguity or damage, or empty
}

// Candidate is the match of one relocation on one target type.
type Candidate struct {
	Match bool
	Index int // position in the list of remaining candidates, from 0
	Spec
}

// Found is a target type with the essential name and kind of a local type. Only ID, kind
// and name of the specs are set.
type Found struct {
	Record        int // index into Result.Records of the relocation that needed it
	Local, Target Spec
	Module        string // "vmlinux" or a module's name
}

// Spec is a type and, except for type relocations, a field or enumerator of it. The
// strings are libbpf's.
type Spec struct {
	TypeID    uint32
	TypeKind  string // "struct", "enum64", "typedef", …
	TypeName  string // "task_struct"; "<anon>" if it has none
	Path      string // ".mm.pgd[3]", "::NAME = 4", or empty
	Raw       string // "0:3:1"; only for fields
	Offset    string // in bytes, "16", or bytes and bits, "16.3"; only for fields
	Truncated bool   // libbpf cut off the text in Path or even TypeName; Raw and Offset are missing
}

// String returns s as libbpf prints it.
func (s Spec) String() string {
	text := fmt.Sprintf("[%d] %s %s%s", s.TypeID, s.TypeKind, s.TypeName, s.Path)
	if s.Offset != "" {
		text += fmt.Sprintf(" (%s @ offset %s)", s.Raw, s.Offset)
	}
	return text
}
