package relolog

import (
	"context"
	"errors"
	"slices"

	"github.com/btfgen/btfgen/internal/engine"
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
func Run(ctx context.Context, o *Object, t *Target) (*Log, error) {
	l := &Log{Object: o.Name(), Kernel: t.Name(), Entries: []Entry{}}
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
	r := renderer{log: l, sides: make(map[any]*Entry), values: make(map[*engine.Decision]*uint64)}
	l.Entries = make([]Entry, 0, o.Len())
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
	log    *Log
	sides  map[any]*Entry // by what entries have in common
	values map[*engine.Decision]*uint64
}

func (r *renderer) entry(ctx context.Context, rec *engine.Record, d *engine.Decision) Entry {
	key := d.Match()
	sides := r.sides[key]
	if sides == nil {
		sides = r.both(ctx, d)
		r.sides[key] = sides
	}
	e := *sides
	e.Program, e.Section, e.Index, e.Insn, e.Source = rec.Program, rec.Section, rec.Index, rec.Insn, rec.Source
	e.Kind, e.Result, e.Reason = Kind(rec.Kind), Result(d.Result.String()), d.Reason()
	if d.Result.OK() {
		v := r.values[d]
		if v == nil {
			v = new(uint64) // a pointer into d would keep all of the table
			*v = d.New
			r.values[d] = v
		}
		e.New = v
	}
	return e
}

// both fills in the two sides of an entry, unless the context ends it.
func (r *renderer) both(ctx context.Context, d *engine.Decision) *Entry {
	e := &Entry{Object: r.log.Object, Kernel: r.log.Kernel, Local: specOf(d.Local()), Old: d.Old()}
	e.Candidates = []Candidate{}
	for c := range d.Candidates() {
		if ctx.Err() != nil {
			break
		}
		out := Candidate{Spec: specOf(c.Place), Match: c.Match, Reason: c.Reason}
		out.Module = &c.Module
		if c.Match {
			out.Value = &c.Value
		}
		e.Candidates = append(e.Candidates, out)
	}
	e.Candidates = slices.Clip(e.Candidates)
	if c := d.Target(); c != nil {
		s := specOf(c.Place)
		s.Module = &c.Module
		e.Target = &s
	}
	return e
}

func specOf(p engine.Place) Spec {
	s := Spec{TypeID: p.TypeID, Type: p.Type, Spec: p.Raw, Path: p.Path}
	if p.Field {
		off := p.BitOff / 8
		s.Offset = &off
		if p.BitOff%8 != 0 {
			s.BitOffset = &p.BitOff
		}
	}
	return s
}
