// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Options change what a Minimizer emits. The zero value is ready for use.
type Options struct {
	Keep *core.KeepPatterns // types to keep that relocations do not need; nil for none
}

// Minimizer makes minimized BTF for one kernel after another and reuses its memory.
// It is not safe for concurrent use; see [Minimizer.Clone].
type Minimizer struct {
	sets  *core.Sets
	opts  Options
	fill  core.Filler
	full  core.Table
	small core.Table
	proof core.Target

	ordered      bool            // types of one name are in the kernel's order
	orderDiffers bool            // the last proof failed because they are not
	hide         bool            // types of modules that libbpf does not look at are hidden from it
	hides        bool            // there are some
	differs      string          // Name of the difference that the last proof found
	dropped      map[string]bool // names of types of modules that only cilium/ebpf looks at and that are left out
	keepOnly     bool            // there are no objects
}

// New returns a Minimizer for the relocations of objects of either byte order and for any machines. Without objects, the types of
// Options.Keep are kept of every kernel.
func New(objects []*core.Object, opts Options) *Minimizer {
	return &Minimizer{sets: core.NewSets(objects), opts: opts, keepOnly: len(objects) == 0 && len(opts.Keep.Patterns()) > 0}
}

// Clone returns a Minimizer for the same relocations and options, for another goroutine.
func (m *Minimizer) Clone() *Minimizer {
	return &Minimizer{sets: m.sets, opts: m.opts, keepOnly: m.keepOnly}
}

// ErrNoObject is wrapped by the error if no object is for the byte order and machine of the kernel.
var ErrNoObject = errors.New("no object with relocations is for its machine")

// ErrProof is returned if loaders decide differently on the minimized BTF than on the kernel's. It is a defect of this package, with two
// exceptions: no BTF can give all loaders the decisions that they make on the kernel's modules, or a decision depends on the order of types
// whose names differ in what only some loaders take for a flavor. [relo.ProofError] has the details.
var ErrProof = relo.ErrProof

// ErrPart is returned for a part of a kernel if the minimizer or the proof looked at a type that is not in it.
var ErrPart = errors.New("depends on types outside the part")

// Minimize returns the minimized BTF of a kernel for the objects that are for it
// ([core.Object.IsFor]). It is proven before it is returned. If nothing matches, the
// BTF has no types. The error is [ErrNoObject], a [*relo.ProofError], a [limits.Exceeded],
// the context's, or one that names a needed type: a tag or section, or one whose size
// loaders cannot compute.
func (m *Minimizer) Minimize(ctx context.Context, k *core.Target) (*Result, error) {
	set := m.sets.For(k)
	if m.keepOnly {
		set = core.NewSet()
	}
	if set == nil {
		if m.sets.OtherOrder(k) {
			endian := [2]string{"little-endian", "big-endian"}
			if k.Order() == binary.BigEndian {
				slices.Reverse(endian[:])
			}
			return nil, fmt.Errorf("%w: it is %s, and all objects are %s", ErrNoObject, endian[0], endian[1])
		}
		return nil, ErrNoObject
	}
	m.ordered, m.hide, m.dropped = false, false, make(map[string]bool)
	for more := extraNone; ; {
		out, err := m.emit(ctx, k, set, more)
		switch {
		case err == nil && k.Trapped():
			return nil, ErrPart
		case !errors.Is(err, ErrProof):
			return out, err
		case m.orderDiffers && !m.ordered:
			m.ordered = true
		case m.hides && !m.hide:
			m.hide = true
		case m.hides && m.differs != "" && !m.dropped[m.differs]:
			m.dropped[m.differs] = true
		case k.Part() || more == extraMembers: // a part has no more
			return out, err
		default:
			more++
		}
	}
}

// emit marks, emits and proves. more selects parts to keep on which no match depends, because their lack could add one: a forward
// declaration could match a type_exists relocation, a pointer to void a type_matches relocation, and a type without some members could
// have lost one of several of a name.
func (m *Minimizer) emit(ctx context.Context, k *core.Target, set *core.Set, more extra) (*Result, error) {
	m.orderDiffers, m.differs = false, ""
	marks := newMarks(ctx, set.HasKind(relo.TypeMatches), more)
	marks.dropped = m.dropped
	if err := m.fill.Fill(ctx, &m.full, set, k, marks.add); err != nil {
		return nil, err
	}
	unmatched, err := m.opts.Keep.Find(ctx, k, marks.addKept)
	if err != nil {
		return nil, err
	}
	if err := marks.settle(); err != nil {
		return nil, err
	}
	g := newGraph(marks, set, uint32(k.PointerSize()))
	if err := g.lowerAll(); err != nil {
		return nil, err
	}
	if m.ordered {
		g.preserveOrder(k)
	}
	if m.hides = marks.hidden; m.hide {
		g.hide()
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

// prove compares the output with the kernel: first the decisions, then the kept types.
func (m *Minimizer) prove(ctx context.Context, k *core.Target, set *core.Set, out []byte) error {
	if err := m.proof.Load(ctx, k.Name(), out); err != nil {
		return fmt.Errorf("minimized BTF is unreadable: %w", err)
	}
	if err := m.fill.Fill(ctx, &m.small, set, &m.proof, nil); err != nil {
		return err
	}
	d, err := core.Compare(ctx, &m.full, &m.small)
	if d == nil && err == nil {
		d, err = m.opts.Keep.Compare(ctx, k, &m.proof)
	}
	if d != nil {
		m.orderDiffers, m.differs = d.Order, d.Name
		return &relo.ProofError{Kernel: k.Name(), Object: d.Object, Relocation: d.Relocation, Candidate: d.Candidate, Full: d.Full, Minimized: d.Minimized}
	}
	return err
}

// Result is what [Minimizer.Minimize] returns for one kernel. It does not change
// with the next call.
type Result struct {
	BTF       []byte     // encoded in the kernel's byte order, with a 24-byte header
	Decisions []Decision // each relocation of each object once for each result that it has
	Unmatched []string   // patterns of Options.Keep that match nothing in the kernel
}

// Decision is libbpf's result for a relocation.
type Decision struct {
	Object string // its name
	Result relo.Result

	Modules []string // those that define the type of an ambiguous relocation differently, if only modules have it

	object *core.Object
	record *core.Record
}

// Relocation returns "byte_off struct task_struct.mm.pgd".
func (d *Decision) Relocation() string { return d.object.Relocation(d.record) }

// decisions returns each relocation of each object once for each of its results.
func decisions(set *core.Set, full *core.Table) (all []Decision) {
	libbpf := full.Libbpf()
	var seen []uint8 // results as bits, by relocation
	for i, o := range set.Objects() {
		clear(seen)
		for rec, d := range libbpf.Decisions(i) {
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
			all = append(all, Decision{o.Name(), d.Result, d.Disagreeing(), o, rec})
		}
	}
	return all
}
