// SPDX-License-Identifier: Apache-2.0

package limits

// What the arguments that stand for BPF objects may come to.
const (
	// ObjectFiles bounds the files that are looked at for BPF objects, of all directories and lists together.
	// Real: 1,200 in a kernel's tools/testing/selftests/bpf.
	ObjectFiles = 1 << 16

	// ObjectList bounds a list of objects, in bytes. Real: some hundred.
	ObjectList = 1 << 20
)
