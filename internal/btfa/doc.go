// SPDX-License-Identifier: Apache-2.0

// Package btfa is what the reader and the writer of the .btfa format share: its numbers, its
// streams, and how a file holds them. docs/archive-format.md specifies it all. The reader is
// pkg/archive, the writer package archiver.
package btfa
