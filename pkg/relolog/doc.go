// SPDX-License-Identifier: Apache-2.0

// Package relolog dry-runs the CO-RE relocations of a BPF object against the
// BTF of a kernel and reports what a loader would decide, and why. It needs no
// privilege, no running kernel and no loader.
//
// [ParseObject] reads the local side, [NewTarget] the kernel's, and [Run]
// returns the log: a [relo.Entry] for each relocation record, in the order of
// the object. The reference is libbpf v1.8 (src/relo_core.c). Package relo shows
// a relocation by example. For the results of many objects on many kernels,
// package minimize is faster.
//
// # Differences from libbpf, all deliberate
//
//   - What would end a load (ambiguity, a broken record) becomes the result of
//     its entry, and the rest goes on as if that record were not there.
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
// An object that reads registers is for the machine that has them.
// [Object.Machines] derives it from the relocations; [Object.ForMachines]
// overrides it. [Object.IsFor] pairs objects and kernels, as package minimize
// does. [Run] leaves that to its caller.
//
// # Concurrency
//
// An [Object] and a [Target] are immutable, and any number of goroutines may use
// them at once. The entries of a [relo.Log] may share slices and pointers with
// each other, so they must not be changed.
package relolog
