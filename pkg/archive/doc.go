// Package archive holds the minimized BTF of many kernels in one small file,
// and finds the right one on a host. It is what a tracer imports to run on
// kernels without BTF:
//
//	//go:embed tracer.btfa
//	var embedded []byte
//
//	a, err := archive.Open(embedded)
//	...
//	types, err := archive.Find(archive.Options{File: userNamed, Archive: a})
//	...
//	opts.Programs.KernelTypes = types.Spec // nil where the kernel has its own
//
// Kernels are named by a [kernel.Key]: distribution and version as in os-release,
// architecture and release as uname prints them. [kernel.Host] finds the key of the
// machine, [Archive.Lookup] the kernel that serves it, and says why. Archives
// are written by `btfgen generate`; docs/archive-format.md specifies them.
//
// An archive is no secret and no proof: it has a checksum against damage, not
// against malice. Programs embed it and trust it as they trust themselves. Hostile
// ones cannot do more than give wrong BTF, which the kernel's verifier still checks
// programs against.
package archive
