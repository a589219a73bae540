// SPDX-License-Identifier: Apache-2.0

package relo

import (
	"errors"
	"fmt"
)

// Module is the split BTF of a kernel module.
type Module struct {
	Name string // name in lsmod: nf_conntrack
	BTF  []byte // split BTF on top of vmlinux
}

// ErrProof is returned if loaders decide differently on a minimized BTF than on the
// kernel's. [ProofError] has the details.
var ErrProof = errors.New("minimized BTF decides differently")

// ProofError says where a minimized BTF decides differently. errors.Is reports
// that it is an [ErrProof].
type ProofError struct {
	Kernel     string // name of the target
	Object     string // name of an object that has the relocation; "" for a kept type
	Relocation string // "byte_off struct task_struct.mm.pgd", or "--keep struct:task_struct"
	Candidate  string // "struct task_struct"; "" if the order of candidates matters
	Full       string // the outcome on the kernel's own BTF
	Minimized  string // the outcome on the minimized BTF
}

// Error returns the kernel, the object, the relocation and both outcomes.
func (e *ProofError) Error() string {
	about := e.Relocation
	if e.Object != "" {
		about = e.Object + ": " + about
	}
	return fmt.Sprintf("%s: %v: %s: %s, minimized %s", e.Kernel, ErrProof, about, e.Full, e.Minimized)
}

// Is reports whether target is ErrProof.
func (e *ProofError) Is(target error) bool { return target == ErrProof }
