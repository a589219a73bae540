// SPDX-License-Identifier: Apache-2.0

// Package minimize turns the matches of a set of relocations against a kernel
// into the smallest BTF on which every loader takes the same decisions.
//
// The passes, named as the code names them:
//
//  1. mark: for every relocation and every candidate that matches in the eyes
//     of some loader, note the types, members and enumerators that the match
//     depends upon. bpftool keeps the first match only, which can change a
//     decision where a name occurs more than once.
//  2. settle: copies of one named struct, as undeduplicated BTF has them, get
//     the same marks, so that equal copies stay equal; a member that must not
//     become the last stays followed by another.
//  3. lower: build the output types. Modifiers and typedefs on the way to a
//     member are dropped, pointers lead to void unless a match went through
//     them, integers get the names that C has for their size and sign.
//  4. merge: types that cannot be told apart become one (partition refinement,
//     because matched pointers can form cycles).
//  5. write: anonymous types first, then named ones by name, with ties broken
//     by content, never by the kernel's order. The same layout therefore gives
//     the same bytes, whichever kernel it came from.
//  6. prove: match everything again, on the output, and compare, and so with
//     what patterns keep. If that fails, types that only have to be named become
//     structs without members rather than forward declarations, because a
//     relocation could ask for those. If that fails too, pointers lead to what
//     they lead to in the kernel, because one to void could match what the
//     kernel's does not. If that fails too, types are kept with all their members
//     instead: no compiler makes two of the same name, but BTF can have them, and
//     then the dropped ones count. What is left are types of one name on whose
//     order a decision of cilium/ebpf depends: such a kernel is refused.
//
// For example, an object that reads task->mm->pgd and task->comm leaves of a
// kernel's 140,000 types
//
//	struct task_struct { struct mm_struct *mm; char comm[16]; };  /* size 9792 */
//	struct mm_struct { struct { pgd_t *pgd; }; };                 /* size 1344 */
//
// as STRUCT task_struct with its size and two members at their offsets, an
// anonymous struct inside STRUCT mm_struct, one PTR to void, one ARRAY of 16
// and one INT.
package minimize
