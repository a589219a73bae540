// SPDX-License-Identifier: Apache-2.0

package limits

// A corpus in one file. Real: 33 kernels, 3 of them with modules, 8.4 MB.
const (
	// CorpusIndex is how many bytes the index of such a file may have, unpacked. A kernel takes 60, and one with
	// modules 100.
	CorpusIndex = 64 << 20

	// CorpusKernels is how many kernels it may have: as many as an archive.
	CorpusKernels = 1 << 18

	// CorpusDepth is how many kernels one is encoded against, each by its difference to the next. A series begins with
	// half of that at most, and adds 27.
	CorpusDepth = 128

	// CorpusChain is how many bytes all of them may have in memory. Real: 40 MB (CentOS 8).
	CorpusChain = 512 << 20

	// CorpusRatio is how many bytes each packed byte may become, from 1 MiB on. Real: 20.
	CorpusRatio = 1000
)
