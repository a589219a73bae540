// SPDX-License-Identifier: Apache-2.0

// Package core decides CO-RE relocations as loaders do. Logs, the minimizer, the
// proof, check and verify all use its decisions.
//
//		object ──► questions ─┐
//		                      ├─► outcomes ──► decisions
//		kernel ──► candidates ┘      │
//		                             ├─► needs: the parts that a minimized BTF keeps
//		                             └─► columns: the input of the proof
//
//	  - A question (question.go) is everything in a relocation that the target side
//	    depends on. Records with the same question have the same outcomes, so a
//	    [Set] asks each question once. Two specs ask the same question if their
//	    signatures are equal (signature.go).
//	  - An outcome (outcome.go) is the result of one question for one candidate, for
//	    each loader: match or not, and the values. A [Table] has the outcomes of one
//	    kernel; a [Filler] makes it, and explain.go repeats a match for a log.
//	  - A decision is what a loader does with a record, given the outcomes of all
//	    candidates and the instruction.
//	  - The proof (proof.go) compares the decisions on two kernels.
//
// What each loader does, and in which files:
//
//	             libbpf                  cilium/ebpf         aya
//	types        compare.go              ciliumtypes.go      as libbpf
//	fields       match.go                ciliumfield.go      ayamatch.go
//	a candidate  match.go                cilium.go           ayamatch.go
//	decisions    decision.go             group.go            aya.go
//	instruction  patch.go                fixup.go            aya.go
//
// object.go and spec.go read the local side, target.go the target side. A file needs
// only files below it: spec, set, match, outcome, fill, the decisions, the proof.
//
// # An example
//
// An object reads task->pid in three places and tests in a fourth whether the
// field exists: four records, two specs (byte_off and field_exists), one
// question, "field pid, an int, of a struct task_struct". A kernel has two
// structs of that name, and one has a pid. That makes two outcomes: a match
// at bit 19,712 with the values 2464 and 1, and a miss. The decisions are 2464 for
// the first three records and 1 for the fourth. The other struct is ruled out for all
// later records about task_struct.
//
// testdata/rules has the rules, one scenario a file.
package core
