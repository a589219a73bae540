// SPDX-License-Identifier: Apache-2.0

// Package embedded finds BPF ELF objects: a lone one, or those that another
// file carries.
//
// A tracer seldom ships its BPF code as a file. bpf2go embeds it in a Go
// binary, a C skeleton in an executable, libxdp in a shared library; all of
// them store the whole ELF file as it is:
//
//	host file   ….. \x7fELF (x86-64) … .rodata: … \x7fELF (EM_BPF) … | \x7fELF (EM_BPF) … …
//	                                              └ Object{Offset, Data}  └ the next one
//
// The passes, named as the functions are:
//
//   - [Find] looks for the ELF magic from front to back. A magic whose header
//     says "relocatable, 64-bit, BPF" is a candidate.
//   - extent takes the object's end from its section header table and the
//     bounds of its sections. The search goes on behind that end, so objects
//     never overlap and what they say about themselves is read once.
//   - dedupe drops objects with the same bytes as an earlier one.
//   - name asks the host's symbol table what the object is called.
//
// The standard library's debug/elf serves for the constants only: it makes a
// string per section and symbol, and a hostile string table of n bytes then
// costs n² memory. Here a file costs time in proportion to its size.
package embedded
