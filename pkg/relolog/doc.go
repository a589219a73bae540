// Package relolog dry-runs the CO-RE relocations of a BPF object against the
// BTF of a kernel and says what a loader would decide, and why. It needs no
// privilege, no running kernel and no loader.
//
// [ParseObject] reads the local side, [NewTarget] the kernel's, and [Run]
// returns the log: an [Entry] for each relocation record, in the order of the
// object. A [Set] with a [Table] does the same for many objects and kernels
// where only the distinct questions count.
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
// # The passes
//
// Named as the functions are, with their counterpart in libbpf's relo_core.c:
//
//  1. parseExt reads the records of .BTF.ext, parseSpec follows the access
//     string through the local types (bpf_core_parse_spec).
//  2. find and candidates collect the target types whose name is the local
//     one's up to "___" and whose kind is compatible. Modules count only where
//     vmlinux has none (bpf_core_find_cands).
//  3. match follows the turning points in each candidate (bpf_core_spec_match);
//     typesCompat and typesMatch compare whole types.
//  4. calc gives the value of a spec (bpf_core_calc_field_relo and others).
//  5. resolve insists that all matches have the same offset and value, and
//     narrows the candidates of the local type to those that matched, for the
//     records that follow (bpf_core_calc_relo_insn).
//  6. patch looks at the instruction: a load may change its width only where
//     zero-extension keeps the value right, and the value has to fit
//     (bpf_core_patch_insn).
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
// # Concurrency
//
// An [Object], a [Set] and a loaded [Target] are immutable, and any number of
// goroutines may use them at once. A [Log] belongs to who ran it; its entries
// may share slices and pointers with each other, so they are to be read only.
// A [Table] is not safe for concurrent use.
package relolog
