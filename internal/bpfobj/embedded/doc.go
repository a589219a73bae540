// SPDX-License-Identifier: Apache-2.0

// Package embedded finds BPF ELF objects: a file that is one, or those inside another file.
//
// Tracers seldom ship BPF code as files. bpf2go embeds it in a Go binary, a C skeleton in an executable, libxdp in a shared
// library. All of them store the whole ELF file unchanged:
//
//	host file   ….. \x7fELF (x86-64) … .rodata: … \x7fELF (EM_BPF) … | \x7fELF (EM_BPF) … …
//	                                              └ Object{Offset, Data}  └ the next one
//
// [Find] searches for the ELF magic from front to back. A header that says "relocatable, 64-bit, BPF" begins an object; its
// section headers say where it ends (extent), and the search continues there. name takes the names from the host's
// symbols.
//
// debug/elf is used for constants only: it makes a string of each section's and symbol's name, so a hostile string table of n
// bytes costs n² memory. This package takes time in proportion to the file's size.
package embedded
