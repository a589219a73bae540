package relolog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// ErrByteOrder says that object and kernel are of different byte orders, so
// that the object cannot be loaded there.
var ErrByteOrder = errors.New("byte order of the object differs from the kernel's")

// Run resolves every relocation of an object against a kernel as libbpf would,
// and returns the log. One bad relocation does not end it: where a loader
// would give up, the entry says so and the rest goes on, as if the bad one
// were not there. Run needs no privilege and no running kernel, and can be
// called from many goroutines on the same object and target. The only error
// is [ErrByteOrder].
func Run(o *Object, t *Target) (*Log, error) {
	if o.btf != nil && o.order != t.Order() {
		return nil, ErrByteOrder
	}
	x := indexNames(o)
	return newRunner(o, t, &x, x.find(t)).log(), nil
}

// runner holds the candidate lists of one run. libbpf keeps one per local
// type, which every resolved relocation narrows to the candidates that
// matched it, so that later ones see fewer.
type runner struct {
	o     *Object
	t     *Target
	cands map[rawbtf.TypeID]*candList
	done  map[doneKey]*outcome
}

type candList struct {
	list  []cand
	round int // how often it was narrowed
}

// doneKey: equal records with equal candidates have equal outcomes.
type doneKey struct {
	s     *spec
	round int
}

// outcome is all of an entry that does not depend on its instruction.
type outcome struct {
	local      Spec
	candidates []Candidate
	target     *Spec
	old, new   value
	targBTF    *rawbtf.BTF
	result     Result
	reason     string
}

// nameIndex is the distinct essential names that objects ask for.
type nameIndex struct {
	names *rawbtf.Names
	index map[string]int
}

func indexNames(objects ...*Object) nameIndex {
	x := nameIndex{index: make(map[string]int)}
	var names []string
	for _, o := range objects {
		for _, s := range o.specs {
			n := s.name()
			if _, ok := x.index[n]; !ok && n != "" {
				x.index[n] = len(names)
				names = append(names, n)
			}
		}
	}
	x.names = rawbtf.NewNames(names)
	return x
}

// find returns the types of the kernel by the number of their name.
func (x *nameIndex) find(t *Target) [][]cand {
	all, _ := t.find(x.names, len(x.index), nil, nil)
	return all
}

// newRunner makes the candidate lists of o. all is what x.find returned.
func newRunner(o *Object, t *Target, x *nameIndex, all [][]cand) *runner {
	r := &runner{o: o, t: t, cands: make(map[rawbtf.TypeID]*candList), done: make(map[doneKey]*outcome)}
	for _, s := range o.specs {
		if r.cands[s.root] == nil {
			l := new(candList)
			if i, ok := x.index[s.name()]; ok {
				l.list = candidates(all[i], s.rootKind(), nil)
			}
			r.cands[s.root] = l
		}
	}
	return r
}

// log resolves all relocations.
func (r *runner) log() *Log {
	l := &Log{Object: r.o.name, Kernel: r.t.name, Entries: make([]Entry, len(r.o.relos))}
	for i := range r.o.relos {
		r.entry(&r.o.relos[i], &l.Entries[i])
	}
	return l
}

// name returns the essential name that candidates of s need.
func (s *spec) name() string {
	t := s.btf.Type(s.root)
	return string(rawbtf.Essential(t.Name()))
}

func (s *spec) rootKind() rawbtf.Kind {
	t := s.btf.Type(s.root)
	return t.Kind()
}

func (r *runner) entry(rel *Relo, e *Entry) {
	cl := r.cands[rel.spec.root]
	key := doneKey{rel.spec, cl.round}
	out, ok := r.done[key]
	if !ok {
		out = r.resolve(rel.spec, cl)
		r.done[key] = out
	}
	*e = Entry{
		Object: r.o.name, Program: rel.Program, Section: rel.Section, Index: rel.Index,
		Insn: rel.Insn, Source: rel.Source, Kind: rel.Kind.String(), Kernel: r.t.name,
		Local: out.local, Candidates: out.candidates, Target: out.target,
		Old: out.old.val, Result: out.result, Reason: out.reason,
	}
	if out.result != Resolved && out.result != Absent {
		return
	}
	poison, err := rel.insn.patch(out.old, out.new, r.o.btf, out.targBTF)
	switch {
	case err != nil:
		e.Result, e.Reason = Error, err.Error()
	case poison != "":
		e.Result, e.Reason = Poisoned, poison
	default:
		e.New = &out.new.val
	}
}

func (o *outcome) fail(err error) *outcome {
	o.result, o.reason = Error, err.Error()
	return o
}

// resolve is bpf_core_calc_relo_insn of libbpf: match every candidate, insist
// that all matches agree, and narrow the list to them.
func (r *runner) resolve(s *spec, cl *candList) *outcome {
	out := &outcome{local: specOf(s, false, ""), candidates: []Candidate{}, result: Resolved, targBTF: r.o.btf}
	if s.err != nil {
		return out.fail(s.err)
	}
	var err error
	if out.old, err = s.calc(); err != nil {
		return out.fail(err)
	}
	if s.kind == KindLocalTypeID {
		out.new = out.old
		return out
	}
	if s.name() == "" {
		return out.fail(errAnon)
	}
	var matched []cand
	var firstOff uint32
	for _, c := range cl.list {
		m := matcher{targ: &c.view.BTF}
		ok, err := m.match(s, c.id)
		if err != nil {
			return out.fail(fmt.Errorf("candidate [%d]: %w", c.id, err))
		}
		cd := Candidate{Spec: specOf(&m.out, true, c.view.module), Match: ok}
		if !ok {
			cd.Spec.Spec, cd.Path, cd.Offset, cd.BitOffset = "", "", nil, nil
			cd.Reason = m.miss.String()
			out.candidates = append(out.candidates, cd)
			continue
		}
		v, err := m.out.calc()
		if err != nil {
			return out.fail(fmt.Errorf("candidate [%d]: %w", c.id, err))
		}
		cd.Value = &v.val
		out.candidates = append(out.candidates, cd)
		switch {
		case len(matched) == 0:
			out.target, out.new, out.targBTF = &cd.Spec, v, &c.view.BTF
			firstOff = m.out.bitOff
		case out.result == Ambiguous:
		case m.out.bitOff != firstOff:
			out.result = Ambiguous
			out.reason = fmt.Sprintf("field offset ambiguity: %d != %d bits", m.out.bitOff, firstOff)
		case v.val != out.new.val:
			out.result = Ambiguous
			out.reason = fmt.Sprintf("relocation decision ambiguity: %d != %d", v.val, out.new.val)
		}
		matched = append(matched, c)
	}
	switch {
	case out.result == Ambiguous:
		out.target = nil
	case len(matched) == 0:
		out.unmatched(s, len(cl.list))
	case len(matched) < len(cl.list):
		cl.list = slices.Clip(matched)
		cl.round++
	}
	return out
}

// unmatched fills in what a loader does when no candidate matches.
func (o *outcome) unmatched(s *spec, n int) {
	o.result = Poisoned
	if s.kind.IsExistence() || s.kind.IsType() {
		o.result = Absent
	}
	if o.reason = "no candidate"; n > 0 {
		o.reason = "no matching candidate"
	}
}
