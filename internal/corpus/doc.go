// SPDX-License-Identifier: Apache-2.0

// Package corpus finds kernels and reads their BTF: single files, directories, BTFHub's trees,
// distributions' packages, and the running kernel.
//
//	c, err := corpus.Open(ctx, []string{"btfhub-archive"}, corpus.Options{})
//	for _, f := range c.Files {
//		err := f.Read(ctx, func(it *corpus.Kernel) error {
//			fmt.Println(it.Name, len(it.BTF), len(it.Modules)) // debian/12/x86_64/6.1.0-47-amd64 …
//			return nil
//		})
//	}
//
// Open walks and decompresses nothing; File.Read does the work and may run for many files at once.
//
// In File.Read a reader of package unpack unwraps compressions and containers, an extractor takes the BTF out of what is in them, and an
// assembler puts kernels with their modules together and yields them. File.Bootable uses the same reader, and takes images instead. The
// files of the package are in layers: a file uses only names of those below it.
//
// The packages below have what needs no Kernel: find and sniff find files, unpack, decompress and image open them, naming and selection
// say which kernels they have and choose some, extras reads configurations, and pahole makes BTF of DWARF. Package skip has the reasons why
// files are skipped.
//
// # Memory
//
// What is read is in an arena, decompress.Arena, which counts it against the limit of the process. A reading has one for the kernels that it
// puts together, and one for each image meanwhile. Once kernels are yielded, their arena is released, and what belongs to later ones is copied
// to a new one. Kernel.Keep hands a kernel's arena over to the caller.
//
// # Formats
//
// The content decides, not the name. A stream is identified (sniff), unwrapped and identified again:
//
//   - raw BTF of either byte order, and ELF files with a .BTF section: vmlinux, modules;
//   - .xz, .gz, .zst, .bz2, .lz4, .lzma around anything;
//   - tar, Debian packages (ar with data.tar.*), RPM packages (cpio) and their members;
//   - kernel images: x86 bzImage and EFI zboot by their headers; arm64 and riscv64 Image, which are
//     the kernel's memory, by searching for a BTF header whose every field is plausible; s390x and
//     32-bit arm images by searching for compressed data first. The kernel inside is ELF or memory.
//
// LZO-compressed kernels are refused. Modules with a distilled base (.BTF.base) are relocated to their kernel's BTF; see btf.Relocate.
//
// BTF is split BTF, a module's, if its string section does not begin with the empty string; see
// sniff.IsSplit.
//
// # Which kernel it is
//
// The key comes from the path below the source if that has BTFHub's shape <ID>/<VERSION_ID>/<arch>/<release>. The last names of the
// source count if they clearly begin that shape. Package naming has this, and shapes with a level missing. Otherwise
// the release and the architecture come from the content, and the kernel's name is its path. Folders above the source and the
// working directory do not matter, except for the host's own kernels. Keys are canonical.
//
// Open lists every file. Distinct keeps one file for each key.
//
// Modules go with their kernel: by key, as in modules/<ID>/<VERSION_ID>/<arch>/
// <release>.modules.tar.xz; by release, as in /lib/modules/<release> and packages; or by lying next to
// it, as in /sys/kernel/btf. In a tar a kernel is complete when the next one begins, so its modules have
// to come before that.
//
// Package selection has selectors of kernels and modules.
//
// # Hostile input
//
// Memory grows with the bytes that arrive, not with the lengths in a file. Options.MaxSize limits one BTF, ELF file or image,
// limits.Nesting limits nesting, and package decompress limits decompression. An error costs one member or file.
package corpus
