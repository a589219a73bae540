// SPDX-License-Identifier: Apache-2.0

// Package writer writes archives (.btfa), which pkg/archive reads: it keeps
// each type definition once. A definition is a named type with the anonymous
// ones inside it; it refers to other named types by name, so that a struct that
// did not change stays the same definition when another one did:
//
//	struct file   size 184: f_inode → pointer, f_path → struct path
//	struct path   size 16:  dentry → pointer
//	struct path   size 24:  dentry → pointer       (another variant)
//
// A layout, which is the BTF of one or more kernels, is a list of definitions:
// written as the changes against an earlier layout. [Write] cuts each BTF into
// definitions (define), collects what is distinct of them (newPool), writes that
// as streams (encoder), compresses them (pack), and reads all back (verify).
// docs/archive-format.md specifies the format.
package writer
