// SPDX-License-Identifier: Apache-2.0

// Package facts has tables of what kernels differ in, and decides from what is known of a kernel whether it has a fact.
//
// The tables have an entry for each fact: since which release of Linux kernels have it, and what shows it, a witness in their BTF or a setting
// of their build. stanza.go has the grammar, and the head of facts.txt the properties:
//
//   - facts.txt: instructions, sections, prototypes, verifiers, contexts, results
//   - maps.txt: types, flags and definitions of maps, and helpers with them
//   - hooks.txt, kfuncs.txt: hooks of LSM; who may call kfuncs
//   - programs.txt: types of programs
//   - contexts.txt: which bytes of their context these may access
//   - helpers.txt: who may call helpers, and what these do with memory
//   - interface.txt: which enumerators came with which release
//   - kinds.txt: with which releases these were compared
//
// [Has] answers yes, no or perhaps, and by what:
//
//	witness present in the BTF            yes, by the witness
//	witness missing in a whole kernel's   no, by the witness
//	setting not in the configuration      no, by the configuration
//	release at least the first one        yes, by the release
//	otherwise                             perhaps: distributions take over what is newer
//
// Package rule uses the constants in names.go and functions such as [Instruction], and turns answers into findings.
package facts
