// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"context"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/core/facade"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ErrNotBTF is returned for data that does not begin as BTF does, in either byte
// order.
var ErrNotBTF = btf.ErrNotBTF

// Target is the kernel side: the types of vmlinux and of kernel modules. It is
// immutable and safe for use by many goroutines. The zero value is a
// little-endian kernel without types.
type Target struct{ k *core.Target }

// Module is the split BTF of a kernel module.
type Module = relo.Module

func init() {
	facade.Object = func(o any) *core.Object { return o.(*Object).object }
	facade.Target = func(t any) *core.Target { return t.(*Target).kernel() }
	facade.NewTarget = func(k *core.Target) any { return &Target{k} }
}

// NewTarget parses the raw BTF of a kernel and its modules, of either byte
// order. The data must not change while the target is in use. The name is used
// in messages and logs. The error names the kernel and the module. It is
// [ErrNotBTF], the context's, or says what is damaged.
func NewTarget(ctx context.Context, name string, vmlinux []byte, modules ...Module) (*Target, error) {
	t := &Target{new(core.Target)}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.k.Load(ctx, name, vmlinux, modules...); err != nil {
		return nil, err
	}
	return t, nil
}

// kernel returns the kernel of t.
func (t *Target) kernel() *core.Target {
	if t.k == nil {
		return core.NoTypes()
	}
	return t.k
}

// Name returns the name that was given to NewTarget.
func (t *Target) Name() string { return t.kernel().Name() }

// Machine returns the machine of the kernel, as kernel.CanonicalArch spells it:
// the one that ForMachine was given, or else the one whose struct pt_regs the
// kernel has. It returns "" if neither is known.
func (t *Target) Machine() string { return t.kernel().Machine() }

// ForMachine returns the same kernel for a machine, in any spelling that
// kernel.CanonicalArch knows, instead of the one that its types show.
func (t *Target) ForMachine(arch string) *Target {
	return &Target{t.kernel().ForMachine(arch)}
}

// ErrByteOrder is returned for an object and a kernel of different byte orders:
// the object cannot be loaded there.
var ErrByteOrder = core.ErrByteOrder

// Run resolves every relocation of an object against a kernel as libbpf would. The
// entry of a bad relocation says why a loader would fail; the others are resolved
// as if it were absent. Any number of goroutines may use the same object and target.
// The error is [ErrByteOrder], [ErrTooLarge] or the context's.
func Run(ctx context.Context, o *Object, t *Target) (*relo.Log, error) {
	return o.set().Run(ctx, t.kernel())
}
