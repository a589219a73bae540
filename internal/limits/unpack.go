// SPDX-License-Identifier: Apache-2.0

package limits

// What reading kernels may take, from whatever they come in. "Real"
// is the largest known.
const (
	// PartSize bounds what one BTF, ELF file or kernel image takes, unpacked, unless
	// the user says otherwise, in bytes. Real: 27 MB of BTF (CentOS 8), 70 MB of a
	// stripped vmlinux; one with debug information needs more.
	PartSize = 256 << 20

	// UnpackedParts and UnpackedRatio bound all that comes out of one source file,
	// nested things counted together: so many times the limit of one part, and so
	// many bytes for each that it has on disk. Real: 11 bytes for each (CentOS 8).
	UnpackedParts = 16
	UnpackedRatio = 100

	// FileBytes bounds a file in which BPF objects are looked for, and which is read
	// whole. Real: 494 kB of Debian's tools; programs written in Go have more.
	FileBytes = 1 << 30

	// Nesting bounds how deep containers and compressions nest. Real: 7, a .deb in a
	// .tar.xz with kernel images that are compressed.
	Nesting = 10

	// Modules bounds how many modules wait for their kernel. Real: 6,000.
	Modules = 20_000

	// KconfigBytes and SymbolBytes bound what is kept of the configuration of a kernel, and of its symbols,
	// and ExtraLine a line of either. Real: 120 kB, 9 MB, 300 bytes.
	KconfigBytes = 4 << 20
	SymbolBytes  = 32 << 20
	ExtraLine    = 64 << 10

	// Extras bounds how many of these wait for their kernels. Real: 4.
	Extras = 4

	// Errors bounds how many errors of one file are kept. A container may have any
	// number of members.
	Errors = 100

	// SelectedKeys bounds the kernels that are remembered to say what there is near a
	// selector that matches none. Real: 5,000.
	SelectedKeys = 1 << 16

	// ImageTries bounds how many places of an unknown image are tried for compressed
	// data.
	ImageTries = 64

	// LinkedMember and Linked bound what is remembered of one member of a tar file,
	// in bytes, and of all, for hard links to it. They are minimized BTF of some kilobytes.
	LinkedMember = 64 << 10
	Linked       = 16 << 20

	// Dictionary is the largest dictionary or window that a decoder may allocate, in
	// bytes: what zstd --ultra -22 needs, twice that of xz -9. Kernels are compressed with such windows.
	Dictionary = 128 << 20

	// XZProgram is what the xz program may take besides, in bytes.
	XZProgram = 64 << 20

	// VmlinuxSize bounds an ELF kernel that is written to the disk because pahole is to read it, in bytes. Real: 631 MB.
	VmlinuxSize = 4 << 30

	// Paholes bounds how many paholes run at once, PaholeMemory what one may map, in bytes, with the
	// file that it reads, and PaholeSeconds how long it may take. Real: 0.8 GB, and 40 s.
	Paholes       = 8
	PaholeMemory  = 8 << 30
	PaholeSeconds = 3600

	// PaholeKept bounds what is kept on the disk of what paholes made, in bytes, so that none does the same again.
	PaholeKept = 256 << 20

	// Believed is how many bytes are made room for because somebody says that they
	// will come.
	Believed = 8 << 20
)
