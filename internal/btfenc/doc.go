// SPDX-License-Identifier: Apache-2.0

// Package btfenc has what it takes to write BTF: the kinds of types, what their records consist of, and a
// [Builder]. It reads none; package rawbtf does.
//
// Source of the format: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of the Linux kernel.
package btfenc
