// SPDX-License-Identifier: Apache-2.0

package limits

// What the code of one BPF object may take. The figures behind "real" are the
// largest met with the objects of Debian's tools, the tests' own, and a made-up one as
// large as the largest tracers'. Beyond these the object is refused.
const (
	// Sections bounds the sections of an object. Real: 508.
	Sections = 1 << 13

	// Symbols bounds its symbols. Real: 552.
	Symbols = 1 << 18

	// ObjectNames bounds the bytes of the names of symbols and of variables in
	// BTF, which can share their bytes in the file, and, by itself, of the names
	// of sections, functions and source lines in .BTF.ext. Real: 1.4 MB (tracee).
	ObjectNames = 32 << 20

	// Externals bounds how many kfuncs and variables of the kernel, and how many
	// types by their IDs, are told to come from the running kernel's own BTF. Real: 6.
	Externals = 256

	// PathBytes bounds the name of a source file; of those that are longer no line
	// is told. Linux opens none of more. Real: 68.
	PathBytes = 4 << 10

	// Functions bounds its functions. Real: 550.
	Functions = 1 << 16

	// Programs bounds those that can be loaded. Real: 250.
	Programs = 1 << 13

	// Instructions bounds the slots of all its code, of some 60 bytes each in
	// memory. The kernel takes a million from a program. Real: 172,328.
	Instructions = 1 << 20

	// AccessSteps bounds the instructions looked at to find where its programs read
	// their context; what those read that come after is not judged. Real: 11,033 for
	// one program.
	AccessSteps = 1 << 24

	// ReadLooks bounds the members looked at, for one kernel, to find which of them its
	// programs read; whether reads that come after take parts of pointers is not judged. Real: 446.
	ReadLooks = 1 << 20

	// Relocations bounds those that tell instructions what they refer to. Real:
	// 750.
	Relocations = 1 << 20

	// Inflated bounds the bytes of its compressed sections. Real: 0; no compiler
	// compresses what is read here.
	Inflated = 64 << 20

	// SectionBytes bounds one section, whether it is in the file or not. Real: 907 kB.
	SectionBytes = 64 << 20

	// LoaderTypes bounds the types of an object that cilium/ebpf is asked to read, which follows them recursively; whether it
	// reads one with more is not judged. Real: 5,000.
	LoaderTypes = 1 << 17

	// Called bounds the functions of each program, of all programs together.
	// Real: 1,450.
	Called = 1 << 20

	// CalledInsns bounds their slots. Real: 450,842.
	CalledInsns = 1 << 26

	// CalledRecords bounds their relocation records. Real: 92,270.
	CalledRecords = 1 << 22

	// ParseSteps bounds what else reading an object looks at: members of the
	// types of maps, CO-RE records. Real: 34,752 records (tracee).
	ParseSteps = 1 << 26
)

// What exploring one program may take, on one kernel. Beyond it is not known
// whether an instruction that was not reached can be: "too large to tell".
const (
	// ExploreSteps bounds the instructions executed. The kernel's verifier takes a
	// million. Real: 12,411.
	ExploreSteps = 1_000_000

	// ConstantStates bounds the states that are kept apart where paths meet because
	// constants of the code differ, such as the counter of a loop. Constants that
	// come from relocations or the loader are kept.
	ConstantStates = 4

	// States bounds the states that are kept apart where paths meet; more are
	// merged, and what is reached then is reached perhaps. PreciseStates is the same
	// where a function only returns, and where a first exploration was not precise
	// enough. Real programs get there now and then.
	States        = 8
	PreciseStates = 64

	// StateBytes bounds all states that are kept or wait, of one function and what it hands
	// pointers to its stack. Real: 1.2 MB.
	StateBytes = 32 << 20

	// ExploreWork bounds instructions executed and values of states compared, at
	// some five nanoseconds each. Real: 175,435.
	ExploreWork = 1 << 26
)

// What checking one object may take, on one kernel.
const (
	// ObjectWork bounds ExploreWork of all its programs. Those that come when it is
	// spent are not explored. Real: 352,594.
	ObjectWork = 1 << 27

	// Findings bounds those on the code of its programs. Of programs that come
	// after as many none is told. Real: 10,660.
	Findings = 1 << 17

	// Patterns bounds the patterns of functions that the programs of all objects
	// attach to. Real: none of these has one.
	Patterns = 1 << 8

	// ExternSteps bounds the types and parameters that are compared for one extern.
	// If they are not enough the types differ. Real: 5.
	ExternSteps = 1 << 12
)
