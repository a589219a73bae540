// SPDX-License-Identifier: Apache-2.0

// Package archive reads and writes archives (.btfa): the minimized BTF of many kernels
// in one small file. A tracer embeds an archive to run on kernels without BTF, and finds
// the BTF for its host in it:
//
//	//go:embed tracer.btfa
//	var embedded []byte
//
//	a, err := archive.Open(embedded)
//	// …
//	types, err := archive.Find(archive.FindOptions{File: userNamed, Archive: a})
//	// …
//	fmt.Println(types.Source, types.Match.Reason)
//
// The types go to the loader. For cilium/ebpf:
//
//	spec, err := btfspec.Load(types) // package archive/btfspec
//	// …
//	opts.Programs.KernelTypes = spec // nil where the kernel has its own
//
// For libbpf and libbpfgo, which take a path:
//
//	f, err := types.File() // in memory, where the system supports that
//	// …
//	defer f.Close()
//	args.BTFObjPath = f.Path() // empty where the kernel has its own
//
// A [kernel.Key] names a kernel: distribution and version as in os-release, architecture
// and release as uname prints them. [kernel.Host] returns the key of the running kernel.
// [Archive.Lookup] finds the kernel in the archive whose BTF serves a key, and gives the
// reason for its choice. [Find] does both.
//
// "btfgen generate" writes archives, and so does [Write], for pipelines in Go.
// docs/archive-format.md specifies the format.
//
// Opening an archive and reading from it does not parse BTF. The loader parses and
// checks the BTF.
//
// An archive has a checksum against damage, but no signature. A program trusts the
// archive that it embeds like its own code. With a forged archive it gets wrong BTF; the
// kernel's verifier still checks its programs.
package archive
