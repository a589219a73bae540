package relolog

import (
	"encoding/binary"
	"fmt"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Target is the kernel side: the types of vmlinux and of kernel modules. The
// zero value is ready for [Target.Load]. After that it is immutable and safe
// for use by many goroutines.
type Target struct {
	name  string
	views []*view // vmlinux first, then the modules in the order given
	spare []*view
}

// view is the BTF of vmlinux (module "") or of one module.
type view struct {
	rawbtf.BTF
	module string
}

// Module is split BTF of a kernel module.
type Module struct {
	Name string // as in lsmod: nf_conntrack
	BTF  []byte // on top of vmlinux
}

// NewTarget reads the BTF of a kernel; see [Target.Load].
func NewTarget(name string, vmlinux []byte, modules ...Module) (*Target, error) {
	t := new(Target)
	if err := t.Load(name, vmlinux, modules...); err != nil {
		return nil, err
	}
	return t, nil
}

// Load makes t the kernel with this raw BTF and these modules, reusing the
// memory of an earlier Load. The data must not change while t is in use. The
// name is used in messages and logs. Errors name the kernel and the module.
func (t *Target) Load(name string, vmlinux []byte, modules ...Module) error {
	t.name = name
	t.spare = append(t.spare, t.views...)
	t.views = t.views[:0]
	base := t.view("")
	if err := base.Load(vmlinux, nil); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	t.views = append(t.views, base)
	for _, m := range modules {
		v := t.view(m.Name)
		if err := v.Load(m.BTF, &base.BTF); err != nil {
			return fmt.Errorf("%s: %w", name, fmt.Errorf("module %s: %w", m.Name, err))
		}
		t.views = append(t.views, v)
	}
	return nil
}

// view takes a spare view or makes a new one.
func (t *Target) view(module string) *view {
	if n := len(t.spare); n > 0 {
		v := t.spare[n-1]
		t.spare = t.spare[:n-1]
		v.module = module
		return v
	}
	return &view{module: module}
}

// Name returns the name that was given to Load.
func (t *Target) Name() string { return t.name }

// Order returns the byte order of the kernel.
func (t *Target) Order() binary.ByteOrder { return t.views[0].Order() }

// PointerSize returns the bytes of a pointer in the kernel.
func (t *Target) PointerSize() int { return int(t.views[0].PointerSize()) }

// cand is a type with the essential name that is looked for.
type cand struct {
	view *view
	id   rawbtf.TypeID
}

func (c cand) kind() rawbtf.Kind {
	t := c.view.Type(c.id)
	return t.Kind()
}

// find returns, for each of names, the types of every kind with that essential
// name, vmlinux before the modules. out is reused.
func (t *Target) find(names *rawbtf.Names, n int, out [][]cand, ids [][]rawbtf.TypeID) ([][]cand, [][]rawbtf.TypeID) {
	if cap(out) < n {
		out = make([][]cand, n)
	}
	out = out[:n]
	for i := range out {
		out[i] = out[i][:0]
	}
	for _, v := range t.views {
		ids = v.Find(names, n, ids)
		for i, l := range ids {
			for _, id := range l {
				out[i] = append(out[i], cand{v, id})
			}
		}
	}
	return out, ids
}

// candidates keeps of all types with the name those that libbpf looks at for a
// local type of this kind: the kind is compatible, and a module counts only
// where vmlinux has none (bpf_core_find_cands).
func candidates(all []cand, kind rawbtf.Kind, out []cand) []cand {
	out = out[:0]
	for _, c := range all {
		if c.view.module != "" && len(out) > 0 && out[0].view.module == "" {
			break
		}
		if kind.Compat(c.kind()) {
			out = append(out, c)
		}
	}
	return out
}
