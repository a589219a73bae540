// SPDX-License-Identifier: Apache-2.0

// Package btfc has the format of a corpus in one file, its reader and its writer. docs/corpus-format.md specifies it.
//
//	f, err := btfc.Open(r, size)         // reads the index
//	btf, err := f.BTF(ctx, &s, i, nil)   // reads the kernel, and what it is encoded against
//
// A kernel is encoded against its parent, another one: what its types and strings are in their order, and what of them is new.
// What is known behind a kernel is a state: the reader (decode) makes one of the parent's and of streams, and a builder makes BTF of
// it. The writer (parse, match, encode) makes the streams. It has the reader make BTF of them, and compares.
//
// Types are told by contents, which have entities where BTF has type IDs. So a type's content stays the same when the IDs of
// what it refers to change; an entity stays the same when the content of its type does. Which type of a kernel is which entity
// of its parent is the writer's choice alone (match), and costs nothing but bytes if it is a bad one.
package btfc
