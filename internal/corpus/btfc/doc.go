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
// A chunk has a front and a back, each a payload. The back has functions and what only they refer to, and says where these types and all
// strings stand. A state for a query is made of the fronts alone.
//
// A content, the record of a type, has entities where BTF has type IDs. So it stays the same when other types come and go. match
// decides which type of a kernel is which entity of its parent; a bad decision costs bytes only.
//
// # A payload
//
// A parent has int, u8, u32, u64 and, as type 5,
//
//	struct point { u32 x; u32 y; };
//
// A new kernel's struct has z as well. Its front unpacks to 0 and 0, as no name and no entity is at the back, the lengths of the streams
// and these streams; the others are empty.
// TestDoc compares these bytes with those that are written.
//
//	 0 | 00 a4 01 05 05 09 18               | no name, 164 bytes, 5 types, all at the front, 9 strings, 24 bytes of rest
//	 0 | 9f eb 01 00 18 00 00 00            | the rest is the header of BTF
//	 0 | 00 00 00 00 70 00 00 00            |
//	 0 | 70 00 00 00 1c 00 00 00            |
//	 1 | 7a 00                              | one new name: z, number 8
//	 2 | 00                                 | it shares no bytes with a new name before
//	 3 | 0c 01                              | types: copy 4 (3<<2 | 0), change 1 (0<<2 | 1)
//	 4 | 00 00                              | both begin behind the last run
//	 7 | 04                                 | the new content is a struct
//	 8 | 03                                 | of 3 members
//	 9 | 00 0a 0a                           | offsets: 0, +32 and +32 bits (10 = 2<<2 | 2: the zigzag of 1, times 32)
//	10 | 0c                                 | 12 bytes
//	13 | 01                                 | its name is the guess, since point was learned from the old content
//	14 | 01 01 00                           | so are x and y; then comes the next new name
//	17 | 01 01 17                           | the types of x and y are guesses; that of z is 2 before point (23 - 25)
//
// The back has two streams. The order of all types is empty, since it equals the parent's.
//
//	back 5 | 1c 02                          | strings: copy 8 (7<<2 | 0), the next 1 in order of use (0<<2 | 2)
//	back 6 | 00                             | the copy begins at 0
package btfc
