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
}

// record is one relocation on all kernels of the object.
type record struct {
	outcomes []outcome
	of       []int32 // the outcome on each of the object's kernels, if these are several
}

// outcome is a decision, with the entry of the first kernel that has it.
type outcome struct {
	decision string // "" on the first kernel
	*relo.Entry
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

// Print adds a log. The logs of one kernel must come one after the other. Logs of one object have the same records on
// every kernel. The entries of its first log must not change until Close.
func (p *Printer) Print(log *relo.Log) error {
	for i := range log.Entries {
		e := &log.Entries[i]
		p.Unmatched = p.Unmatched.without(e)
		if !p.opts.Filter.Match(e) {
			continue
		}
		p.Shown[e.Result]++
		if p.json != nil {
			if err := p.json.write(p.w, e); err != nil {
				return err
			}
		}
	}
	if p.json != nil {
		p.json.forget()
		return p.w.Flush()
	}
	if n := len(p.kernels); n == 0 || p.kernels[n-1] != log.Kernel {
		p.kernels = append(p.kernels, log.Kernel)
	}
	i := slices.IndexFunc(p.objects, func(o *object) bool { return o.name == log.Object })
	if i < 0 {
		i = len(p.objects)
		p.objects = append(p.objects, &object{name: log.Object, records: make([]record, len(log.Entries))})
	}
	o := p.objects[i]
	o.kernels = append(o.kernels, len(p.kernels)-1)
	for i := range log.Entries {
		o.records[i].add(&log.Entries[i])
	}
	return nil
}

func (r *record) add(e *relo.Entry) {
	if len(r.outcomes) == 0 {
		r.outcomes = []outcome{{"", e}}
		return
	}
	first, key := &r.outcomes[0], decision(e)
	if r.of == nil {
		first.decision, r.of = decision(first.Entry), []int32{0}
	}
	i := slices.IndexFunc(r.outcomes, func(o outcome) bool { return o.decision == key })
	if i < 0 {
		i = len(r.outcomes)
		copied := *e // not all that its log has
		r.outcomes = append(r.outcomes, outcome{key, &copied})
	}
	r.of = append(r.of, int32(i))
}

// decision is what counts as the same on two kernels: result, value and the
// field it comes from, but neither type IDs nor where the field is, which is
// the value where anybody asks.
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

// Close writes the text: of a single kernel a line for each relocation; of several the kernels with their numbers, then for
// each object the relocations on which they differ, with the kernels of each outcome, then those on which they do not.
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
