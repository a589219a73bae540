// SPDX-License-Identifier: Apache-2.0

// Package relo describes CO-RE relocations and how loaders decide them. Its
// types are plain data: package relolog returns them, and the JSON lines of
// "btfgen relolog --json" decode into [Entry].
//
// # Specs
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
// That is the raw spec, [Spec.Raw]. Anonymous members have no name to search
// for, so the search uses the named steps: [0] .corners [2] .y. If the kernel
// has
//
//	struct shape {
//		long flags, seen;
//		struct point corners[8];
//		int kind;
//	};
//
// then it matches with the raw spec "0:2:2:1", at 16 + 2×4 + 2 bytes, so a
// loader changes 18 into 26. If corners had two elements there, the candidate
// would not match, and the loader would poison the instruction. The [Entry] has
// both specs and, for each type named shape, a [Candidate].
package relo
