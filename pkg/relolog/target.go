// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/machine"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Target is the kernel side: the types of vmlinux and of kernel modules. The
// zero value is ready for [Target.Load]. Between loads it is immutable and safe
// for use by many goroutines.
type Target struct {
	k       engine.Kernel
	mu      sync.Mutex
	machine string
	told    bool // machine is known, or known not to be
}

// Module is split BTF of a kernel module.
type Module struct {
	Name string // as in lsmod: nf_conntrack
	BTF  []byte // on top of vmlinux
}

// NewTarget reads the BTF of a kernel, without a context; see [Target.Load].
func NewTarget(name string, vmlinux []byte, modules ...Module) (*Target, error) {
	t := new(Target)
	if err := t.Load(context.Background(), name, vmlinux, modules...); err != nil {
		return nil, err
	}
	return t, nil
}

// Load makes t the kernel with this raw BTF and these modules, of either byte
// order, reusing the memory of an earlier Load. The data must not change while t
// is in use. The name is used in messages and logs. Errors name the kernel and
// the module, that of the context, too; after one, t has to be loaded again before it is used.
func (t *Target) Load(ctx context.Context, name string, vmlinux []byte, modules ...Module) error {
	t.machine, t.told = "", false
	if err := t.k.Load(ctx, name, vmlinux); err != nil {
		return err
	}
	for _, m := range modules {
		if err := t.k.AddModule(ctx, m.Name, m.BTF); err != nil {
			return err
		}
	}
	return nil
}

// Name returns the name that was given to Load.
func (t *Target) Name() string { return t.k.Name() }

// Machine returns the machine of the kernel, as kernel.CanonicalArch spells it, "" if nothing tells: what SetMachine
// was told or else what struct pt_regs shows.
func (t *Target) Machine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.told {
		for _, b := range t.k.Views() {
			t.machine, t.told = machine.OfKernel(context.Background(), b), true
			break // modules do not tell
		}
	}
	return t.machine
}

// SetMachine says which machine the kernel is of, in any spelling, until the next Load. "" leaves it to
// [Target.Machine]. It must come before t is shared with other goroutines.
func (t *Target) SetMachine(arch string) {
	t.machine, t.told = kernel.CanonicalArch(arch), arch != ""
}

// Order returns the byte order of the kernel.
func (t *Target) Order() binary.ByteOrder { return t.k.Order() }
