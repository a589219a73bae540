// SPDX-License-Identifier: Apache-2.0

package oracle

import "fmt"

// Result is what one run of bpftool said. It is not changed after [Parse] or
// [Run] returned it.
type Result struct {
	// Records has the relocations in the order of the objects and in each
	// object, up to the first that failed.
	Records []Record
	// Found has the candidates of each local type of an object, in the order
	// of the log.
	Found []Found

	// ExitStatus is bpftool's: 0 if all went well, -1 if a signal ended it.
	ExitStatus int
	// Failure is bpftool's reason, empty if ExitStatus is 0.
	Failure string
	// Written says that bpftool wrote its output.
	Written bool

	// Warnings has what libbpf said outside the relocations.
	Warnings []string
	// Other has the lines that were not understood. A test that relies on
	// Records has to check that it is empty.
	Other []string
}

// Record is one relocation.
type Record struct {
	Program    string // the section
	Index      int    // in its section, from 0
	Kind       string // libbpf's name for it: "byte_off"; empty if it could not be parsed
	Local      Spec
	Candidates []Candidate
	NoMatch    bool   // no candidate matched
	Err        string // why it failed: ambiguity, damage; empty if it did not
}

// Candidate is the match of one relocation on one target type.
type Candidate struct {
	Match bool
	Index int // in the list of candidates still left, from 0
	Spec
}

// Found is a target type that has the essential name and kind of a local one.
// Only ID, kind and name of the specs are set.
type Found struct {
	Record        int // index into Result.Records of the relocation it was looked up for
	Local, Target Spec
	Module        string // "vmlinux" or a module's name
}

// Spec is a type and, but for type relocations, what is meant inside it. The
// fields hold libbpf's text.
type Spec struct {
	TypeID    uint32
	TypeKind  string // "struct", "enum64", "typedef", …
	TypeName  string // "task_struct"; "<anon>" if it has none
	Path      string // ".mm.pgd[3]", "::NAME = 4", or empty
	Raw       string // "0:3:1"; empty but for fields
	Offset    string // in bytes, "16", or bytes and bits, "16.3"; empty but for fields
	Truncated bool   // libbpf ran out of room: Path, or even TypeName, is cut, Raw and Offset are missing
}

// String returns s as libbpf prints it.
func (s Spec) String() string {
	text := fmt.Sprintf("[%d] %s %s%s", s.TypeID, s.TypeKind, s.TypeName, s.Path)
	if s.Offset != "" {
		text += fmt.Sprintf(" (%s @ offset %s)", s.Raw, s.Offset)
	}
	return text
}
