// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Cause is one reason why objects do not work, or may not: a code and its subjects on the same kernels. Status is OK for a warning.
type Cause struct {
	Code     rule.Code   `json:"code"`
	Status   rule.Status `json:"status"`
	Attach   bool        `json:"attach,omitempty"` // only attaching depends on it
	Loader   rule.Loader `json:"loader,omitempty"` // only loader for which it counts; "" for all
	Subjects []Subject   `json:"subjects"`         // sorted
	Objects  []int       `json:"objects"`          // indices of Report.Objects, ascending
	Programs []int       `json:"programs"`         // indices of Report.Programs, ascending
	Kernels  []int       `json:"kernels"`          // indices of Report.Kernels, ascending
	Where    []Place     `json:"where"`
	Sources  []string    `json:"sources,omitempty"` // file:line, sorted
}

// Subject is a thing that a cause is about: a map, helper, field or function. The finding is on one of its programs; its Source and Guard
// are not set.
type Subject struct {
	rule.Finding
	Programs []int `json:"programs"` // ascending
}

// Place is a line on which a cause counts, with how many of the kernels on which one of its objects is loaded.
type Place struct {
	Line    int `json:"line"` // index of Report.Lines
	Kernels int `json:"kernels"`
	Of      int `json:"of"`
}

// scope says which findings causes are about.
type scope uint8

const (
	deciding scope = iota // findings for which objects do not work or may not; for an object that fails, only failures
	warnings              // findings on programs that load
	all                   // all other findings, also guarded uses and those on programs that objects do without
)

// has reports whether a finding with a status may count.
func (s scope) has(f rule.Status) bool {
	switch s {
	case deciding:
		return f >= rule.Unknown
	case warnings:
		return f == rule.OK
	}
	return f != rule.OK && f != rule.Other
}

// All returns the causes of everything that was found, also where objects do without the program, and guarded uses.
func (r *Report) All() []Cause { return r.causes(all) }

// causeKey is what the findings of one cause have in common, apart from kernels.
type causeKey struct {
	code   rule.Code
	status rule.Status
	attach bool
	loader rule.Loader
}

// subjectKey is a subject of an object.
type subjectKey struct {
	causeKey
	subject, name string
	args          rule.Args // arguments of warnings, which say what is different
}

// subjectFound is what is known of a subject, by object.
type subjectFound struct {
	Subject
	sources map[string]bool
	objects map[int]*found
}

// found is the programs and kernels of an object.
type found struct {
	programs []int
	kernels  []bool
}

// causes groups the findings of a scope, first by subject, then by kernels.
func (r *Report) causes(of scope) []Cause {
	subjects := make(map[subjectKey]*subjectFound)
	for i := range r.Objects {
		o := &r.Objects[i]
		decides := make(map[int][]int, len(o.Decides))
		for _, d := range o.Decides {
			decides[d.Program] = d.Kernels
		}
		for _, p := range o.Programs {
			if on := decides[p]; of != deciding || on != nil {
				r.collect(subjects, of, i, p, on)
			}
		}
	}
	strongest(subjects)
	return r.merged(subjects)
}

// strongest removes weaker findings about the same thing, object and kernel. A call of a helper is not in doubt if another call
// certainly fails, and a finding with every loader makes one with a single loader superfluous.
func strongest(subjects map[subjectKey]*subjectFound) {
	type thing struct {
		code          rule.Code
		subject, name string
	}
	alike := make(map[thing][]subjectKey)
	for key := range subjects {
		if key.status >= rule.Unknown {
			t := thing{key.code, key.subject, key.name}
			alike[t] = append(alike[t], key)
		}
	}
	for _, keys := range alike {
		slices.SortFunc(keys, func(a, b subjectKey) int { // strongest first
			return cmp.Or(-cmp.Compare(a.status, b.status), cmp.Compare(a.loader, b.loader), b2i(a.attach)-b2i(b.attach))
		})
		for i, weak := range keys {
			for _, strong := range keys[:i] {
				if strong.loader == "" || strong.loader == weak.loader {
					subjects[weak].without(subjects[strong])
				}
			}
		}
		for _, key := range keys {
			if len(subjects[key].objects) == 0 {
				delete(subjects, key)
			}
		}
	}
}

// without removes the kernels of the objects that another subject has.
func (s *subjectFound) without(o *subjectFound) {
	for object, found := range s.objects {
		other := o.objects[object]
		if other == nil {
			continue
		}
		left := false
		for k := range found.kernels {
			found.kernels[k] = found.kernels[k] && !other.kernels[k]
			left = left || found.kernels[k]
		}
		if !left {
			delete(s.objects, object)
		}
	}
}

// collect adds the findings of a scope on a program, given the object and the kernels on which the program decides about it.
func (r *Report) collect(subjects map[subjectKey]*subjectFound, of scope, object, program int, decides []int) {
	o, findings := &r.Objects[object], r.Programs[program].Findings
	untyped := o.untyped(findings)
	for j := range findings {
		f := &findings[j]
		if !of.has(f.Status) || !o.concerns(f) {
			continue
		}
		kernels := f.Kernels
		if of == deciding {
			kernels = o.decidedBy(f, decides, untyped)
		}
		if len(kernels) > 0 {
			r.note(subjects, object, program, f, kernels)
		}
	}
}

// concerns reports whether a finding concerns the loader whose verdict counts.
func (row *ObjectRow) concerns(f *KernelFinding) bool {
	return row.Loader == "" || f.Concerns(row.Loader)
}

// untyped returns the kernels that lack the type of a program, given the findings on the program.
func (row *ObjectRow) untyped(findings []KernelFinding) (kernels []int) {
	for i := range findings {
		if f := &findings[i]; f.Code == rule.ProgTypeMissing && f.Status == rule.Fails && row.concerns(f) {
			kernels = f.Kernels
		}
	}
	return kernels
}

// decidedBy returns the kernels of a finding on which it is as bad as the object's verdict, and its program decides. Kernels without the
// program's type are left out of findings about attaching.
func (row *ObjectRow) decidedBy(f *KernelFinding, decides, untyped []int) (kernels []int) {
	attaching := aboutAttaching(f.Code)
	for _, k := range f.Kernels {
		s := row.Status[k]
		if s >= rule.Unknown && f.Status >= s && has(decides, k) && !(attaching && has(untyped, k)) {
			kernels = append(kernels, k)
		}
	}
	return kernels
}

// has reports whether a list of kernels in ascending order has one.
func has(kernels []int, k int) bool {
	_, ok := slices.BinarySearch(kernels, k)
	return ok
}

// aboutAttaching reports whether a code says nothing more of a program whose type the kernel lacks.
func aboutAttaching(c rule.Code) bool {
	f := rule.FamilyOf(c)
	return c == rule.AttachTypeMissing || c == rule.LinkTypeMissing || f == rule.FamilyTarget || f == rule.FamilyRunning
}

// note adds a finding on a program of an object.
func (r *Report) note(all map[subjectKey]*subjectFound, object, program int, f *KernelFinding, kernels []int) {
	key := subjectKey{causeKey: causeKey{f.Code, f.Status, f.Attach, f.Loader}, subject: f.Subject, name: f.Name}
	if f.Status == rule.OK {
		key.args = f.Args
	}
	// These are about the kernel's BTF, whatever needs it.
	if f.Code == rule.RunningKernelNone || f.Code == rule.RunningKernelUnknown {
		key.subject = ""
	}
	s := all[key]
	if s == nil {
		s = &subjectFound{
			Subject: Subject{Finding: f.Finding}, objects: make(map[int]*found), sources: make(map[string]bool),
		}
		s.Finding.Source, s.Finding.Guard = "", nil
		// Here it is the other loader that gives up on the object or program.
		switch own := r.Objects[object].Loader; {
		case own == rule.EbpfGo && f.Stops == rule.ObjectStops, own == rule.Libbpf && f.Stops == rule.ProgramStops:
			s.Stops = rule.NothingStops
		}
		all[key] = s
	}
	o := s.objects[object]
	if o == nil {
		o = &found{kernels: make([]bool, len(r.Kernels))}
		s.objects[object] = o
	}
	if n := len(o.programs); n == 0 || o.programs[n-1] != program {
		o.programs = append(o.programs, program)
	}
	for _, k := range kernels {
		o.kernels[k] = true
	}
	if f.Source != "" {
		s.sources[f.Source] = true
	}
}

// merged makes causes of subjects. Objects of a subject are together if each has it on all kernels of the cause on which it is loaded.
func (r *Report) merged(all map[subjectKey]*subjectFound) []Cause {
	type groupKey struct {
		causeKey
		kernels string
	}
	causes := make(map[groupKey]*Cause)
	sources := make(map[groupKey]map[string]bool)
	for _, key := range slices.SortedFunc(maps.Keys(all), subjectKey.compare) {
		s := all[key]
		for _, same := range r.split(s) {
			at := groupKey{key.causeKey, fmt.Sprint(same.kernels)}
			c := causes[at]
			if c == nil {
				c = &Cause{
					Code: key.code, Status: key.status, Attach: key.attach, Loader: key.loader, Kernels: same.kernels,
				}
				causes[at], sources[at] = c, make(map[string]bool)
			}
			one := s.Subject
			for _, o := range same.objects {
				one.Programs = append(one.Programs, s.objects[o].programs...)
			}
			one.Programs = sorted(one.Programs)
			c.Subjects = append(c.Subjects, one)
			c.Objects, c.Programs = append(c.Objects, same.objects...), append(c.Programs, one.Programs...)
			maps.Copy(sources[at], s.sources)
		}
	}
	var out []Cause
	for at, c := range causes {
		c.Objects, c.Programs, c.Sources = sorted(c.Objects), sorted(c.Programs), slices.Sorted(maps.Keys(sources[at]))
		c.Where = r.places(c)
		out = append(out, *c)
	}
	slices.SortFunc(out, r.compareCauses)
	return out
}

// sharing is objects that have a subject on the same kernels.
type sharing struct {
	objects []int
	kernels []int
}

// split splits the objects of a subject.
func (r *Report) split(s *subjectFound) []sharing {
	objects := slices.Sorted(maps.Keys(s.objects))
	union := make([]bool, len(r.Kernels))
	for _, o := range s.objects {
		for k, on := range o.kernels {
			union[k] = union[k] || on
		}
	}
	whole := sharing{kernels: indices(union)}
	var apart []sharing
	for _, o := range objects {
		own := s.objects[o].kernels
		if !slices.ContainsFunc(whole.kernels, func(k int) bool { return !own[k] && r.Objects[o].Status[k].Judged() }) {
			whole.objects = append(whole.objects, o)
			continue
		}
		kernels := indices(own)
		i := slices.IndexFunc(apart, func(p sharing) bool { return slices.Equal(p.kernels, kernels) })
		if i < 0 {
			i = len(apart)
			apart = append(apart, sharing{kernels: kernels})
		}
		apart[i].objects = append(apart[i].objects, o)
	}
	if len(whole.objects) == 0 {
		return apart
	}
	own := make([]bool, len(r.Kernels)) // kernels of the objects that are together
	for _, o := range whole.objects {
		for k, on := range s.objects[o].kernels {
			own[k] = own[k] || on
		}
	}
	whole.kernels = indices(own)
	return append([]sharing{whole}, apart...)
}

// places returns the lines of a cause.
func (r *Report) places(c *Cause) (where []Place) {
	on := make([]bool, len(r.Kernels))
	for _, k := range c.Kernels {
		on[k] = true
	}
	for i := range r.Lines {
		p := Place{Line: i}
		for _, k := range r.Lines[i].Kernels {
			if on[k] {
				p.Kernels++
			}
			if on[k] || slices.ContainsFunc(c.Objects, func(o int) bool { return r.Objects[o].Status[k].Judged() }) {
				p.Of++
			}
		}
		if p.Kernels > 0 {
			where = append(where, p)
		}
	}
	return where
}

// compareCauses orders causes: the worst first, and of these what costs most verdicts.
func (r *Report) compareCauses(a, b Cause) int {
	cost := func(c *Cause) (n int) {
		for _, o := range c.Objects {
			for _, k := range c.Kernels {
				if r.Objects[o].Status[k].Judged() {
					n++
				}
			}
		}
		return n
	}
	return cmp.Or(
		-cmp.Compare(a.Status, b.Status), -cmp.Compare(cost(&a), cost(&b)),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Loader, b.Loader),
		slices.Compare(a.Kernels, b.Kernels), cmp.Compare(a.Subjects[0].Subject, b.Subjects[0].Subject),
		slices.Compare(a.Objects, b.Objects), b2i(a.Attach)-b2i(b.Attach))
}

func (a subjectKey) compare(b subjectKey) int {
	return cmp.Or(
		cmp.Compare(a.subject, b.subject), cmp.Compare(a.name, b.name),
		cmp.Compare(a.code, b.code), cmp.Compare(a.status, b.status),
		cmp.Compare(a.loader, b.loader), b2i(a.attach)-b2i(b.attach),
		cmp.Compare(fmt.Sprint(a.args), fmt.Sprint(b.args)))
}

func indices(set []bool) (list []int) {
	for i, in := range set {
		if in {
			list = append(list, i)
		}
	}
	return list
}

func sorted(l []int) []int {
	slices.Sort(l)
	return slices.Compact(l)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Worst is the worst verdict on any object on the kernels that sel chooses.
func (r *Report) Worst(sel func(kernel int) bool) rule.Status {
	w := rule.OK
	for i := range r.Objects {
		for k, s := range r.Objects[i].Status {
			if sel(k) {
				w = max(w, s)
			}
		}
	}
	return w
}

// Failing returns the names of the objects that fail on chosen kernels, and these kernels.
func (r *Report) Failing(sel func(kernel int) bool) (objects []string, kernels []int) {
	for i := range r.Objects {
		before := len(kernels)
		for k, s := range r.Objects[i].Status {
			if s == rule.Fails && sel(k) {
				kernels = append(kernels, k)
			}
		}
		if len(kernels) > before {
			objects = append(objects, r.Objects[i].Object)
		}
	}
	return objects, sorted(kernels)
}

// Counts returns how many programs have each verdict at worst, on chosen kernels on which they are loaded. A program that none of these
// kernels loads counts as Unloaded, or as Other if all have other machines.
func (r *Report) Counts(sel func(kernel int) bool) map[rule.Status]int {
	n := make(map[rule.Status]int)
	for i := range r.Programs {
		w := rule.Other
		for k, s := range r.Programs[i].Status {
			if sel(k) {
				w = both(w, s)
			}
		}
		n[w]++
	}
	return n
}

// Modules returns the sorted names of the modules that programs need. If one of several modules is enough, it is the first.
func (r *Report) Modules() []string {
	names := make(map[string]bool)
	for i := range r.Programs {
		for _, f := range r.Programs[i].Findings {
			if f.Code == rule.ModuleNeeded {
				names[f.Names.List()[0]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
