// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"
	"slices"

	"github.com/btfgen/btfgen/pkg/relo"
)

// ErrByteOrder is returned for an object and a kernel of different byte orders.
var ErrByteOrder = errors.New("byte order of the object differs from the kernel's")

// Run resolves every relocation of an object against a kernel as libbpf would,
// and returns the log. A bad relocation does not end it: its entry says why a
// loader would give up, and the others are resolved as if it were absent. The
// error is [ErrByteOrder], a [limits.Exceeded] or the context's.
func Run(ctx context.Context, o *Object, k *Kernel) (*relo.Log, error) {
	l := &relo.Log{Object: o.Name(), Kernel: k.Name(), Entries: []relo.Entry{}}
	if o.btf == nil {
		return l, nil
	}
	if o.Order() != k.Order() {
		return nil, ErrByteOrder
	}
	var tb Table
	if err := tb.Fill(ctx, o.Set(), k, nil); err != nil {
		return nil, err
	}
	r := renderer{log: l, made: make(map[*Decision]*relo.Entry), candidates: make(map[any][]relo.Candidate)}
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
	made       map[*Decision]*relo.Entry
	candidates map[any][]relo.Candidate // by Decision.Match
}

func (r *renderer) entry(ctx context.Context, rec *Record, d *Decision) relo.Entry {
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
func (r *renderer) render(ctx context.Context, rec *Record, d *Decision) *relo.Entry {
	e := &relo.Entry{
		Object: r.log.Object, Kernel: r.log.Kernel, Kind: rec.Kind, Local: specOf(d.Local()), Old: d.Old(),
		Result: d.Result, Reason: reasonOf(d.Reason()),
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

// reasonOf returns a pointer to a reason, nil for none.
func reasonOf(r relo.Reason) *relo.Reason {
	if r.Code == "" {
		return nil
	}
	return &r
}

func candidates(ctx context.Context, d *Decision) []relo.Candidate {
	all := []relo.Candidate{}
	for c := range d.Candidates() {
		if ctx.Err() != nil {
			break
		}
		out := relo.Candidate{Spec: specOf(c.Place), Match: c.Match, Reason: reasonOf(c.Reason)}
		out.Module = &c.Module
		if c.Match {
			out.Value = &c.Value
		}
		all = append(all, out)
	}
	return slices.Clip(all)
}

func specOf(p Place) relo.Spec {
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
