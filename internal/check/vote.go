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

// fromLoader has the codes that replace those of findings on what no kernel has: the loader may supply it.
var fromLoader = map[rule.Code]rule.Code{rule.AttachTargetMissing: rule.AttachTargetNowhere, relo.NoCandidate: rule.TypesSupplied}

// blameLoader says of failures for a target or type that no kernel has that the loader may supply it. Kernels that cannot
// know do not count; where fewer than three can, nothing is said.
func blameLoader(findings []verdict.KernelFinding, kernels int) {
	const enough = 3
	type thing struct {
		code                rule.Code
		subject, relocation string // "" for anything
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
var inModules = []rule.Code{rule.AttachTargetModule, rule.AttachTargetUnlisted, rule.AttachTargetMaybeModule, rule.AttachTargetTracepoint, rule.KfuncModule, rule.KsymModule,
	rule.KsymMaybeModule, rule.StructOpsModule}

// nameModules names in such findings the modules that have it on other kernels.
func nameModules(all []rule.Finding) {
	modules := make(map[string][]string) // by subject
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
		s := c.e.Shape
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
		array := strings.Contains(a.Text, "[") && strings.Contains(b.Text, "[") // whose beginning the program reads
		return a.Off != b.Off || a.Size != b.Size && !array
	}
	return a.Number != b.Number || a.To != b.To && a.To != "" && b.To != "" || a.Plain && b.To != "" || b.Plain && a.To != ""
}

// knows reports whether a program's own struct has names of a kernel's record, at least of what is read.
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

// changed replaces what program j of object i reads by warnings on the kernels where that is something else than the program was
// compiled for: by its own types or, if these do not say, by the newest kernel. Kernels on which it fails do not count.
func (r *run) changed(findings []verdict.KernelFinding, i, j int, status []rule.Status) (out []verdict.KernelFinding) {
	if !slices.ContainsFunc(findings, func(f verdict.KernelFinding) bool { return f.Status == rule.OK }) {
		return findings
	}
	own := r.Objects[i].OwnRecord(j)
	kernels := make(map[rule.Finding][]int)
	for _, f := range findings {
		if f.Status != rule.OK {
			out = append(out, f)
			continue
		}
		x := &reading{argument: int(f.Count), off: f.Offset, size: max(f.Size, 1), record: f.Code == rule.ChangedField}
		w := f.Finding
		w.Count, w.Size = 0, 0
		compared := f.Code == rule.ChangedArgument || f.Code == rule.ChangedField
		on := slices.DeleteFunc(slices.Clone(f.Kernels), func(k int) bool {
			return status[k] == rule.Fails || status[k] == rule.Other || compared && r.kernels[k].shapes[i][j] == nil
		})
		if !compared { // the kernel alone shows it
			if len(on) > 0 {
				kernels[f.Finding] = on
			}
			continue
		}
		shape := func(k int) *rule.Shape { return r.kernels[k].shapes[i][j] }
		if w.Other != "" { // the program's own type
			s := r.Objects[i].Programs[j].Attach
			probe := s != nil && s.Kind == bpfobj.AttachKprobe // which may take what is in a register for anything
			for _, k := range on {
				if !probe && !x.of(shape(k)).Number || r.somewhere(w.Other, x, i, j, status) {
					kernels[w] = append(kernels[w], k)
				}
			}
			continue
		}
		compiled := x.record && own != nil && slices.ContainsFunc(on, func(k int) bool { return x.knows(own, shape(k)) })
		newest := make(map[int]int) // by the size of pointers, which change the places of fields
		for _, k := range on {
			word := r.kernels[k].word
			if n, ok := newest[word]; x.of(shape(k)) != nil && (!ok || kernel.CompareVersions(r.kernels[k].key.Release, r.kernels[n].key.Release) >= 0) {
				newest[word] = k
			}
		}
		for _, k := range on {
			ref := own
			if n, ok := newest[r.kernels[k].word]; !compiled && ok {
				ref, w.Where = shape(n), r.kernels[n].name
			} else if !compiled {
				continue
			}
			if !x.differs(shape(k), ref) {
				continue
			}
			w.Name, w.Other, w.Max = x.text(shape(k)), x.text(ref), 0
			if moved := shape(k).Named(x.of(ref)); x.record && moved != nil && moved != x.of(shape(k)) {
				w.Max = moved.Off
			}
			kernels[w] = append(kernels[w], k)
		}
	}
	for w, on := range kernels {
		out = append(out, verdict.KernelFinding{Finding: w, Kernels: on})
	}
	return out
}

// somewhere reports whether an argument points to a type on a kernel where the program does not fail.
func (r *run) somewhere(to string, x *reading, i, j int, status []rule.Status) bool {
	for k := range r.kernels {
		if s := r.kernels[k].shapes[i][j]; s != nil && status[k] != rule.Fails && status[k] != rule.Other {
			if f := x.of(s); f != nil && "struct "+f.To == to {
				return true
			}
		}
	}
	return false
}
