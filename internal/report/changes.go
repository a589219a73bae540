// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
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

// goneText begins the lines of what is no longer checked.
const goneText = "In the baseline, not checked now: "

// lostTexts say what a baseline has and the report does not: kernels by distribution, version and machine.
func lostTexts(_ *verdict.Report, l []verdict.Lost) (out []string) {
	var kernels []string
	for i := range l {
		if l[i].Kernel != "" {
			kernels = append(kernels, l[i].Kernel)
		} else {
			out = append(out, goneText+strings.TrimSuffix(l[i].Object+": "+l[i].Program, ": "))
		}
	}
	for _, text := range KernelSeries(kernels) {
		out = append(out, goneText+text)
	}
	return out
}

// KernelSeries names kernels in a line for each distribution, version, machine and release of Linux: "debian/12/x86_64 6.1: 47 kernels,
// 6.1.0-10-amd64 to 6.1.0-56-amd64". One alone has its own name.
func KernelSeries(names []string) (out []string) {
	for _, alike := range words.Group(names, func(name *string) any {
		k, err := kernel.ParseKey(*name)
		if err != nil || !k.Canonical().Known() {
			return *name
		}
		c := verdict.NewColumn(*name, k, "", nil)
		return [...]string{k.ID, k.VersionID, k.Arch, c.Release()}
	}) {
		if len(alike) == 1 {
			out = append(out, alike[0])
			continue
		}
		slices.SortFunc(alike, func(a, b string) int { return kernel.CompareVersions(path.Base(a), path.Base(b)) })
		out = append(out, fmt.Sprintf("%s: %s, %s to %s", path.Dir(alike[0]), words.Plural(len(alike), "kernel"), path.Base(alike[0]), path.Base(alike[len(alike)-1])))
	}
	return out
}

type docChange struct {
	Name, Was string
	Of        string // the object of a program
	Icon      string // icon of Was, "" for a new program
	Is        rule.Status
	New       cell
	Where     string
}

// worseTitle is the title of what is worse than in a baseline.
const worseTitle = "Worse than the baseline"

// changes returns the verdicts that are worse, better or new, those on objects first.
func changes(v *verdict.Report, old *verdict.Baseline) (all []docChanges) {
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
			out.Rows = append(out.Rows, docChange{n, was, of, icon, c.New, cellFor(c.New), whereOn(v, on)})
		}
		if len(out.Rows) > 0 {
			all = append(all, out)
		}
	}
	return all
}
