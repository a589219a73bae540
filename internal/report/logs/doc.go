// SPDX-License-Identifier: Apache-2.0

// Package logs writes relocation logs for people: grouped by object and
// program, one line per relocation in libbpf's own notation,
//
//	#2 insn 41  <byte_off> [86] struct task_struct.fs (0:121 @ offset 1960)  →  [114] struct task_struct.fs (0:131 @ offset 1816)  1960 → 1816  resolved
//
// and, of several kernels, what differs between them before what does not.
// Candidates that differ only in their type ID are one line with their number, so that the log of a BTF with hundreds of copies of a type
// stays readable.
package logs
