// SPDX-License-Identifier: Apache-2.0

// Package oracle gets libbpf's CO-RE decisions from bpftool. It is for tests only.
//
// "bpftool -d gen min_core_btf INPUT OUTPUT OBJECT" dry-runs the relocations of OBJECT.
// libbpf's debug log has the decision for each. [Run] runs bpftool and [Parse] turns the
// log into records:
//
//	libbpf: CO-RE relocating [2] struct root: found target candidate [7] struct root in [vmlinux]
//	libbpf: prog 'kprobe/f': relo #3: <byte_off> [2] struct root.high (0:2 @ offset 20.3)
//	libbpf: prog 'kprobe/f': relo #3: matching candidate #0 <byte_off> [7] struct root.high (0:3 @ offset 57)
//
// is one [Found] and one [Record] with the local [Spec] of the second line and
// a [Candidate] from the third. Properties of the log:
//
//   - The "prog" of min_core_btf is a section (.text too), and relo numbers
//     start from 0 in each. The log of a loader names the function instead.
//   - The search for candidates is logged once per local type, before the
//     first relocation that needs it. Candidates are numbered in the list as
//     earlier relocations of the type have narrowed it.
//   - A candidate that does not match has the part of its spec that matched. For an
//     enum value that part is always the first enumerator.
//   - There is no result value: byte_sz, signed and the shifts must be
//     calculated from the target.
//   - A field's offset is that of the field in bits, not that of the load, so the log
//     may have "57.4" where the loader patches in 56.
//   - An error ends the run. The log has the records up to the error, and OUTPUT is not
//     written. Some errors leave a line of bpftool, but none of libbpf.
//   - Specs are cut at 255 bytes ([Spec.Truncated]).
//
// Up to libbpf 0.7 a local spec is written
//
//	relo #3: kind <byte_off> (0), spec is [2] struct root.high (0:2 @ offset 20.3)
//
// and candidates have no kind. Parse reads both forms. The log has no levels, so a line
// that belongs to no relocation is a warning.
package oracle
