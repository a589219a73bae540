// SPDX-License-Identifier: Apache-2.0

// Package btf reads and writes BTF. [BTF] is a validated, zero-copy view of one blob.
// [Builder] makes a new blob. Package canonical sorts types into their canonical order.
//
// A view keeps the type IDs and string offsets of the blob, so they can be compared
// with the output of libbpf and bpftool. [BTF.Load] walks the type section once. It
// checks that every record, name and reference lies inside the blob and notes where
// each type starts. After that no accessor fails or reads out of bounds. References may
// form cycles: a hostile typedef can name itself. [BTF.SkipMods] and [BTF.SizeOf] follow
// references with a bound.
//
// For example the C declaration
//
//	struct pair { int a; const int b; };
//
// is four types: [1] INT int, [2] CONST → 1, [3] STRUCT pair with members a → 1 at bit
// 0 and b → 2 at bit 32. Member(1).Type is 2, and SkipMods(2) leads to 1.
//
// Source of the format: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of the
// Linux kernel, including the 32-byte header with a layout section, 24-bit vlen and
// 7-bit kinds of Linux 7.1.
package btf
