// SPDX-License-Identifier: Apache-2.0

// Package btfc reads and writes a corpus in one file. docs/corpus-format.md specifies the format.
//
//	f, err := btfc.Open(r, size)         // reads the index
//	btf, err := f.BTF(ctx, i, nil)   // reads the kernel and its ancestors
//
// A kernel is encoded as a delta against its parent: the order of its types and strings, and those that are new. A decoded kernel
// is a state. The reader (decode) makes a state of the parent's state and a payload, and a builder makes BTF of it. The writer
// (parse, match, encode) makes the payload, decodes it and compares the BTF. The modules of a kernel are encoded in the same way, behind
// the types of their kernel, and so are its configuration and symbols, as strings.
//
// A content, the record of a type, has entities where BTF has type IDs. So it stays the same when other types come and go. match
// decides which type of a kernel is which entity of its parent; a bad decision costs bytes only.
package btfc
