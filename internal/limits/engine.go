// SPDX-License-Identifier: Apache-2.0

package limits

// What matching, marking and proving may take, for one kernel and the
// relocations of all objects together. The figures behind "real" are the largest
// met with 88 objects of Debian, the tests' own, and one with 400 questions in
// 35,000 records, on 38 kernels of eleven releases. They are of CentOS 8 on
// arm64, which has 27 MB of BTF that nobody deduplicated, where nothing else is
// said.
const (
	// SectionNames bounds the bytes of an object's names of sections, if each of
	// them were as long as all of them together. Real: 423 kB.
	SectionNames = 64 << 20

	// Modifiers bounds a chain of modifiers and typedefs, and of arrays where a size is
	// asked for, as libbpf's MAX_RESOLVE_DEPTH does. Where it only looks for what
	// is behind them libbpf has no bound. Real: 4.
	Modifiers = 32

	// NameBytes bounds a name in BTF. The kernel refuses its own of more than 512
	// bytes. A longer one equals no other, and is no candidate's: a kernel that
	// has one which begins as an object's type does is skipped. Real: 74 bytes.
	NameBytes = 4 << 10

	// Candidates bounds how many types of a kernel share one essential name that
	// is asked for. Each costs an outcome for each question. Real: 476
	// (task_struct).
	Candidates = 1 << 14

	// Outcomes bounds how many matches are tried: questions times candidates.
	// They are kept, in some 50 bytes each. Real: 104,362.
	Outcomes = 1 << 21

	// Comparisons bounds how many members, parameters, enumerators and pairs of
	// types all matches look at, at some ten nanoseconds each. Real: 7.6 million.
	Comparisons = 1 << 27

	// MatchSteps bounds those of one match. Real: 553 (Linux 6.18 on x86-64).
	MatchSteps = 1 << 20

	// Pairs bounds the pairs of types that one match visits under the loose rules,
	// and so how deep they go. Real: 24.
	Pairs = 1 << 16

	// Decisions bounds records times candidates, each of which may have to be
	// asked again for each record, and once more where the order of candidates
	// changes. Real: 9.4 million.
	Decisions = 1 << 27

	// TypesInRow bounds how many types lead from one to the next without a struct or union, where cilium/ebpf follows
	// them. It recurses for each. Real: 13.
	TypesInRow = 1 << 8

	// TypePath bounds the longest path through the types of a kernel with a module, or of an object, where cilium/ebpf follows
	// them. It may recurse for each: 2.4 kB a type, of the 512 MiB that Go lets a stack have; half of both on 32-bit machines.
	// Real: 166,747; 5,480 where BTF is deduplicated.
	TypePath = 100_000 << (^uint(0) >> 63)

	// SignatureBytes bounds what is written down of an object's local types, to
	// see which records ask the same. What is beyond it is taken for different
	// questions. Real: 23.5 kB.
	SignatureBytes = 16 << 20

	// Types bounds how many types a minimized BTF begins with, before equal ones
	// are merged. Real: 19,289.
	Types = 1 << 18

	// Members bounds how many members and enumerators those have together. Real:
	// 32,433.
	Members = 1 << 20

	// OutputNames bounds the bytes of all their names. Real: 297 kB.
	OutputNames = 32 << 20

	// Marks bounds the steps of finding out which members are needed. Real:
	// 638,845.
	Marks = 1 << 25

	// KeptDepth bounds how many types that are kept are inside each other, which
	// the proof follows. Real: 30.
	KeptDepth = 1 << 9
)
