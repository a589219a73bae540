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

	"github.com/btfgen/btfgen/pkg/relo"
)

// Printer writes the logs of several objects: those on a single kernel as [Write] does, those on several
// as a [Comparison]. It is not safe for concurrent use.
type Printer struct {
	w    *bufio.Writer
	opts Options
	json *lines // nil for text

	pending []*relo.Log // the first kernel's, until it is known to be the only one
	first   string      // name of the first kernel
	compare *Comparison

	// Shown counts the relocations that the filter keeps, once for each kernel.
	Shown relo.Counts

	// Unmatched has those patterns of the filter that match no relocation of any log, shown or not.
	Unmatched Filter
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

// Print adds a log. The logs of one kernel must come one after the other.
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
	if p.compare == nil && (p.first == "" || p.first == log.Kernel) {
		p.first = log.Kernel
		p.pending = append(p.pending, log)
		return nil
	}
	if p.compare == nil {
		p.compare = new(Comparison)
		for _, l := range p.pending {
			p.compare.Add(l)
		}
		p.pending = nil
	}
	p.compare.Add(log)
	return nil
}

// Close writes what had to wait for the last log.
func (p *Printer) Close() error {
	if p.compare != nil {
		if err := p.compare.Write(p.w, p.opts); err != nil {
			return err
		}
	}
	for _, l := range p.pending {
		if err := Write(p.w, l, p.opts); err != nil {
			return err
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
