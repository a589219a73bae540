// SPDX-License-Identifier: Apache-2.0

package relo

// Log is the relocation log of one object against one kernel.
type Log struct {
	Object  string
	Kernel  string
	Entries []Entry // sorted as the object's records
}

// Entry is the decision on one relocation record: where the record is, the local
// side, the outcome of each candidate, and the result. Its JSON form is stable;
// fields are only ever added. Entries may share slices and pointers, which must
// not be changed.
type Entry struct {
	Object  string `json:"object"`
	Program string `json:"program,omitempty"` // function of the instruction
	Section string `json:"section"`
	Index   int    `json:"index"` // among the records of the section, from 0
	Insn    int    `json:"insn"`  // instruction, counted from the start of the function
	Source  string `json:"source,omitempty"`
	Kind    Kind   `json:"kind"`
	Kernel  string `json:"kernel"`

	Local      Spec        `json:"local"`
	Candidates []Candidate `json:"candidates"`
	Target     *Spec       `json:"target,omitempty"` // where resolved, for all but local_type_id
	Old        uint64      `json:"old"`              // value on the local side
	New        *uint64     `json:"new,omitempty"`    // value on the target side
	Result     Result      `json:"result"`
	Reason     *Reason     `json:"reason,omitempty"` // why not resolved, nil if it is
}

// Relocation returns the kind and the local side: "byte_off struct task_struct.mm.pgd".
func (e *Entry) Relocation() string { return e.Kind.String() + " " + e.Local.Name(e.Kind) }

// Spec is one side of a relocation.
type Spec struct {
	TypeID uint32  `json:"type_id"`
	Type   string  `json:"type"`             // C syntax: "struct task_struct"
	Module *string `json:"module,omitempty"` // target side only; "" is vmlinux
	Raw    string  `json:"spec"`             // raw indices: "0:3:1"; "0" for whole types
	Path   string  `json:"path"`             // names: "mm.pgd"; the enumerator; "" for whole types

	Offset    *uint32 `json:"offset,omitempty"`     // byte offset of a field, rounded down
	BitOffset *uint32 `json:"bit_offset,omitempty"` // bit offset of a field that does not begin on a byte

	// Unsigned is how many bits the enumerators of an enum without a sign have: 32 or 64, else 0. Values of 32 bits are sign-extended
	// all the same, as in libbpf.
	Unsigned uint8 `json:"-"`
}

// Name returns the name of what the spec leads to, for a relocation of kind k:
// "struct task_struct.mm.pgd", "enum pid_type::PIDTYPE_PID".
func (s *Spec) Name(k Kind) string { return Name(k, s.Type, s.Path) }

// Name returns the name of what a relocation of kind k leads to, given a type
// and a path of names: "struct task_struct.mm.pgd", "enum pid_type::PIDTYPE_PID".
func Name(k Kind, typ, path string) string {
	switch {
	case path == "":
		return typ
	case k.IsEnumval():
		return typ + "::" + path
	case path[0] == '[':
		return typ + path
	}
	return typ + "." + path
}

// Candidate is a target type that was considered, and the outcome.
type Candidate struct {
	Spec
	Value  *uint64 `json:"value,omitempty"` // result of a match
	Match  bool    `json:"match"`
	Reason *Reason `json:"reason,omitempty"` // why it does not match, nil if it does
}

// Counts is a number of entries by result.
type Counts map[Result]int

// Counts counts the entries of the log.
func (l *Log) Counts() Counts {
	c := make(Counts)
	for i := range l.Entries {
		c[l.Entries[i].Result]++
	}
	return c
}
