// SPDX-License-Identifier: Apache-2.0

package check

// In which release verifiers began to do something that BTF does not show, with the subject of the commit or the function of the
// kernel. What has more than a release is in kernels.txt and helpers.txt.
var (
	// The context: kernel/bpf/verifier.c, kernel/trace/bpf_trace.c.

	// "bpf: Allow uprobe program to change context registers"
	registerWrites = linux(6, 18)
	// Programs without convert_ctx_access may read behind an address of the context to which something was added
	// (check_ptr_off_reg). 7.2 was asked, but neither 7.0 nor 7.1.
	movedContext = linux(7, 1)
	// A pointer on the stack, in memory that a helper reads, becomes a number (check_stack_range_initialized): on some kernels
	// since the first, on all since the second ("bpf: Clobber stack slot when writing over spilled PTR_TO_BTF_ID"), and on
	// none since the third ("bpf: verifier: Refactor helper access type tracking"). Updates of 6.1 have the second.
	spillsDoubtful, spillsNumbers, spillsKept = linux(5, 15), linux(6, 2), linux(6, 14)
	spillsUpdated                             = linux(6, 1)

	// Updates of releases from this one on have gotol.
	gotolUpdates = linux(5, 15)

	// Maps: kernel/bpf/hashtab.c ("bpf: Lift hashtab key_size limit"), devmap.c and cpumap.c (with a program in struct
	// bpf_devmap_val and struct bpf_cpumap_val)
	largeKeys      = linux(5, 11)
	devmapPrograms = linux(5, 8)
	cpumapPrograms = linux(5, 9)

	// The newest release whose source was read for the table of helpers.
	helpersRead = linux(7, 3)
)

// next is the release after r, within a major version.
func (r release) next() release { return r + linux(0, 1) }
