// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/words"
)

// docChanges are programs that are worse than in a baseline, better, or new.
type docChanges struct {
	Title string
	Rows  []docChange
}

// texts are the rows in a line each, without programs whose objects are among them.
func (c *docChanges) texts() (out []string) {
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.Of != "" && slices.ContainsFunc(c.Rows, func(r docChange) bool { return r.Name == row.Of }) {
			continue
		}
		was := ", was " + row.Was
		if row.Icon == "" {
			was = ""
		}
		out = append(out, fmt.Sprintf("%s: %s: %s%s (%s)", c.Title, row.Name, row.Is, was, row.Where))
	}
	return out
}

// lostTexts say what a baseline has and the report does not, kernels in one line.
func lostTexts(l []verdict.Lost) (out []string) {
	const gone = "In the baseline, not checked now: "
	var kernels []string
	for i := range l {
		if l[i].Kernel != "" {
			kernels = append(kernels, l[i].Kernel)
		} else {
			out = append(out, gone+strings.TrimSuffix(l[i].Object+": "+l[i].Program, ": "))
		}
	}
	if len(kernels) > 0 {
		out = append(out, gone+words.Plural(len(kernels), "kernel")+": "+some(kernels))
	}
	return out
}

type docChange struct {
	Name, Was string
	Of        string // the object of a program
	Icon      string // of Was, "" for a new program
	Is        rule.Status
	New       cell
	Where     string
}

// Markdown writes the report for a pull request.
func Markdown(w io.Writer, r *verdict.Report, o Options) error {
	d := newDocument(r, 5, o.Verbose)
	d.require(o)
	if o.Baseline != nil {
		d.Changes, d.Compared, d.Lost = d.changes(o.Baseline), true, o.Lost
	}
	return d.write(w, markdownSource, false)
}

// worseTitle is the title of what is worse than in a baseline.
const worseTitle = "Worse than the baseline"

// changes returns what got worse, what got better and what is new, objects first.
func (v *view) changes(old *verdict.Baseline) (all []docChanges) {
	l := v.CompareObjects(old, func(int) bool { return true })
	for i := range l {
		l[i].Program, l[i].ProgramAdded = "", false // whichever decides
	}
	l = append(l, v.Compare(old)...)
	at := make(map[string]int)
	for k := range v.Kernels {
		at[v.Kernels[k].Name] = k
	}
	groups := words.Group(l, func(c *verdict.Change) any {
		anywhere := *c
		anywhere.Kernel = ""
		return anywhere
	})
	for _, part := range []struct {
		title string
		in    func(*verdict.Change) bool
	}{
		{worseTitle, (*verdict.Change).Worse},
		{"Better than the baseline", (*verdict.Change).Better},
		{"Not in the baseline", func(c *verdict.Change) bool { return c.Added }},
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
			n, of := c.Object, ""
			if c.Program != "" {
				n, of = n+": "+c.Program, n
			}
			was, icon := "new", ""
			if !c.Added {
				was, icon = c.Old.String(), cellFor(c.Old).Icon()
			}
			out.Rows = append(out.Rows, docChange{n, was, of, icon, c.New, cellFor(c.New), v.where(on, 5)})
		}
		if len(out.Rows) > 0 {
			all = append(all, out)
		}
	}
	return all
}
