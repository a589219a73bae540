// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/words"
)

// mostNames is how many things of one kind a line names.
const mostNames = 4

// causeLine is a cause in a line: "tracer.bpf.o, x86_64 5.10: map ring needs BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps
// [map-type-missing]".
func causeLine(r *verdict.Report, c *verdict.Cause, most int) string {
	who := short(objectNames(r, c.Objects))
	if c.Loader != "" {
		who += " with " + string(c.Loader)
	}
	return fmt.Sprintf("%s, %s: %s%s [%s]", who, where(r, c), causeWords(c, most), at(r, c), c.Code)
}

// CauseText says in words what a cause is about and what is wrong with it, with its code.
func CauseText(c *verdict.Cause, most int) string {
	return fmt.Sprintf("%s [%s]", causeWords(c, most), c.Code)
}

// causeWords are the status, unless it is a plain failure, what the cause is about, and what is wrong with it.
func causeWords(c *verdict.Cause, most int) string {
	if c.Attach || c.Status != rule.Fails {
		return causeStatus(c) + ": " + causeSubject(c, most)
	}
	return causeSubject(c, most)
}

// causeSubject says what a cause is about and what is wrong with it.
func causeSubject(c *verdict.Cause, most int) string {
	var parts []string
	if each := subjectReasons(c); len(each) == 2 {
		return strings.Join(append(parts, strings.Join(each, "; ")), ": ")
	}
	for _, s := range []string{subjectsOf(c, most), reasonOf(c)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// causeMessage returns the text of an annotation: the cause, its kernels, its programs, and advice.
func causeMessage(r *verdict.Report, c *verdict.Cause, most int) string {
	loader := ""
	if c.Loader != "" {
		loader = " with " + string(c.Loader)
	}
	text := fmt.Sprintf("%s. On %s%s. Programs: %s.", causeWords(c, most), where(r, c), loader, programs(r, c.Programs, most))
	if a := advice(c, false); a != "" {
		text += " " + a
	}
	return text
}

// causeStatus is the status in words.
func causeStatus(c *verdict.Cause) string {
	if c.Status == rule.OK {
		return "warning"
	}
	return statusText(c.Status, c.Attach)
}

// reasonOf says what is wrong: the sentence of all subjects or, if theirs differ, the title of the code. It is "" for maps that need a type,
// which says it.
func reasonOf(c *verdict.Cause) string {
	if needsType(c) {
		return ""
	}
	reason := why(&c.Subjects[0].Finding)
	for i := range c.Subjects {
		if why(&c.Subjects[i].Finding) != reason {
			return title(c.Code)
		}
	}
	return reason
}

// needsType reports whether the subjects of a cause are maps that need a type.
func needsType(c *verdict.Cause) bool {
	return c.Code == rule.MapTypeMissing && !slices.ContainsFunc(c.Subjects, func(s verdict.Subject) bool { return s.Name == "" })
}

// subjectReasons says for each subject what is wrong, if that is not the same for all.
func subjectReasons(c *verdict.Cause) (out []string) {
	if needsType(c) || reasonOf(c) == why(&c.Subjects[0].Finding) {
		return nil
	}
	for i := range c.Subjects {
		one := verdict.Cause{Code: c.Code, Status: c.Status, Subjects: c.Subjects[i : i+1]}
		out = append(out, strings.TrimPrefix(subjectsOf(&one, 1)+": "+reasonOf(&one), ": "))
	}
	return slices.Compact(out)
}

// subjectsOf returns the names of a cause's subjects, each with the release that introduced it, if known.
func subjectsOf(c *verdict.Cause, most int) string {
	var names []string
	same := true // the release of all
	came := func(f *rule.Finding) string { return f.Came() }
	for i := range c.Subjects {
		same = same && came(&c.Subjects[i].Finding) == came(&c.Subjects[0].Finding)
	}
	release := ""
	if v := came(&c.Subjects[0].Finding); same && v != "" && !strings.HasSuffix(reasonOf(c), "Linux "+v) {
		release = " (" + v + ")"
	}
	if maps := mapsOf(c); len(maps) > 1 {
		return "maps " + listed(maps, most) + " need " + c.Subjects[0].Subject + release
	}
	for i := range c.Subjects {
		f := &c.Subjects[i].Finding
		name := subjectOf(f)
		if v := came(f); !same && v != "" {
			name += " (" + v + ")"
		}
		names = append(names, name)
	}
	if c.Code == rule.RunningKernelNone || c.Code == rule.RunningKernelUnknown {
		return ""
	}
	family := ""
	e := codes.Of(c.Code)
	if e != nil && e.Family.Word != "" && !slices.Contains(names, e.Family.Word) && !strings.HasPrefix(names[0], "map ") {
		family = e.Family.Word + " "
	}
	return family + listed(sorted(names), most) + release
}

// mapsOf names the maps that need a type, if it is the same for all.
func mapsOf(c *verdict.Cause) (names []string) {
	for i := range c.Subjects {
		s := &c.Subjects[i]
		if !needsType(c) || s.Subject != c.Subjects[0].Subject {
			return nil
		}
		names = append(names, s.Name)
	}
	return sorted(names)
}

// subjectOf names what a finding is about, with the map or function that needs it.
func subjectOf(f *rule.Finding) string {
	switch f.Code {
	case rule.MapTypeMissing, rule.MapTypeUnset:
		if f.Name != "" {
			return fmt.Sprintf("map %s needs %s", f.Name, f.Subject)
		}
	case rule.HelperMap:
		if f.Other != "" {
			return fmt.Sprintf("%s with map %s", f.Subject, f.Other)
		}
	case rule.FeatureMissing, rule.StructOpsMissing, rule.StructOpsMember:
		if f.Name != "" {
			return fmt.Sprintf("%s (%s)", f.Subject, f.Name)
		}
	}
	return subjectName(f)
}

// at names the program and the line of the source, if there is one of an object.
func at(r *verdict.Report, c *verdict.Cause) string {
	var parts []string
	if family := rule.FamilyOf(c.Code); len(c.Programs) == 1 && family != rule.FamilyMapType && family != rule.FamilyMapDef {
		parts = append(parts, "program "+r.Programs[c.Programs[0]].Name)
	}
	if n := len(c.Sources); n == 1 || n > 0 && len(c.Objects) == 1 {
		place := path.Base(c.Sources[0])
		if n > 1 {
			place += " and " + words.Plural(n-1, "other line")
		}
		parts = append(parts, place)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// advice is what to do about a cause, and briefly its first sentence.
func advice(c *verdict.Cause, briefly bool) string {
	e := codes.Of(c.Code)
	if e == nil {
		return ""
	}
	if i := strings.Index(e.Fix, ". "); i > 0 && briefly {
		return e.Fix[:i+1]
	}
	return e.Fix
}

// title is the title of a code, as in the middle of a sentence.
func title(c rule.Code) string {
	if e := codes.Of(c); e != nil {
		return lower(e.Title)
	}
	return string(c)
}

func objectNames(r *verdict.Report, objects []int) (names []string) {
	for _, i := range objects {
		names = append(names, r.Objects[i].Object)
	}
	return names
}

// where names the lines of a cause.
func where(r *verdict.Report, c *verdict.Cause) string {
	of := make([]int, len(r.Lines))
	for i := range r.Lines {
		for _, k := range r.Lines[i].Kernels {
			if slices.ContainsFunc(c.Objects, func(o int) bool { return r.Objects[o].Status[k].Judged() }) {
				of[i]++
			}
		}
	}
	return places(r, c.Where, of)
}

// whereOn names the lines of some kernels.
func whereOn(r *verdict.Report, kernels []int) string {
	var all []verdict.Place
	of := make([]int, len(r.Lines))
	for i := range r.Lines {
		of[i] = len(r.Lines[i].Kernels)
		p := verdict.Place{Line: i, Of: of[i]}
		for _, k := range r.Lines[i].Kernels {
			if slices.Contains(kernels, k) {
				p.Kernels++
			}
		}
		if p.Kernels > 0 {
			all = append(all, p)
		}
	}
	return places(r, all, of)
}

// places names lines by machine, as the matrix does: "x86_64 5.10, 6.12 (1 of 2); all arm". of is how many kernels of each line there are.
func places(r *verdict.Report, all []verdict.Place, of []int) string {
	count := make([]int, len(r.Lines)) // kernels that all has of each line
	for _, p := range all {
		count[p.Line] = p.Kernels
	}
	var parts []string
	whole, machines := true, 0
	for i := 0; i < len(r.Lines); {
		machine := r.Lines[i].Machine
		from := i
		for i < len(r.Lines) && r.Lines[i].Machine == machine {
			i++
		}
		names, full := linesOf(r, count, of, from, i)
		if slices.ContainsFunc(of[from:i], func(n int) bool { return n > 0 }) {
			machines++
		}
		whole = whole && full
		switch {
		case len(names) == 0:
		case machine == verdict.Unknown:
			parts = append(parts, undated(names))
		case full && len(names) > 1:
			parts = append(parts, "all "+machine)
		default:
			parts = append(parts, machine+" "+strings.Join(first(joined(names)), ", "))
		}
	}
	if whole && (machines > 1 || len(all) > 1) {
		return "every kernel"
	}
	return strings.Join(parts, "; ")
}

// first returns the first of many lines, and the number of others.
func first(names []string) []string {
	const most = 5
	if n := len(names) - most; n > 0 {
		names = append(names[:most:most], words.Plural(n+1, "other line"))
		return slices.Delete(names, most-1, most)
	}
	return names
}

// undated names kernels without a release, which have no order.
func undated(names []lineName) string {
	var all []string
	for _, n := range names {
		all = append(all, n.name)
	}
	return some(all)
}

// lineName is a line of the matrix in a list of places, and whether all of its kernels are meant.
type lineName struct {
	name  string
	whole bool
	after bool // no other line with kernels is between it and the one before
}

// linesOf returns the names of lines from one to another, and whether all kernels of these lines are meant.
func linesOf(r *verdict.Report, count, of []int, from, to int) (names []lineName, all bool) {
	all = true
	gap := true
	for i := from; i < to; i++ {
		if of[i] == 0 && count[i] == 0 {
			continue
		}
		all = all && count[i] == of[i]
		if count[i] == 0 {
			gap = true
			continue
		}
		n := lineName{r.Lines[i].Name, count[i] == of[i], !gap}
		if !n.whole {
			n.name += fmt.Sprintf(" (%d of %d)", count[i], of[i])
		}
		names, gap = append(names, n), false
	}
	return names, all
}

// joined writes runs of three or more whole lines that follow each other as "5.10 to 6.12".
func joined(names []lineName) (out []string) {
	for i := 0; i < len(names); {
		end := i + 1
		for end < len(names) && names[i].whole && names[end].whole && names[end].after {
			end++
		}
		if end-i > 2 {
			out = append(out, names[i].name+" to "+names[end-1].name)
			i = end
			continue
		}
		out = append(out, names[i].name)
		i++
	}
	return out
}
