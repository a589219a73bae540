// SPDX-License-Identifier: Apache-2.0

// Package relolog dry-runs the CO-RE relocations of a BPF object against the
// BTF of a kernel and says what a loader would decide, and why. It needs no
// privilege, no running kernel and no loader.
//
// [ParseObject] reads the local side, [NewTarget] the kernel's, and [Run]
// returns the log: an [Entry] for each relocation record, in the order of the
// object. The reference is libbpf v1.8 (src/relo_core.c). What many objects come
// to on many kernels is cheaper to have from package minimize.
//
// # A relocation by example
//
// Take an object that was compiled with
//
//	struct point { short x, y; };
//	struct shape {
//		int kind;
//		union {
//			struct point corners[4];
//			long radius;
//		};
//	} *s;
//
// and reads s->corners[2].y. The compiler puts in the offset that its own
// struct has, 18 bytes, and records kind byte_off, the ID of struct shape and
// the access string "0:1:0:2:1". Each number is one step:
//
//	0  what s points to, as element 0 of an array of shapes
//	1  second member of struct shape, the anonymous union, 8 bytes in
//	0  first member of the union, corners
//	2  third element of the array, 2 × 4 bytes on
//	1  second member of struct point, y, 2 bytes on
//
// That is the raw spec. Steps through anonymous members mean nothing to
// another struct, so the search uses the turning points: [0] .corners [2] .y.
// If the kernel has
//
//	struct shape {
//		long flags, seen;
//		struct point corners[8];
//		int kind;
//	};
//
// then it matches with the raw spec "0:2:2:1", at 16 + 2×4 + 2 bytes, so a
// loader changes 18 into 26. Had corners only two elements there, the candidate
// would not match, and the instruction would be poisoned. The entry has both
// specs, and for each type named shape what came of it.
//
// # Differences from libbpf, all deliberate
//
//   - What would end a load (ambiguity, a broken record) becomes the result of
//     its entry, and the rest goes on as if that record were not there.
//   - That an instruction holds the old value is not checked; a compiler's bug
//     there does not depend on the kernel.
//   - Endless chains of types end after a bounded number of steps, so damaged
//     BTF is an error and not a hang.
//   - An existence question without a match is "absent", and so are the size
//     and the ID of a missing type, for which libbpf puts in 0. libbpf's debug
//     log calls all of these "no matching targets found".
//   - Programs are named by the function that the instruction is in, also for
//     static functions.
//
// # Machines
//
// An object that reads registers is for the machine that has them. [Object.Machines] says so by what the relocations
// read; whoever knows better says so with [Object.ForMachines]. [Object.IsFor] pairs objects and kernels, as package
// minimize does. [Run] leaves that to its caller.
//
// # Concurrency
//
// An [Object] and a loaded [Target] are immutable, and any number of goroutines
// may use them at once. A [Log] belongs to who ran it; its entries may share
// slices and pointers with each other, so they are to be read only.
package relolog
