// SPDX-License-Identifier: Apache-2.0

// Package logs writes relocation logs for people: grouped by object and
// program, one line per relocation in libbpf's own notation,
//
//	#2 insn 41  <byte_off> [86] struct task_struct.fs (0:121 @ offset 1960)  →  [114] struct task_struct.fs (0:131 @ offset 1816)  1960 → 1816  resolved
//
// and, of several kernels, what differs between them before what does not.
// Candidates that differ only in their type ID are one line with their number, so that the log of a BTF with hundreds of copies of a type
// stays readable.
package logs

import (
	"bufio"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Options say how logs are written. The zero value is plain text of all entries.
type Options struct {
	Filter  Filter
	Verbose bool // sources, candidates and reasons as well
	Color   bool // results in colour
}

// Printer writes the logs of several objects: as lines of JSON, each at once, or as text at the end, where logs of several
// kernels are side by side. It keeps of each log only what differs from the others. It is not safe for concurrent use.
type Printer struct {
	w    *bufio.Writer
	opts Options
	json *lines // nil for text

	kernels []string
	objects []*object

	// Shown counts the relocations that the filter keeps, once for each kernel.
	Shown relo.Counts

	// Unmatched has those patterns of the filter that match no relocation of any log, shown or not.
	Unmatched Filter
}

// object is one object on all its kernels.
type object struct {
	name    string
	kernels []int // indices
	records []record
	places  []place // places of programs, which records share
}

// place is a function and the section that it is in.
type place struct{ program, section string }

// record is one relocation on all kernels of the object. A large object has a million, so that it is small.
type record struct {
	index, insn int32
	place       int32
	source      string   // set only if sources are written
	first       *outcome // outcome on the first kernel
	differ      *differ  // nil if all kernels have an equal one
}

// differ is the outcomes of a record on which kernels differ.
type differ struct {
	outcomes []*outcome
	of       []int32 // the outcome on each of the object's kernels
}

// outcome is a decision, with the entry of the first kernel that has it, without a place. Records share outcomes.
type outcome struct {
	decision string
	relo.Entry
}

// outcomeKey is what the entries of a log have in common that share an outcome.
type outcomeKey struct {
	kind relo.Kind
	ending
}

// entry returns the entry of a record with one of its outcomes.
func (o *object) entry(r *record, d *outcome) *relo.Entry {
	e := d.Entry
	at := &o.places[r.place]
	e.Program, e.Section, e.Index, e.Insn, e.Source = at.program, at.section, int(r.index), int(r.insn), r.source
	return &e
}

// placeOf returns the place of a record.
func (o *object) placeOf(record int32) place { return o.places[o.records[record].place] }

// outcomes returns the distinct outcomes of a record.
func (r *record) outcomes() []*outcome {
	if r.differ != nil {
		return r.differ.outcomes
	}
	return []*outcome{r.first}
}

// NewPrinter returns a Printer of text.
func NewPrinter(w io.Writer, opts Options) *Printer {
	unmatched := Filter{Programs: slices.Clone(opts.Filter.Programs), Types: slices.Clone(opts.Filter.Types)}
	return &Printer{w: bufio.NewWriterSize(w, 64<<10), opts: opts, Shown: make(relo.Counts), Unmatched: unmatched}
}

// NewJSONPrinter returns a Printer that writes a line of JSON for each relocation and kernel that the
// filter keeps.
func NewJSONPrinter(w io.Writer, filter Filter) *Printer {
	p := NewPrinter(w, Options{Filter: filter})
	p.json = newLines()
	return p
}

// Print adds the log of an object on a kernel. The logs of one kernel must come one after the other. Logs of one object have the same
// records on every kernel. Print keeps no entry, but what entries point to.
func (p *Printer) Print(name, kernel string, entries iter.Seq[*relo.Entry]) error {
	if p.json == nil {
		if n := len(p.kernels); n == 0 || p.kernels[n-1] != kernel {
			p.kernels = append(p.kernels, kernel)
		}
		i := slices.IndexFunc(p.objects, func(o *object) bool { return o.name == name })
		if i < 0 {
			i = len(p.objects)
			p.objects = append(p.objects, &object{name: name})
		}
		p.objects[i].kernels = append(p.objects[i].kernels, len(p.kernels)-1)
		p.add(p.objects[i], entries)
		return nil
	}
	for e := range entries {
		if !p.count(e) {
			continue
		}
		if err := p.json.write(p.w, e); err != nil {
			return err
		}
	}
	p.json.forget()
	return p.w.Flush()
}

// count counts an entry, and reports whether the filter takes it.
func (p *Printer) count(e *relo.Entry) bool {
	p.Unmatched = p.Unmatched.without(e)
	if !p.opts.Filter.Match(e) {
		return false
	}
	p.Shown[e.Result]++
	return true
}

// add adds the entries of a log to an object.
func (p *Printer) add(o *object, entries iter.Seq[*relo.Entry]) {
	shared := make(map[outcomeKey]*outcome)
	n := 0
	for e := range entries {
		p.count(e)
		key := outcomeKey{e.Kind, endingOf(e)}
		d := shared[key]
		if d == nil {
			d = &outcome{decision(e), *e}
			shared[key] = d
		}
		if len(o.kernels) == 1 {
			o.records = append(o.records, o.record(e, d, p.opts.Verbose))
		} else {
			o.records[n].add(d, len(o.kernels)-1)
		}
		n++
	}
}

// record returns a record of the first log.
func (o *object) record(e *relo.Entry, d *outcome, source bool) record {
	at := place{e.Program, e.Section}
	if n := len(o.places); n == 0 || o.places[n-1] != at {
		o.places = append(o.places, at)
	}
	r := record{index: int32(e.Index), insn: int32(e.Insn), place: int32(len(o.places) - 1), first: d}
	if source {
		r.source = e.Source
	}
	return r
}

// add adds the outcome on a kernel after the first ones.
func (r *record) add(d *outcome, before int) {
	if r.differ == nil {
		if d.decision == r.first.decision {
			return
		}
		r.differ = &differ{[]*outcome{r.first}, make([]int32, before)}
	}
	l := r.differ
	i := slices.IndexFunc(l.outcomes, func(o *outcome) bool { return o.decision == d.decision })
	if i < 0 {
		i = len(l.outcomes)
		l.outcomes = append(l.outcomes, d)
	}
	l.of = append(l.of, int32(i))
}

// decision returns the part of an entry that is compared between kernels: the
// result, the value and the field. Type IDs are not part of it. Nor is the field's
// offset: if the relocation is for an offset, this is the value.
func decision(e *relo.Entry) string {
	var b strings.Builder
	b.WriteString(e.Result.String() + ": ")
	if e.Reason != nil {
		b.WriteString(e.Reason.String())
	}
	if e.New != nil && e.Kind != relo.TargetTypeID {
		escape.Fprintf(&b, " %d", *e.New)
	}
	if e.Target != nil {
		b.WriteString(" " + e.Target.Name(e.Kind) + " ")
		if e.Target.Module != nil {
			b.WriteString(*e.Target.Module)
		}
	}
	return b.String()
}

// Close writes the text. For a single kernel, it has a line for each relocation. For several, it has the kernels with their numbers and
// then, for each object, first the relocations with several outcomes, with the kernels of each, and then the others.
func (p *Printer) Close() error {
	if len(p.Shown) > 0 && len(p.kernels) > 1 {
		for i, k := range p.kernels {
			escape.Fprintf(p.w, "[%d] %s\n", i+1, k)
		}
	}
	for _, o := range p.objects {
		if len(p.kernels) == 1 {
			p.single(p.w, o)
		} else {
			p.several(p.w, o)
		}
	}
	return p.w.Flush()
}

// Filter chooses entries. An empty list takes all; of several lists all have
// to take an entry. Names may be patterns as in [path.Match], and malformed ones match no entry.
type Filter struct {
	Programs []string      // functions or sections
	Results  []relo.Result // exact
	Types    []string      // local types, flavors included, with or without "struct", "union" or "enum"
}

// Match reports whether the filter takes an entry.
func (f *Filter) Match(e *relo.Entry) bool {
	if len(f.Results) > 0 && !slices.Contains(f.Results, e.Result) {
		return false
	}
	if len(f.Programs) > 0 && !matchAny(f.Programs, e.Program, e.Section) {
		return false
	}
	return len(f.Types) == 0 || matchAny(f.Types, typeNames(e)...)
}

// typeNames returns the names by which a filter can select the local type.
func typeNames(e *relo.Entry) []string {
	_, name, ok := strings.Cut(e.Local.Type, " ")
	if !ok {
		name = e.Local.Type
	}
	essential, _, _ := strings.Cut(name, "___")
	return []string{e.Local.Type, name, essential}
}

// without returns the filter with those patterns that do not match the entry.
func (f Filter) without(e *relo.Entry) Filter {
	if len(f.Programs) > 0 {
		f.Programs = slices.DeleteFunc(f.Programs, func(p string) bool { return matchAny([]string{p}, e.Program, e.Section) })
	}
	if len(f.Types) > 0 {
		names := typeNames(e)
		f.Types = slices.DeleteFunc(f.Types, func(p string) bool { return matchAny([]string{p}, names...) })
	}
	return f
}

// matchAny matches slashes by "*" as well, since sections have some.
func matchAny(patterns []string, names ...string) bool {
	for _, p := range patterns {
		p = strings.ReplaceAll(p, "/", "\x00")
		for _, n := range names {
			if ok, _ := path.Match(p, strings.ReplaceAll(n, "/", "\x00")); ok && n != "" {
				return true
			}
		}
	}
	return false
}
