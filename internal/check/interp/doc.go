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
// A function that gets no pointer to its caller's stack is explored on its own, and gives a [Summary]: once for a program, however often
// it is called with equal arguments, and with Input.Summaries once for all programs and kernels on which the part that it depends on
// ([Relevant]) is equal.
//
// A callback that a helper such as bpf_loop gets with a pointer to the stack is followed in place, like a call, for zero, one or
// several turns. Every other function whose address is taken is entered with unknown arguments.
//
// A path is a state (registers and stack, partly known) and the instruction that it is at. Where paths can meet, arrive drops
// those that an earlier one covers and merges them if there are too many; branch splits them; step does the rest.
//
// The verifier does not reach what is not reached here. The package knows less than the verifier about numbers and pointers. What
// verifiers since Linux 4.14 know of constants is the floor; [Features] add what later ones know. So it does not recognise a guard
// of a form that only the verifier understands.
//
// Each bit of a number is known or unknown. Verifiers also derive bounds from comparisons by order. The package does not, but marks
// the number (value.lost): what only a branch on it reaches is [Imprecise]. Of sizes that helpers get, it knows some bounds that
// older verifiers do not see (gaps).
//
// The package has no knowledge of kernels or of the consequences of reaching an instruction.
package interp
