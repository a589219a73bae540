// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"context"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Padding says what stands where members were dropped.
type Padding int

// The kinds of padding. Offsets and sizes are the kernel's with either.
const (
	PadImplicit Padding = iota // nothing: offsets leave a gap
	PadExplicit                // named arrays of bytes in structs, for readers of a C dump
)

// Options change what a Minimizer emits. The zero value is ready for use.
type Options struct {
	Padding Padding
	Keep    *core.Keep // types to keep that relocations do not need; nil for none
}

// Minimizer makes minimized BTFs for the relocations of some objects, one
// kernel after the other, and reuses its memory between them. It is not safe for
// concurrent use; every goroutine needs its own, see [Minimizer.Clone].
type Minimizer struct {
	sets  *core.Sets
	opts  Options
	full  core.Table
	small core.Table
	proof core.Kernel

	ordered      bool // types of one name are in the kernel's order
	orderDiffers bool // the last proof failed because they are not
	keepOnly     bool // there are no objects
}

// New returns a Minimizer for the relocations of objects, which may be of either
// byte order and for any machines. For objects without relocations the minimized BTF has no types but those
// of Options.Keep. Without objects, those are kept of every kernel.
func New(objects []*core.Object, opts Options) *Minimizer {
	return &Minimizer{sets: core.NewSets(objects), opts: opts, keepOnly: len(objects) == 0 && len(opts.Keep.Patterns()) > 0}
}

// Clone returns a Minimizer for the same relocations and with the same options,
// for another goroutine. It shares what does not change.
func (m *Minimizer) Clone() *Minimizer {
	return &Minimizer{sets: m.sets, opts: m.opts, keepOnly: m.keepOnly}
}

// ErrNoObject says that none of the objects is for the kernel, by byte order and machine.
var ErrNoObject = errors.New("no object with relocations is for its machine")

// ErrProof says that a minimized BTF does not decide as the kernel's own does.
// [ProofError] tells more. It is a defect of this package, but for one case: a
// decision depends on the order of types whose names differ in flavor. Types
// are sorted by name, so that their order cannot be kept.
var ErrProof = errors.New("minimized BTF decides differently")

// ProofError is where a minimized BTF decides differently. It is an [ErrProof].
type ProofError struct {
	Kernel     string // name of the target
	Object     string // name of an object that has the relocation, or "" where it is about what is kept
	Relocation string // "byte_off struct task_struct.mm.pgd", or "--keep struct:task_struct"
	Candidate  string // "struct task_struct", or "" where it is their order that matters
	Full       string // what comes of the relocation on the kernel's own BTF
	Minimized  string // and on the minimized one
}

// Error names the kernel, the object, the relocation and both outcomes.
func (e *ProofError) Error() string {
	about := e.Relocation
	if e.Object != "" {
		about = e.Object + ": " + about
	}
	return fmt.Sprintf("%s: %v: %s: %s, minimized %s", e.Kernel, ErrProof, about, e.Full, e.Minimized)
}

// Is reports whether target is ErrProof.
func (e *ProofError) Is(target error) bool { return target == ErrProof }

// Minimize returns the minimized BTF of a kernel, in the kernel's byte order
// and with a 24-byte header. It is proven before it is returned: loaders decide
// every relocation of the objects that are for the kernel ([core.Object.IsFor]) on it as on the kernel's own BTF, and what
// Options.Keep names is in it as it is there. Where nothing matches, the result is a BTF without types. The error is [ErrNoObject], one that names a
// type if it is behind more typedefs, modifiers and arrays than loaders follow for a size, as one that leads back to itself is, or if what is needed is no type but a tag, a
// [*ProofError], or one that says "too large", or that of the context.
func (m *Minimizer) Minimize(ctx context.Context, k *core.Kernel) (*Result, error) {
	set := m.sets.For(k)
	if m.keepOnly {
		set = core.NewSet(k.Order())
	}
	if set == nil {
		return nil, ErrNoObject
	}
	m.ordered = false
	for more := keepNothing; ; more++ {
		out, err := m.emit(ctx, k, set, more)
		if m.orderDiffers && !m.ordered && errors.Is(err, ErrProof) {
			m.ordered = true
			out, err = m.emit(ctx, k, set, more)
		}
		if k.Part || more == keepMembers || !errors.Is(err, ErrProof) { // a part has no more
			return out, err
		}
	}
}

// emit marks, emits and proves; more says what it keeps where less will not do. A
// forward declaration could pass for one that a type_exists relocation asks for. A
// pointer that leads nowhere could pass for the void * of a type_matches
// relocation. And in BTF that no compiler makes, members have the same name:
// which one a loader takes, or stumbles over, depends on all of them.
func (m *Minimizer) emit(ctx context.Context, k *core.Kernel, set *core.Set, more keep) (*Result, error) {
	m.orderDiffers = false
	marks := newMarks(ctx, set.Asks(relo.TypeMatches), more)
	if err := m.full.Fill(ctx, set, k, marks.add); err != nil {
		return nil, err
	}
	unmatched, err := m.opts.Keep.Find(ctx, k, marks.addKept)
	if err != nil {
		return nil, err
	}
	if err := marks.settle(); err != nil {
		return nil, err
	}
	if id := marks.deep; id != 0 {
		return nil, fmt.Errorf("type %d: more than %d typedefs, modifiers and arrays in a row", id, limits.Modifiers)
	}
	g := newGraph(marks, set, uint32(k.PointerSize()), m.opts.Padding)
	if err := g.lowerAll(); err != nil {
		return nil, err
	}
	for i, n := range marks.nodes {
		if n.copies && g.types[i] != nil {
			g.types[i].Copies = 1
		}
	}
	if m.ordered {
		g.keepOrder(k)
	}
	merged, err := canonical.Merge(ctx, g.types)
	if err != nil {
		return nil, err
	}
	out := canonical.Write(merged, k.Order())
	if err := m.prove(ctx, k, set, out); err != nil {
		return nil, err
	}
	return &Result{BTF: out, Decisions: decisions(set, &m.full), Unmatched: unmatched}, nil
}

// prove relocates against the output and compares with the kernel, and then what is kept.
func (m *Minimizer) prove(ctx context.Context, k *core.Kernel, set *core.Set, out []byte) error {
	if err := m.proof.Load(ctx, k.Name(), out); err != nil {
		return fmt.Errorf("minimized BTF is unreadable: %w", err)
	}
	if err := m.small.Fill(ctx, set, &m.proof, nil); err != nil {
		return err
	}
	d, err := core.Compare(ctx, &m.full, &m.small)
	if d == nil && err == nil {
		d, err = m.opts.Keep.Compare(ctx, k, &m.proof)
	}
	if d != nil {
		m.orderDiffers = d.Order
		return &ProofError{k.Name(), d.Object, d.Relocation, d.Candidate, d.Full, d.Minimized}
	}
	return err
}

// Result is what [Minimizer.Minimize] returns for one kernel. It does not change
// with the next call.
type Result struct {
	BTF       []byte     // in the kernel's byte order, with a 24-byte header
	Decisions []Decision // each relocation of each object once for each result that it has
	Unmatched []string   // patterns of Options.Keep that match nothing in the kernel
}

// Decision is what a loader with libbpf's rules makes of a relocation.
type Decision struct {
	Object string // its name
	Result relo.Result

	object *core.Object
	record *core.Record
}

// Relocation names what is asked for: "byte_off struct task_struct.mm.pgd".
func (d *Decision) Relocation() string { return d.object.Relocation(d.record) }

// decisions returns each relocation of each object once for each result.
func decisions(set *core.Set, full *core.Table) (all []Decision) {
	var seen []uint8 // results as bits, by relocation
	for i, o := range set.Objects() {
		clear(seen)
		for rec, d := range full.Distinct(i) {
			n, bit := rec.Spec(), uint8(1)<<d.Result
			if n >= len(seen) {
				seen = append(seen, make([]uint8, n+1-len(seen))...)
			}
			if seen[n]&bit != 0 {
				continue
			}
			seen[n] |= bit
			if rec.Kind == relo.LocalTypeID && d.Result == relo.Resolved {
				continue // does not depend on the kernel
			}
			all = append(all, Decision{o.Name(), d.Result, o, rec})
		}
	}
	return all
}
