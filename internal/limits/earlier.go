// SPDX-License-Identifier: Apache-2.0

package limits

// What an earlier run wrote: manifests (--reuse-manifest), reports (--baseline) and listings (--earlier). Of 33
// kernels and 100 objects with 669 programs a manifest has 99 kB, a report 743 kB and a listing 13 kB.
const (
	// ManifestBytes is how long a manifest or listing may be. A kernel takes 1.2 kB at most, so 5,000 take a tenth.
	ManifestBytes = 64 << 20
	// ReportBytes is how long a report may be: that of 100 objects on 20,000 kernels.
	ReportBytes = 512 << 20
	// EarlierElement is how much of them is in memory at once, in bytes: what is told of a kernel takes 1.2 kB, of a
	// program on 33 kernels 6 kB.
	EarlierElement = 16 << 20
	// EarlierDepth is how deep the values in them may nest that nobody wants: five levels do.
	EarlierDepth = 1000
	// EarlierKernels is how many kernels they may have: as many as an archive.
	EarlierKernels = 1 << 18
	// ManifestIssues is how many relocations may be unresolved somewhere: 307 of those of 100 objects are.
	ManifestIssues = 1 << 16
	// ReportPrograms is how many programs a report may have: 100 objects have 669.
	ReportPrograms = 1 << 17
	// ReportNames is how many bytes the names of a report's kernels and programs may have: 40 kB there.
	ReportNames = 64 << 20
)
