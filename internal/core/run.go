// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"
	"iter"

	"github.com/btfgen/btfgen/pkg/relo"
)

// ErrByteOrder is returned for an object and a kernel of different byte orders.
var ErrByteOrder = errors.New("byte order of the object differs from the kernel's")

// Run resolves every relocation of the first object of the set against a kernel as
// libbpf would. The entry of a bad relocation has its error; the others are resolved
// as if it were absent. The error is [ErrByteOrder], a [limits.Exceeded] or the
// context's.
func (s *Set) Run(ctx context.Context, k *Target) (*relo.Log, error) {
	o := s.objects[0].Object
	if o.btf == nil {
		return &relo.Log{Object: o.Name(), Kernel: k.Name(), Entries: []relo.Entry{}}, nil
	}
	l, err := s.Decide(ctx, k)
	if err != nil {
		return nil, err
	}
	return l.Log(ctx, 0)
}

// Decide returns what decides the relocations of the set's objects against a kernel. Its errors are those of Run.
func (s *Set) Decide(ctx context.Context, k *Target) (*LibbpfDecider, error) {
	if o := s.objects[0].Object; o.btf != nil && o.Order() != k.Order() {
		return nil, ErrByteOrder
	}
	tb := new(Table)
	if err := new(Filler).Fill(ctx, tb, s, k, nil); err != nil {
		return nil, err
	}
	return tb.Libbpf(), nil
}

// Log returns the log of object number i of the set, as [Set.Run] does. The error is the context's.
func (l *LibbpfDecider) Log(ctx context.Context, i int) (*relo.Log, error) {
	o := l.tb.set.objects[i].Object
	log := &relo.Log{Object: o.Name(), Kernel: l.tb.kernel.Name(), Entries: make([]relo.Entry, 0, o.Len())}
	for e := range l.Entries(ctx, i) {
		log.Entries = append(log.Entries, *e)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return log, nil
}

// Entries returns the entries of the log of object number i of the set, each valid until the next. They end early if the context does.
// Records with equal decisions share what their entries point to.
func (l *LibbpfDecider) Entries(ctx context.Context, i int) iter.Seq[*relo.Entry] {
	return func(yield func(*relo.Entry) bool) {
		o := l.tb.set.objects[i].Object
		b := entryMaker{explain: &l.explain, made: make(map[*Decision]*relo.Entry), candidates: make(map[*resolution][]relo.Candidate)}
		for rec, d := range l.Decisions(i) {
			e := *b.entry(ctx, d)
			e.Object, e.Kernel = o.Name(), l.tb.kernel.Name()
			e.Program, e.Section, e.Index, e.Insn, e.Source = rec.Program, rec.Section, rec.Index, rec.Insn, o.Source(rec)
			if ctx.Err() != nil || !yield(&e) {
				return
			}
		}
	}
}

// entryMaker makes the entries of one log. Records with equal decisions share what it makes.
type entryMaker struct {
	explain    *explainer
	made       map[*Decision]*relo.Entry
	candidates map[*resolution][]relo.Candidate
}

// entry returns the decision as a log has it, without the place of a record.
func (b *entryMaker) entry(ctx context.Context, d *Decision) *relo.Entry {
	if e := b.made[d]; e != nil {
		return e
	}
	m := d.resolution
	if b.candidates[m] == nil {
		b.candidates[m] = m.candidates(ctx, b.explain)
	}
	e := &relo.Entry{
		Kind: m.spec.kind, Local: m.spec.entry(), Old: d.Old(),
		Result: d.Result, Reason: reasonOf(d.Reason()), Candidates: b.candidates[m],
	}
	if d.Result.OK() {
		v := d.New // a pointer into d would keep all of the table
		e.New = &v
	}
	if m.target >= 0 && m.result == relo.Resolved {
		e.Target = &b.explain.candidate(m.spec, m.question, m.target).Spec
	}
	b.made[d] = e
	return e
}

// candidates returns the candidates that libbpf looked at, unless the context ends.
func (m *resolution) candidates(ctx context.Context, x *explainer) []relo.Candidate {
	l := make([]relo.Candidate, 0, len(m.left))
	for _, i := range m.left {
		if ctx.Err() != nil {
			break
		}
		l = append(l, x.candidate(m.spec, m.question, i).Candidate)
	}
	return l
}
