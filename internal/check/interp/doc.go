// SPDX-License-Identifier: Apache-2.0

// Package interp executes a BPF program abstractly, to find the instructions that the kernel's verifier can reach.
//
// For example, in
//
//	0  r1 = 1               // field_exists task_struct.__state
//	1  if r1 == 0 goto 3
//	2  r1 = 112             // byte_off task_struct.__state
//	3  r0 = 0
//	4  exit
//
// with an [Input] whose Record returns 0 for the first record, [Explore] knows r1 at the branch and follows one side. So 2 is
// not reached, and [Result.Guard] returns the branch at 1 and the first record's 0. If r1 came from a map, both sides would be
// followed and everything reached.
//
// A function that gets no pointer to its caller's stack is explored on its own, as a [Unit]: once for a program, however often
// it is called with equal arguments, and with Input.Units once for all programs and kernels on which the part that it depends on
// ([Relevant]) is equal.
//
// A callback that a helper such as bpf_loop gets with a pointer to the stack is followed in place, like a call, for zero, one or
// several turns. Every other function whose address is taken is entered with unknown arguments.
//
// A path is a state (registers and stack, partly known) and the instruction that it is at. Where paths can meet, arrive drops
// those that an earlier one covers and merges them if there are too many; branch splits them; step does the rest.
//
// The verifier does not reach what is not reached here. The package knows less than the verifier about numbers and pointers,
// uses only what all verifiers since 5.2 know of constants, and gets the rest from [Features]. So it does not recognise a guard
// of a form that only the verifier understands.
//
// Each bit of a number is known or unknown. With Ranges a number has bounds, too. For example, after
//
//	0  if r1 > 7 goto 4
//	1  r1 += 4
//	2  if r1 <= 11 goto 4
//
// 3 is not reached. Verifiers have bounds since Linux 4.14. What comparisons of halves of registers give, and what stores to the
// stack forget, became the rules of today in 5.10 (kernel/bpf/verifier.c: reg_set_min_max, scalar_min_max_add,
// register_is_bounded), so bounds are not used before. Since then verifiers have improved, with two exceptions: a JSET that does
// not jump forgets bounds (6.17), and a number of unknown sign has bounds of one kind, signed or unsigned (7.2). The rules here
// are weaker, so that they need not be exact. Bounds belong to one register: a copy from before a comparison has none.
// Arithmetic keeps them below 2³¹, where signed and unsigned, whole and half are the same. A comparison of two registers without
// a constant gives none, and neither does a division. != gives none: verifiers before 6.8 derive none from it.
//
// The package has no knowledge of kernels or of the consequences of reaching an instruction.
package interp
