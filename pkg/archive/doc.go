// SPDX-License-Identifier: Apache-2.0

// Package archive holds the minimized BTF of many kernels in one small file,
// and finds the right one on a host. It is what a tracer imports to run on
// kernels without BTF:
//
//	//go:embed tracer.btfa
//	var embedded []byte
//
//	a, err := archive.Open(embedded)
//	// …
//	types, err := archive.Find(archive.Options{File: userNamed, Archive: a})
//	// …
//	fmt.Println(types.Source, types.Match.Reason)
//
// What was found goes to the loader. For cilium/ebpf:
//
//	spec, err := btfspec.Load(types) // package archive/btfspec
//	// …
//	opts.Programs.KernelTypes = spec // nil where the kernel has its own
//
// For libbpf and libbpfgo, which want a path:
//
//	f, err := types.File() // in memory, where the system has such files
//	// …
//	defer f.Close()
//	args.BTFObjPath = f.Path() // empty where the kernel has its own
//
// [OpenTree] takes a file tree in BTFHub's layout instead of an archive, such as
// an embed.FS that a tracer has already.
//
// Kernels are named by a [kernel.Key]: distribution and version as in os-release,
// architecture and release as uname prints them. [kernel.Host] finds the key of the
// machine, [Archive.Lookup] the kernel that serves it, and says why; [Find] does
// both. Archives are written by `btfgen generate`; docs/archive-format.md specifies
// them.
//
// The package neither parses nor checks BTF: it gives the bytes that minimizing
// made, and the loader reads them.
//
// An archive is no secret and no proof: it has a checksum against damage, not
// against malice. Programs embed it and trust it as they trust themselves. Hostile
// ones cannot do more than give wrong BTF, which the kernel's verifier still checks
// programs against.
package archive
