// SPDX-License-Identifier: Apache-2.0

// Package store writes the kernels of a corpus as files of their own: Import as the compressed tree
// that is fastest to read again and again, Extract as raw BTF.
//
// # The compressed tree
//
//	debian/12/x86_64/6.1.0-47-amd64.btf.zst
//	debian/12/x86_64/6.1.0-47-amd64.config.zst
//	debian/12/x86_64/6.1.0-47-amd64.kallsyms.zst
//	modules/debian/12/x86_64/6.1.0-47-amd64.modules.tar.zst    members 6.1.0-47-amd64/<module>.btf
//
// It is BTFHub's layout with the kernel's configuration and symbols, as far as they are known, as corpus.Extras
// has them. So package corpus reads it back under the same keys; Import makes sure of
// that. The level is the best of klauspost/compress, which is zstd's 11 or so. On six Debian kernels
// and CentOS 8's, 53.1 MB, decoded with the same library:
//
//	level        ratio    encode      decode
//	fastest      4.17   189 MB/s   1468 MB/s
//	default (3)  4.18   125 MB/s   1412 MB/s
//	best (11)    4.61    16 MB/s   1486 MB/s
//	zstd -11     4.62    25 MB/s   1604 MB/s
//	zstd -19     5.29     1 MB/s    959 MB/s
//
// Level 19 takes an eighth off the size and a third off the speed of reading, which is what the tree
// is for. Best costs 0.3 s per kernel, once. The window is at most 8 MiB, so readers need little memory.
//
// # Files
//
// The bytes of a file depend on nothing but the kernel. Each appears whole or not at all. A file whose content is
// already what it should be is left alone, however it is compressed. Of several kernels with one key the
// first in the corpus is written, whatever the order in which workers come to them; those with other
// BTF are reported.
package store
