// SPDX-License-Identifier: Apache-2.0

// Package btf reads and writes BTF. [BTF] is a validated, zero-copy view of one
// blob; [Builder] makes a new one. Package canonical puts types in their canonical
// order.
//
// A view keeps the type IDs and string offsets of the blob, so what it says
// can be compared with what libbpf and bpftool print. [BTF.Load] walks the
// type section once: it checks that every record, name and type reference
// lies inside the blob and notes where each type starts. After that no
// accessor can fail or read out of bounds. References may still form cycles
// (a hostile typedef can name itself), so whoever follows them does so with
// [BTF.SkipMods] and [BTF.SizeOf], which are bounded.
//
// For example the C declaration
//
//	struct pair { int a; const int b; };
//
// is four types: [1] INT int, [2] CONST → 1, [3] STRUCT pair with members
// a → 1 at bit 0 and b → 2 at bit 32. Member(1).Type is 2, and SkipMods(2)
// leads to 1.
//
// Source of the format: Documentation/bpf/btf.rst and include/uapi/linux/btf.h
// of the Linux kernel, including the 32-byte header with a layout section,
// 24-bit vlen and 7-bit kinds of Linux 7.1.
package btf
