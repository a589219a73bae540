// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"errors"
	"testing"

	"github.com/btfgen/btfgen/internal/minimize"
)

// TestProofError checks that what Minimize returns for a failed proof is the
// ProofError of this package, with everything that the proof found.
func TestProofError(t *testing.T) {
	in := &minimize.ProofError{
		Kernel: "6.1", Object: "x.bpf.o", Relocation: "byte_off struct task.pid", Candidate: "struct task", Full: "match", Minimized: "none",
	}
	err := public(in)
	var e *ProofError
	if !errors.As(err, &e) || *e != ProofError(*in) {
		t.Fatalf("%#v", err)
	}
	if !errors.Is(err, ErrProof) || errors.Is(err, ErrNoObject) || err.Error() != in.Error() {
		t.Errorf("error %v, want %v", err, in)
	}
	if public(minimize.ErrNoObject) != ErrNoObject {
		t.Error("another error is changed")
	}
}
