// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

// group is causes that are one to a reader: relocations of one field, fields of
// one type, or whatever else is missing for one reason, on the same kernels.
type group struct {
	status   rule.Status
	attach   bool
	Code     rule.Code
	what     []string // sorted
	Why      string
	Advice   string
	sources  []string // file:line, in order
	Guards   []string // sorted
	Shown    []string // by which witnesses it was decided, sorted
	programs []int    // ascending
	Kernels  []int    // ascending
}

// groupOf returns a finding as a group of its own.
func groupOf(f *rule.Finding) group {
	what := f.Subject
	switch f.Code {
	case rule.FeatureMissing, rule.StructOpsMissing, rule.StructOpsMember: // which map or function needs it
		if f.Name != "" {
			what += " (" + f.Name + ")"
		}
	case relo.NoCandidate: // about the type, whichever field the relocation is for
		what, _ = splitSpec(what)
	}
	return group{status: f.Status, attach: f.Attach, Code: f.Code, what: []string{what}, Why: why(f)}
}

// Verdict is the status in words.
func (g *group) Verdict() string {
	if g.status == rule.OK {
		return "warning"
	}
	return statusText(g.status, g.attach)
}

// reason is what is wrong, with the code.
func (g *group) reason() string { return g.Why + " [" + string(g.Code) + "]" }

// Cell is how tables show the status.
func (g *group) Cell() cell {
	loads := rule.OK
	if !g.attach {
		loads = g.status
	}
	if g.status == rule.OK {
		return cellMayFail
	}
	return cellOf([]rule.Status{g.status}, []rule.Status{loads}, 0)
}

// Subject names what a group is about, not more than most by name.
func (g *group) Subject(most int) string {
	s := listed(g.what, most)
	if e := codes.Of(g.Code); e != nil && e.Family.Word != "" && e.Family.Word != s {
		s = e.Family.Word + " " + s
	}
	return s
}

// text is a group in a line, without its code.
func (g *group) text(most int) string {
	return g.Verdict() + ": " + g.Subject(most) + ": " + g.Why
}

// causes returns what is wrong on kernels that count, grouped by what is done about it: the worst first, and of that what costs most kernels. It has
// findings on kernels on which the objects do not work, warnings and, with verbose, all and what is guarded.
func (v *view) causes(verbose bool) [][]group {
	owner := make([]*verdict.ObjectRow, len(v.Programs))
	for i := range v.Objects {
		for _, p := range v.Objects[i].Programs {
			owner[p] = &v.Objects[i]
		}
	}
	var all []group
	for p, o := range owner {
		worst := worstOf(v.Programs[p].Findings)
		for i := range v.Programs[p].Findings {
			f := &v.Programs[p].Findings[i]
			kernels := slices.DeleteFunc(slices.Clone(f.Kernels), func(k int) bool {
				return !v.counts(k) || f.Status >= rule.Unknown && f.Status < max(worst[causeOn(f, k, "")], worst[causeOn(f, k, f.Loader)])
			})
			switch {
			case f.Status == rule.Other:
				continue
			case verbose, f.Status == rule.OK:
			case f.Status < rule.Unknown || o == nil:
				continue
			default:
				kernels = slices.DeleteFunc(kernels, func(k int) bool { return o.Status[k] <= rule.Other })
			}
			if len(kernels) == 0 {
				continue
			}
			g := groupOf(&f.Finding)
			g.Kernels, g.programs = kernels, []int{p}
			if f.Source != "" {
				g.sources = []string{f.Source}
			}
			if f.Guard != nil {
				g.Guards = []string{guardText(&f.Finding)}
			}
			if f.Witness != "" {
				g.Shown = []string{witness(f.Witness)}
			}
			if e := codes.Of(f.Code); e != nil {
				g.Advice = e.Fix
			}
			all = append(all, g)
		}
	}
	all = merge(all, func(g *group) any { return groupKey{g.status, g.attach, g.Code, g.what[0], g.Why, ""} })
	all = merge(all, func(g *group) any {
		what := ""
		if rule.FamilyOf(g.Code) == rule.FamilyCORE && g.Code != relo.NoCandidate {
			what, _ = splitSpec(g.what[0])
		}
		return groupKey{g.status, g.attach, g.Code, what, g.Why, fmt.Sprint(g.Kernels)}
	})
	slices.SortStableFunc(all, func(a, b group) int {
		return cmp.Or(-cmp.Compare(a.status, b.status), -cmp.Compare(len(a.Kernels), len(b.Kernels)),
			-cmp.Compare(len(a.programs), len(b.programs)), slices.Compare(a.what, b.what), cmp.Compare(a.Why, b.Why))
	})
	for i := range all {
		slices.SortFunc(all[i].sources, comparePlaces)
	}
	return words.Group(all, func(g *group) any { return g.Advice })
}

// onKernel is what a finding is about, on a kernel.
type onKernel struct {
	code    rule.Code
	subject string
	kernel  int
	loader  rule.Loader // "" for any
}

func causeOn(f *verdict.KernelFinding, k int, l rule.Loader) onKernel {
	return onKernel{f.Code, f.Subject, k, l}
}

// worstOf returns the worst verdict for each thing that a program's findings are about: a call that certainly fails is not in doubt
// because another one of the same helper is.
func worstOf(findings []verdict.KernelFinding) map[onKernel]rule.Status {
	worst := make(map[onKernel]rule.Status)
	for i := range findings {
		f := &findings[i]
		for _, k := range f.Kernels {
			c := causeOn(f, k, f.Loader)
			worst[c] = max(worst[c], f.Status)
		}
	}
	return worst
}

type groupKey struct {
	status             rule.Status
	attach             bool
	code               rule.Code
	what, why, kernels string
}

// merge merges groups with equal keys.
func merge(l []group, of func(*group) any) (out []group) {
	for _, alike := range words.Group(l, of) {
		g := alike[0]
		for _, o := range alike[1:] {
			g.what, g.sources, g.Guards = append(g.what, o.what...), append(g.sources, o.sources...), append(g.Guards, o.Guards...)
			g.Shown = append(g.Shown, o.Shown...)
			g.programs, g.Kernels = append(g.programs, o.programs...), append(g.Kernels, o.Kernels...)
		}
		g.Shown = sorted(g.Shown)
		g.what, g.sources, g.Guards, g.programs, g.Kernels = sorted(g.what), sorted(g.sources), sorted(g.Guards), sorted(g.programs), sorted(g.Kernels)
		out = append(out, g)
	}
	return out
}

// sorted sorts a list and removes duplicates.
func sorted[T cmp.Ordered](l []T) []T {
	slices.Sort(l)
	return slices.Compact(l)
}

// listed names things one after the other, without what those after the first
// share with it: "struct s.a, .b". Of more than most it has the first and the last.
func listed(names []string, most int) string {
	if len(names) == 1 {
		return names[0]
	}
	shared := names[0] // up to the last separator
	for _, n := range names[1:] {
		i := 0
		for i < min(len(n), len(shared)) && n[i] == shared[i] {
			i++
		}
		shared = shared[:i]
	}
	shared = shared[:strings.LastIndexAny(shared, " ./:")+1]
	short := func(n string) string {
		if strings.HasSuffix(shared, ".") {
			return "." + n[len(shared):]
		}
		return n[len(shared):]
	}
	if len(names) > most {
		return fmt.Sprintf("%s … %s (%d)", names[0], short(names[len(names)-1]), len(names))
	}
	parts := []string{names[0]}
	for _, n := range names[1:] {
		parts = append(parts, short(n))
	}
	return strings.Join(parts, ", ")
}

// places lists lines of sources, by file: "x.bpf.c:12, 14; y.bpf.c:7".
func places(sources []string, most int) string {
	parts := make([][2]string, len(sources))
	for i, s := range sources {
		parts[i][0], parts[i][1], _ = cutLine(s)
	}
	return grouped(parts, ":", most)
}

// grouped lists names by what they belong to: "a: p, q; b: r". Of more than most it says how many there are.
func grouped(parts [][2]string, colon string, most int) string {
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == most && len(parts) > most+1:
			return b.String() + fmt.Sprintf(" and %d more", len(parts)-most)
		case i > 0 && p[0] == parts[i-1][0] && p[1] != "":
			b.WriteString(", " + p[1])
			continue
		case i > 0:
			b.WriteString("; ")
		}
		b.WriteString(p[0])
		if p[1] != "" {
			b.WriteString(colon + p[1])
		}
	}
	return b.String()
}

// comparePlaces orders lines of sources by number.
func comparePlaces(a, b string) int {
	fa, la, _ := cutLine(a)
	fb, lb, _ := cutLine(b)
	return cmp.Or(cmp.Compare(fa, fb), cmp.Compare(len(la), len(lb)), cmp.Compare(la, lb))
}

// cutLine splits file:line.
func cutLine(source string) (file, line string, ok bool) {
	if i := strings.LastIndexByte(source, ':'); i >= 0 {
		return source[:i], source[i+1:], true
	}
	return source, "", false
}
