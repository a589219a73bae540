// SPDX-License-Identifier: Apache-2.0

// Package minimize turns the matches of a set of relocations against a kernel
// into the smallest BTF on which every loader makes the same decisions. Package
// minimize in pkg has an example.
//
// The passes, named as in the code:
//
//  1. mark: for every candidate that some loader matches, note the types, members
//     and enumerators that the match depends on. bpftool keeps the first match only,
//     which can change a decision if a name occurs more than once.
//  2. settle: copies of one named struct, as in undeduplicated BTF, get the same
//     marks, so that equal copies stay equal. A member that must not become the
//     last is followed by another.
//  3. lower: build the output types. Modifiers and typedefs on the way to a member
//     are dropped, pointers lead to void unless a match followed them, integers get
//     C's names for their size and sign.
//  4. merge: equal types become one (partition refinement, because matched pointers
//     can form cycles).
//  5. write: anonymous types first, then named ones by name, then by content. The
//     same layout gives the same bytes, whatever the kernel's order is.
//  6. prove: match everything again on the output and compare, as well as the kept
//     types. If a decision depends on the order of types of one name, they get the
//     kernel's order. If it depends on which types are modules', these become
//     typedefs, which cilium/ebpf finds and libbpf does not, or are left out, if
//     cilium/ebpf does without them. If the proof still fails,
//     pointers lead to their types, and at last types keep all members: BTF can have
//     two members of one name.
package minimize
