// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// What is said of a program on a kernel because of other kernels: a pass over its findings on all of them. It adds information and warnings. A
// verdict on a kernel never depends on which others are in the run.

// fromLoader has codes for things that no kernel has, keyed by the code of their absence: the loader may
// supply them.
var fromLoader = map[rule.Code]rule.Code{
	rule.AttachTargetMissing: rule.AttachTargetNowhere,
	relo.NoCandidate:         rule.TypesSupplied,
}

// blameLoader says of failures for a target or type that no kernel has that the loader may supply it. Kernels that cannot
// know do not count; where fewer than three can, nothing is said.
func blameLoader(findings []verdict.KernelFinding, kernels int) {
	const enough = 3
	type thing struct {
		code                rule.Code
		subject, relocation string // "" matches any
	}
	without, unseen := make(map[thing]kernelSet), make(map[thing]kernelSet)
	add := func(sets map[thing]kernelSet, t thing, kernels []int) {
		s := sets[t]
		for _, k := range kernels {
			s.add(k)
		}
		sets[t] = s
	}
	for i := range findings {
		f := &findings[i]
		if fromLoader[f.Code] != "" {
			add(without, thing{f.Code, f.Subject, f.Relocation}, f.Kernels)
			continue
		}
		for code := range fromLoader {
			if cannotKnow(&f.Finding, code) {
				add(unseen, thing{code: code}, f.Kernels)
			}
		}
	}
	for i := range findings {
		f := &findings[i]
		if f.Status != rule.Fails || fromLoader[f.Code] == "" {
			continue
		}
		all := slices.Clone(without[thing{f.Code, f.Subject, f.Relocation}])
		n := len(all.list())
		if all.addAll(unseen[thing{code: f.Code}]); n >= enough && len(all.list()) == kernels {
			f.Code, f.Args = fromLoader[f.Code], rule.Args{}
		}
	}
}

// cannotKnow reports whether a kernel with the finding may have any target, or any type, unseen.
func cannotKnow(f *rule.Finding, code rule.Code) bool {
	switch {
	case f.Status == rule.Other:
		return true
	case code == rule.AttachTargetMissing:
		return rule.FamilyOf(f.Code) == rule.FamilyTarget && (f.Status == rule.Unknown || f.Code == rule.AttachTargetModule)
	}
	return f.Code == rule.AnalysisFindings
}

// inModules has the codes of findings on what a module may have whose BTF the corpus does not have.
var inModules = []rule.Code{
	rule.AttachTargetModule, rule.AttachTargetUnlisted, rule.AttachTargetMaybeModule, rule.AttachTargetTracepoint,
	rule.KfuncModule, rule.KsymModule, rule.KsymMaybeModule, rule.StructOpsModule,
}

// nameModules names in such findings the modules that have it on other kernels.
func nameModules(all []rule.Finding) {
	modules := make(map[string][]string) // modules that have the subject
	for i := range all {
		if f := &all[i]; f.Code == rule.ModuleNeeded && f.Relocation == "" {
			modules[f.Subject] = append(modules[f.Subject], f.Names.List()...)
		}
	}
	for i := range all {
		if f := &all[i]; f.Names == "" && slices.Contains(inModules, f.Code) {
			names := modules[f.Subject]
			slices.Sort(names)
			f.Names = rule.NamesOf(slices.Compact(names))
		}
	}
}

// shapes are those of an object's programs, by program.
type shapes map[int]*rule.Shape

// shapesOf returns the shapes of what an object's programs read, each kept once; nil for none.
func (r *run) shapesOf(all []*programCode) shapes {
	var out shapes
	r.mu.Lock()
	defer r.mu.Unlock()
	for j, c := range all {
		s := c.program.Shape
		if s == nil {
			continue
		}
		if r.shapes[s.Text] == nil {
			r.shapes[s.Text] = s
		}
		if out == nil {
			out = make(shapes)
		}
		out[j] = r.shapes[s.Text]
	}
	return out
}

// reading is what a program reads of a shape: an argument or, of a record, so many bytes.
type reading struct {
	argument  int
	off, size int64
	record    bool
}

// of returns the slot of a shape that the program reads, nil for none or for parts of several.
func (x *reading) of(s *rule.Shape) *rule.Slot {
	for i := range s.Slots {
		f := &s.Slots[i]
		if x.record && f.Off <= x.off && x.off+x.size <= f.Off+f.Size && i > 0 || !x.record && i == x.argument {
			return f
		}
	}
	return nil
}

// differs reports whether a shape has something else than another one where that has a slot: it is known to be elsewhere, or has
// another type.
func (x *reading) differs(here, ref *rule.Shape) bool {
	a, b := x.of(ref), x.of(here)
	switch {
	case a == nil || b == nil:
		return a != nil && x.record
	case a.Field() != b.Field() && (here.Named(a) != nil || ref.Named(b) != nil):
		return true
	case x.record:
		// Of an array, the program reads the beginning.
		array := strings.Contains(a.Text, "[") && strings.Contains(b.Text, "[")
		return a.Off != b.Off || a.Size != b.Size && !array
	}
	return a.Number != b.Number || a.To != b.To && a.To != "" && b.To != "" || a.Plain && b.To != "" || b.Plain && a.To != ""
}

// knows reports whether a program's own struct has names of a kernel's record, at least of the part that it reads.
func (x *reading) knows(own, s *rule.Shape) bool {
	a, b := x.of(own), x.of(s)
	return a != nil && (s.Named(a) != nil || b != nil && own.Named(b) != nil)
}

// text is the slot that the program reads, in C: "" for no field, and the whole prototype for an argument.
func (x *reading) text(s *rule.Shape) string {
	if !x.record {
		return s.Text
	}
	if f := x.of(s); f != nil {
		return f.Text
	}
	return ""
}

// changed replaces the findings on what program j of object i reads by warnings on the kernels with something else than the
// program was compiled for: by its own types or, if these do not say, by the newest kernel. Kernels on which it fails do not
// count.
func (r *run) changed(findings []verdict.KernelFinding, i, j int, status []rule.Status) (out []verdict.KernelFinding) {
	if !slices.ContainsFunc(findings, func(f verdict.KernelFinding) bool { return f.Status == rule.OK }) {
		return findings
	}
	v := &vote{run: r, object: i, program: j, status: status, warnings: make(map[rule.Finding][]int)}
	for i := range findings {
		f := &findings[i]
		x := &reading{argument: int(f.Count), off: f.Offset, size: max(f.Size, 1), record: f.Code == rule.ChangedField}
		w := f.Finding
		w.Count, w.Size = 0, 0
		switch compared := f.Code == rule.ChangedArgument || f.Code == rule.ChangedField; {
		case f.Status != rule.OK:
			out = append(out, *f)
		case !compared: // no other kernel is needed
			v.warn(f.Finding, slices.DeleteFunc(slices.Clone(f.Kernels), v.ignores)...)
		case w.Other != "":
			v.ownType(w, x, v.shaped(f.Kernels))
		default:
			v.ownRecord(w, x, v.shaped(f.Kernels))
		}
	}
	for w, on := range v.warnings {
		out = append(out, verdict.KernelFinding{Finding: w, Kernels: on})
	}
	return out
}

// vote compares what a program reads on kernels.
type vote struct {
	*run
	object, program int
	status          []rule.Status // verdicts on the program, per kernel
	warnings        map[rule.Finding][]int
}

// warn adds a warning on some kernels, if there are any.
func (v *vote) warn(f rule.Finding, kernels ...int) {
	if len(kernels) > 0 {
		v.warnings[f] = append(v.warnings[f], kernels...)
	}
}

// ignores reports whether a kernel does not count, as the program fails there.
func (v *vote) ignores(k int) bool { return v.status[k] == rule.Fails || v.status[k] == rule.Other }

// shape returns the shape that the program reads on a kernel, nil for none.
func (v *vote) shape(k int) *rule.Shape { return v.kernels[k].shapes[v.object][v.program] }

// shaped returns those of some kernels that count and have a shape.
func (v *vote) shaped(kernels []int) []int {
	return slices.DeleteFunc(slices.Clone(kernels), func(k int) bool { return v.ignores(k) || v.shape(k) == nil })
}

// ownType warns where an argument has another type than the program's own. A kprobe may take what is in a register for anything, so it is
// only compared if the argument is a number, or has the program's type on another kernel.
func (v *vote) ownType(w rule.Finding, x *reading, kernels []int) {
	s := v.Objects[v.object].Programs[v.program].Attach
	probe := s != nil && s.Kind == bpfobj.AttachKprobe
	for _, k := range kernels {
		if !probe && !x.of(v.shape(k)).Number || v.somewhere(w.Other, x) {
			v.warn(w, k)
		}
	}
}

// ownRecord warns if a shape differs from the program's own struct or, if that lacks the names of a kernel's record, from the newest kernel's.
func (v *vote) ownRecord(w rule.Finding, x *reading, kernels []int) {
	own := v.Objects[v.object].OwnRecord(v.program)
	if x.record && own != nil && slices.ContainsFunc(kernels, func(k int) bool { return x.knows(own, v.shape(k)) }) {
		for _, k := range kernels {
			v.compare(w, x, k, own)
		}
		return
	}
	newest := v.newest(x, kernels)
	for _, k := range kernels {
		if n, ok := newest[v.kernels[k].word]; ok {
			w.Where = v.kernels[n].name
			v.compare(w, x, k, v.shape(n))
		}
	}
}

// newest returns the newest of some kernels whose shapes have the reading, by the size of pointers, which change the places of fields.
func (v *vote) newest(x *reading, kernels []int) map[int]int {
	newest := make(map[int]int)
	for _, k := range kernels {
		if x.of(v.shape(k)) == nil {
			continue
		}
		word := v.kernels[k].word
		if n, ok := newest[word]; !ok || kernel.CompareVersions(v.kernels[k].key.Release, v.kernels[n].key.Release) >= 0 {
			newest[word] = k
		}
	}
	return newest
}

// compare warns if the reading on a kernel differs from that of a reference.
func (v *vote) compare(w rule.Finding, x *reading, k int, ref *rule.Shape) {
	here := v.shape(k)
	if !x.differs(here, ref) {
		return
	}
	w.Name, w.Other, w.Max = x.text(here), x.text(ref), 0
	if moved := here.Named(x.of(ref)); x.record && moved != nil && moved != x.of(here) {
		w.Max = moved.Off
	}
	v.warn(w, k)
}

// somewhere reports whether an argument points to a type on a kernel where the program does not fail.
func (v *vote) somewhere(to string, x *reading) bool {
	for k := range v.kernels {
		if s := v.shape(k); s != nil && !v.ignores(k) {
			if f := x.of(s); f != nil && "struct "+f.To == to {
				return true
			}
		}
	}
	return false
}
