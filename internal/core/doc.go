// SPDX-License-Identifier: Apache-2.0

// Package core decides what loaders make of CO-RE relocations. Nothing else
// does: the log renders it, the minimizer marks from it, the proof, the counts
// of generate, check and verify read it.
//
//	object ──► questions ─┐
//	                      ├─► outcomes ──► decisions
//	kernel ──► candidates ┘      │
//	                             ├─► needs: what a minimized BTF has to keep
//	                             └─► columns: what the proof compares
//
// The parts, each in a file of that name:
//
//   - question: what of a relocation the target side depends on. Records with the
//     same question have the same outcomes, so a [Set] asks each once. Two specs
//     ask the same if their signatures are equal (signature.go).
//   - outcome: what one question makes of one candidate: a match or not, where,
//     and every value that relocations take from it. A [Table] is all of them for
//     one kernel. match.go follows a spec through a candidate
//     (bpf_core_spec_match), walk.go compares types, value.go computes
//     (bpf_core_calc_field_relo), miss.go says why not, when asked.
//   - decision: what libbpf makes of all outcomes of a record: the candidates in
//     order, less those ruled out before (bpf_core_calc_relo_insn); then patch.go
//     looks at the instruction (bpf_core_patch_insn). group.go has how cilium/ebpf
//     chooses instead.
//   - proof: when two kernels give the same decisions.
//
// The rest is input: object.go and btfext.go read the local side, spec.go parses
// access strings (bpf_core_parse_spec), kernel.go has the target side and finds
// candidates (bpf_core_find_cands).
//
// # Two settings of the rules
//
// The outcome says whether libbpf matches, by its own rules, and whether any
// loader does, by the loose ones: a struct for a union at the root, arrays whose
// elements differ as long as nobody indexes them, whole types as cilium/ebpf
// compares them. Both are settings of the same code. Only libbpf's decide; the
// loose ones widen what a minimized BTF keeps.
//
// # An example
//
// An object reads task->pid in three places and asks in a fourth whether the
// field exists: four records, two specs (byte_off and field_exists), one
// question, "field pid, an int, of a struct task_struct". A kernel has two
// structs of that name, of which one has a pid. That makes two outcomes: a match
// at bit 19,712 with the values 2464 and 1, and a miss. The decisions are 2464 for
// the first three records and 1 for the fourth, and the other struct is ruled out
// for all records about task_struct that follow.
//
// The rules themselves are written down, scenario by scenario, in testdata/rules.
package core
