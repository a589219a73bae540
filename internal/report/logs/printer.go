// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"io"
	"slices"

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
