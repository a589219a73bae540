// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/words"
)

// docChanges are programs that are worse than in a baseline, better, or new.
type docChanges struct {
	Title string
	Rows  []docChange
}

type docChange struct {
	Name, Was string
	Is        check.Status
	New       cell
	Where     string
}

// Markdown writes the report for a pull request.
func Markdown(w io.Writer, r *check.Report, o Options) error {
	d := newDocument(r, 5, o.Verbose)
	d.of(o)
	if o.Baseline != nil {
		d.Changes, d.Compared, d.Lost = d.changes(o.Baseline), true, o.Lost
	}
	return d.write(w, markdownSource, false)
}

// changes returns what got worse, what got better and what is new, objects first.
func (v *view) changes(old *check.Baseline) (all []docChanges) {
	l := v.CompareObjects(old, func(int) bool { return true })
	for i := range l {
		l[i].Program, l[i].ProgramAdded = "", false // whichever decides
	}
	l = append(l, v.Compare(old)...)
	at := make(map[string]int)
	for k := range v.Kernels {
		at[v.Kernels[k].Name] = k
	}
	groups := words.Group(l, func(c *check.Change) any {
		anywhere := *c
		anywhere.Kernel = ""
		return anywhere
	})
	for _, part := range []struct {
		title string
		in    func(*check.Change) bool
	}{
		{"Worse than the baseline", (*check.Change).Worse},
		{"Better than the baseline", (*check.Change).Better},
		{"Not in the baseline", func(c *check.Change) bool { return c.Added }},
	} {
		out := docChanges{Title: part.title}
		for _, alike := range groups {
			c := &alike[0]
			if !part.in(c) {
				continue
			}
			var on []int
			for i := range alike {
				on = append(on, at[alike[i].Kernel])
			}
			n := c.Object
			if c.Program != "" {
				n += ": " + c.Program
			}
			was := "new"
			if !c.Added {
				was = cellFor(c.Old).Icon() + " " + c.Old.String()
			}
			out.Rows = append(out.Rows, docChange{n, was, c.New, cellFor(c.New), v.where(on, 5)})
		}
		if len(out.Rows) > 0 {
			all = append(all, out)
		}
	}
	return all
}
