// SPDX-License-Identifier: Apache-2.0

// Package oracle asks bpftool for libbpf's CO-RE decisions. It is for tests
// only; no command and no library of the project imports it.
//
// "bpftool -d gen min_core_btf INPUT OUTPUT OBJECT" dry-runs the relocations
// of OBJECT and has libbpf's debug log say how each was decided. [Run] runs it
// and [Parse] turns the log into records:
//
//	libbpf: CO-RE relocating [2] struct root: found target candidate [7] struct root in [vmlinux]
//	libbpf: prog 'kprobe/f': relo #3: <byte_off> [2] struct root.high (0:2 @ offset 20.3)
//	libbpf: prog 'kprobe/f': relo #3: matching candidate #0 <byte_off> [7] struct root.high (0:3 @ offset 57)
//
// is one [Found] and one [Record] with the local [Spec] of the second line and
// a [Candidate] from the third. What to know of the log:
//
//   - The "prog" of min_core_btf is a section (.text too), and relo numbers
//     start from 0 in each. The log of a loader names the function instead.
//   - The search for candidates is logged once per local type, before the
//     first relocation that needs it. Candidates are numbered in the list as
//     earlier relocations of the type have narrowed it.
//   - A candidate that does not match has the part of its spec that did. For
//     an enum value that part is the first enumerator, whatever was asked for.
//   - There is no result value: byte_sz, signed and the shifts must be
//     calculated from the target.
//   - A field's offset is that of the field in bits, not of the load, so
//     "57.4" may stand where the loader patches in 56.
//   - An error ends the run. The records up to it are there, and OUTPUT is not.
//     Some errors leave no line of libbpf's, only bpftool's.
//   - Specs are cut at 255 bytes ([Spec.Truncated]).
//
// Up to libbpf 0.7 a local spec is written
//
//	relo #3: kind <byte_off> (0), spec is [2] struct root.high (0:2 @ offset 20.3)
//
// and candidates have no kind; both forms are read. The log has no levels, so
// what is no relocation's is a warning.
package oracle
