// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"context"
	"errors"
	"slices"

	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ErrByteOrder says that object and kernel are of different byte orders, so
// that the object cannot be loaded there.
var ErrByteOrder = errors.New("byte order of the object differs from the kernel's")

// Run resolves every relocation of an object against a kernel as libbpf would,
// and returns the log. One bad relocation does not end it: where a loader
// would give up, the entry says so and the rest goes on, as if the bad one
// were not there. Run needs no privilege and no running kernel, and can be
// called from many goroutines on the same object and target. The error is
// [ErrByteOrder] or that of the context.
func Run(ctx context.Context, o *Object, t *Target) (*relo.Log, error) {
	l := &relo.Log{Object: o.Name(), Kernel: t.Name(), Entries: []relo.Entry{}}
	if o.o.BTF() == nil {
		return l, nil
	}
	if o.Order() != t.Order() {
		return nil, ErrByteOrder
	}
	var tb engine.Table
	if err := tb.Fill(ctx, o.o.Set(), &t.k, nil); err != nil {
		return nil, err
	}
	r := renderer{log: l, made: make(map[*engine.Decision]*relo.Entry), candidates: make(map[any][]relo.Candidate)}
	l.Entries = make([]relo.Entry, 0, o.Len())
	for rec, d := range tb.Decisions(0) {
		l.Entries = append(l.Entries, r.entry(ctx, rec, d))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// renderer makes entries of decisions. What decisions have in common is made
// once.
type renderer struct {
	log        *relo.Log
	made       map[*engine.Decision]*relo.Entry
	candidates map[any][]relo.Candidate // by Decision.Match
}

func (r *renderer) entry(ctx context.Context, rec *engine.Record, d *engine.Decision) relo.Entry {
	made := r.made[d]
	if made == nil {
		made = r.render(ctx, rec, d)
		r.made[d] = made
	}
	e := *made
	e.Program, e.Section, e.Index, e.Insn, e.Source = rec.Program, rec.Section, rec.Index, rec.Insn, rec.Source
	return e
}

// render makes all of an entry but where its record is, unless the context ends
// it.
func (r *renderer) render(ctx context.Context, rec *engine.Record, d *engine.Decision) *relo.Entry {
	e := &relo.Entry{
		Object: r.log.Object, Kernel: r.log.Kernel, Kind: rec.Kind, Local: specOf(d.Local()), Old: d.Old(),
		Result: d.Result, Reason: d.Reason(),
	}
	if d.Result.OK() {
		v := d.New // a pointer into d would keep all of the table
		e.New = &v
	}
	key, ok := d.Match(), false
	if e.Candidates, ok = r.candidates[key]; !ok {
		e.Candidates = candidates(ctx, d)
		r.candidates[key] = e.Candidates
	}
	if c := d.Target(); c != nil {
		s := specOf(c.Place)
		s.Module = &c.Module
		e.Target = &s
	}
	return e
}

func candidates(ctx context.Context, d *engine.Decision) []relo.Candidate {
	all := []relo.Candidate{}
	for c := range d.Candidates() {
		if ctx.Err() != nil {
			break
		}
		out := relo.Candidate{Spec: specOf(c.Place), Match: c.Match, Reason: c.Reason}
		out.Module = &c.Module
		if c.Match {
			out.Value = &c.Value
		}
		all = append(all, out)
	}
	return slices.Clip(all)
}

func specOf(p engine.Place) relo.Spec {
	s := relo.Spec{TypeID: p.TypeID, Type: p.Type, Raw: p.Raw, Path: p.Path}
	if p.Field {
		off := p.BitOff / 8
		s.Offset = &off
		if p.BitOff%8 != 0 {
			s.BitOffset = &p.BitOff
		}
	}
	return s
}
