// SPDX-License-Identifier: Apache-2.0

// Package interp executes a BPF program abstractly, to tell which of its
// instructions the kernel's verifier can reach.
//
// For example, in
//
//	0  r1 = 1               // field_exists task_struct.__state
//	1  if r1 == 0 goto 3
//	2  r1 = 112             // byte_off task_struct.__state
//	3  r0 = 0
//	4  exit
//
// with an [Input] whose Record gives 0 for the first record, [Explore] knows r1
// when it comes to the branch, and follows that on one side: 2 is not reached,
// and [Result.Guard] says that the branch at 1 keeps the verifier from it,
// because of the first record's 0. Had r1 been loaded from a map, both sides
// would be followed, and all be reached.
//
// A function that is handed no pointer to its caller's stack is explored on its own, as a
// [Unit]: once for a program, however often it is called alike, and with an
// [Input] that has Units once for all programs and kernels where what it depends on
// ([Relevant]) is the same.
//
// A callback that a helper such as bpf_loop gets with a pointer to the stack is followed in place, like a call, for no, one or several
// turns. Every other function whose address is taken is entered with arguments of which nothing is known.
//
// A path is a state (registers and stack, of which not all is known) and the
// instruction that it is at. Where paths can meet, arrive drops those that an
// earlier one covers, and merges them where they are too many; branch splits
// them; step does the rest.
//
// What is not reached the verifier does not reach either: the package knows
// less than it of numbers and of pointers, keeps to what all verifiers since 5.2
// know of constants, and is told of the rest by [Features]. The price is that a
// guard of a form which only the verifier understands is not seen.
//
// Numbers have bits, of which each is known or not, and bounds where Features have
// Ranges. For example, after
//
//	0  if r1 > 7 goto 4
//	1  r1 += 4
//	2  if r1 <= 11 goto 4
//
// 3 is not reached. Verifiers have had bounds since Linux 4.14, but what a comparison of
// halves of registers tells them, and what a store to the stack makes them forget, became
// what it is in 5.10 (kernel/bpf/verifier.c: reg_set_min_max, scalar_min_max_add and its
// like, register_is_bounded), so that before nothing goes by them. Since then verifiers
// have only got better at it, but for two things: bounds are forgotten where a JSET does not
// jump (6.17), and a number of which the sign is not known has bounds of one kind, signed or
// not (7.2). So that no rule has to be exactly theirs, bounds belong to one register: a copy of it that
// was made before a comparison has none. Arithmetic keeps them below
// 2³¹, where signed and unsigned, whole and half are the same. Two registers of which neither is a
// constant tell nothing where they are compared; a division has no bounds. What != tells, at either end
// of the bounds, verifiers learnt in 6.8 (Unequal).
//
// An access of memory at an offset without a bound is noted ([Result.Far]). As less is known here than
// verifiers know, only a difference between two explorations tells something.
//
// The package knows nothing of kernels and where they come from, nor what
// follows from an instruction being reached: it is told what relocations come to,
// and hands back levels.
package interp
