// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Comparison collects the logs of objects on several kernels and writes them
// side by side. It keeps of each log only what differs from the others. The
// zero value is ready; it is not safe for concurrent use.
type Comparison struct {
	kernels []string
	index   map[string]int
	objects []*object
	byName  map[string]*object
}

// object is one object on all its kernels.
type object struct {
	name    string
	kernels []int
	records []record
}

// record is one relocation on all kernels of the object.
type record struct {
	outcomes []outcome
	of       []int32 // the outcome on each of the object's kernels
}

// outcome is a decision, with the entry of the first kernel that has it.
type outcome struct {
	key   string
	entry relo.Entry
}

// Add takes the log of one object on one kernel. Logs of one object have the
// same records on every kernel.
func (c *Comparison) Add(l *relo.Log) {
	if c.index == nil {
		c.index, c.byName = make(map[string]int), make(map[string]*object)
	}
	k, ok := c.index[l.Kernel]
	if !ok {
		k = len(c.kernels)
		c.index[l.Kernel] = k
		c.kernels = append(c.kernels, l.Kernel)
	}
	o := c.byName[l.Object]
	if o == nil {
		o = &object{name: l.Object, records: make([]record, len(l.Entries))}
		c.byName[l.Object] = o
		c.objects = append(c.objects, o)
	}
	o.kernels = append(o.kernels, k)
	for i := range l.Entries {
		o.records[i].add(&l.Entries[i])
	}
}

func (r *record) add(e *relo.Entry) {
	key := decision(e)
	for i := range r.outcomes {
		if r.outcomes[i].key == key {
			r.of = append(r.of, int32(i))
			return
		}
	}
	r.of = append(r.of, int32(len(r.outcomes)))
	r.outcomes = append(r.outcomes, outcome{key, *e})
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

// Write writes what was added: the kernels with their numbers, then for each
// object the relocations on which they differ, with the kernels of each
// outcome, then those on which they do not.
func (c *Comparison) Write(w io.Writer, o Options) error {
	var body bytes.Buffer
	for _, obj := range c.objects {
		c.object(&body, obj, o)
	}
	if body.Len() == 0 {
		return nil
	}
	for i, k := range c.kernels {
		if _, err := escape.Fprintf(w, "[%d] %s\n", i+1, k); err != nil {
			return err
		}
	}
	_, err := w.Write(body.Bytes())
	return err
}

func (c *Comparison) object(w io.Writer, obj *object, o Options) {
	p := newPainter(o.Color)
	var differ []*record
	var same []*relo.Entry
	for i := range obj.records {
		r := &obj.records[i]
		switch {
		case !r.match(&o.Filter):
		case len(r.outcomes) > 1:
			differ = append(differ, r)
		default:
			same = append(same, &r.outcomes[0].entry)
		}
	}
	if len(differ)+len(same) == 0 {
		return
	}
	escape.Fprintf(w, "%s on %d kernels: %d relocations differ, %d are the same\n", obj.name, len(obj.kernels), len(differ), len(same))
	if len(differ) > 0 {
		escape.Fprintf(w, "  different:\n")
	}
	for i, r := range differ {
		if e := &r.outcomes[0].entry; i == 0 || !sameProgram(&differ[i-1].outcomes[0].entry, e) {
			escape.Fprintf(w, "    %s\n", program(e))
		}
		r.write(w, obj, p, o)
	}
	if len(same) > 0 {
		escape.Fprintf(w, "  the same:\n")
		p.table(w, same, "    ", place, o.Verbose)
	}
}

// match takes a relocation if the filter takes it on any kernel.
func (r *record) match(f *Filter) bool {
	for i := range r.outcomes {
		if f.Match(&r.outcomes[i].entry) {
			return true
		}
	}
	return false
}

// write writes a relocation that kernels differ on, a line for each outcome.
func (r *record) write(w io.Writer, obj *object, p painter, o Options) {
	e := &r.outcomes[0].entry
	escape.Fprintf(w, "      #%d  insn %d  <%s>  %s\n", e.Index, e.Insn, e.Kind, Spec(e.Kind, &e.Local))
	if o.Verbose && e.Source != "" {
		escape.Fprintf(w, "          source        %s\n", e.Source)
	}
	tw := newTable(w)
	for i := range r.outcomes {
		e := &r.outcomes[i].entry
		var numbers []int
		for k, of := range r.of {
			if int(of) == i {
				numbers = append(numbers, obj.kernels[k]+1)
			}
		}
		escape.Fprintf(tw, "          [%s]\t%s\t%s\t%s\n", ranges(numbers), place(e), change(e), p.outcome(e))
		if o.Verbose {
			tw.Flush()
			plain := *e
			plain.Source = ""
			details(w, &plain, "              ")
		}
	}
	tw.Flush()
}

// place is the target without what differs from kernel to kernel.
func place(e *relo.Entry) string {
	if e.Target == nil {
		return ""
	}
	out := "→ " + e.Target.Name(e.Kind)
	if e.Target.Module != nil && *e.Target.Module != "" {
		out += " [" + *e.Target.Module + "]"
	}
	return out
}

// ranges writes ascending numbers as "1-3 5".
func ranges(n []int) string {
	var parts []string
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, fmt.Sprint(n[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", n[i], n[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}
