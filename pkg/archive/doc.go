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
// are written by `btfgen generate` or [Write].
//
// An archive keeps each type definition once. A definition is a named type
// with the anonymous ones inside it; it refers to other named types by name,
// so that a struct that did not change stays the same definition when another
// one did:
//
//	struct file   size 184: f_inode → pointer, f_path → struct path
//	struct path   size 16:  dentry → pointer
//	struct path   size 24:  dentry → pointer       (another variant)
//
// A layout, which is the BTF of one or more kernels, is a list of definitions:
// written as the changes against an earlier layout. To get a BTF back, its
// definitions are put together, and the order of types and strings follows from
// them alone, as in the minimizer. docs/archive-format.md specifies it all.
//
// An archive is no secret and no proof: it has a checksum against damage, not
// against malice. Programs embed it and trust it as they trust themselves. Hostile
// ones cannot do more than give wrong BTF, which the kernel's verifier still checks
// programs against.
package archive
