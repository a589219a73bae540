// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/pkg/relo"
)

var doubts = map[rule.Doubt]string{
	rule.OlderRelease: "; the kernel's release is older, and its BTF does not show it",
	rule.NoRelease:    "; neither the kernel's BTF nor its name shows the release",
	rule.NotShown:     "; whether that is so on this kernel is not known",
	rule.KeepsWidth:   "; ebpf-go does not change the width, and the verifier may refuse it",
}

var reaches = map[rule.Reach]string{
	rule.BySettings:     "; reached only with some updates or settings of the kernel, or some of the loader",
	rule.TooManyPaths:   "; whether it is reached is not known, as too many paths lead there",
	rule.TooLarge:       "; whether it is reached is not known, as the program is too large",
	rule.LeavesFunction: "; execution leaves the function",
	rule.UnnamedAddress: "; address of a function without a symbol",
	rule.UnnamedCall:    "; call of a function without a symbol",
	rule.CallsNest:      "; calls nest too deeply",
}

// why says in words what is wrong with the subject of a finding.
func why(f *rule.Finding) string {
	var b strings.Builder
	b.WriteString(codes.Sentence(f.Code, f.Args))
	switch {
	case f.Since != 0 && f.Until != 0:
		b.WriteString(fmt.Sprintf(" before a release between Linux %s and %s", f.Since, f.Until))
	case f.Since != 0:
		b.WriteString(fmt.Sprintf(" before Linux %s", f.Since))
	case f.Until != 0:
		b.WriteString(fmt.Sprintf(" up to Linux %s", f.Until))
	}
	b.WriteString(doubts[f.Doubt])
	b.WriteString(reaches[f.Reach])
	switch modules := strings.Join(f.Names.List(), " or "); f.When {
	case rule.Together:
		b.WriteString(fmt.Sprintf("; only where modules %s are loaded together", strings.Join(f.Names.List(), " and ")))
	case rule.Loaded:
		b.WriteString(fmt.Sprintf("; reached only where module %s is loaded", modules))
	case rule.NotLoaded:
		b.WriteString(fmt.Sprintf("; reached only where module %s is not loaded", modules))
	}
	switch f.Stops {
	case rule.ProgramStops:
		b.WriteString("; ebpf-go then refuses the program")
	case rule.ObjectStops:
		b.WriteString("; libbpf then loads no program of the object")
	case rule.LoadStops:
		b.WriteString("; aya then loads no program of the object")
	}
	return b.String()
}

// subjectName names what a finding is about, without the family's word.
func subjectName(f *rule.Finding) string {
	if f.Code == relo.NoCandidate { // about the type, whichever field the relocation is for
		name, _ := splitSpec(f.Subject)
		return name
	}
	return f.Subject
}

// Sentence says in words what a finding is about and what is wrong with it, with its code.
func Sentence(f *rule.Finding) string {
	s := subjectName(f)
	switch f.Code {
	case rule.FeatureMissing, rule.StructOpsMissing, rule.StructOpsMember:
		s = subjectOf(f)
	}
	if e := codes.Of(f.Code); e != nil && e.Family.Word != "" && e.Family.Word != s {
		s = e.Family.Word + " " + s
	}
	return s + ": " + why(f) + " [" + string(f.Code) + "]"
}

// line is a finding in a line: verdict, subject, what is wrong, place and code.
func line(f *rule.Finding) string {
	s := statusText(f.Status, f.Attach)
	if f.Status == rule.OK {
		s = "warning"
	}
	if f.Loader != "" {
		s += " with " + string(f.Loader)
	}
	text, code := strings.TrimSuffix(Sentence(f), " ["+string(f.Code)+"]"), " ["+string(f.Code)+"]"
	if f.Source != "" {
		text += " (" + f.Source + ")"
	}
	return s + ": " + text + code
}

// Reason says in words what is wrong with the subject of a finding, with its code.
func Reason(f *rule.Finding) string { return why(f) + " [" + string(f.Code) + "]" }

// note is a finding of status OK in words, with the kind of the relocation.
func note(f *rule.Finding) string {
	s := strings.TrimSpace(f.Relocation+" "+f.Subject) + ": " + why(f)
	if f.Source != "" {
		s += " (" + f.Source + ")"
	}
	return s + " [" + string(f.Code) + "]"
}

// statusText returns a status in words. If the program is loaded and only attaching it fails, the text says so.
func statusText(s rule.Status, attach bool) string {
	if attach && (s == rule.Fails || s == rule.MayFail) {
		return s.String() + " to attach"
	}
	return s.String()
}

// guardText says in words what keeps the verifier away.
func guardText(f *rule.Finding) string {
	g, ok := f.Guard.(rule.Guard)
	if !ok {
		return ""
	}
	s := "a constant condition"
	switch g.By {
	case rule.Unreachable:
		return "nothing leads there"
	case rule.Fact:
		s = fmt.Sprintf("%s = %d", g.Name, g.Value)
		if g.Name == "LINUX_KERNEL_VERSION" {
			s = fmt.Sprintf("%s = %d.%d.%d", g.Name, g.Value>>16, g.Value>>8&255, g.Value&255)
		}
	}
	if g.Source != "" {
		s += " (" + g.Source + ")"
	}
	return s
}

// guardsText says the same of several findings, with the values and lines of each condition together.
func guardsText(findings []*rule.Finding) (out []string) {
	places, values := make(map[string][]string), make(map[string][]string)
	var order []string
	for _, f := range findings {
		g, ok := f.Guard.(rule.Guard)
		if !ok {
			continue
		}
		source := g.Source
		g.Source = ""
		f := *f
		f.Guard = g
		name, value, _ := strings.Cut(guardText(&f), " = ")
		if places[name] == nil {
			order = append(order, name)
			places[name] = []string{}
		}
		if value != "" {
			values[name] = append(values[name], value)
		}
		if source != "" {
			places[name] = append(places[name], source)
		}
	}
	for _, name := range sorted(order) {
		text := name
		if l := sorted(values[name]); len(l) > 0 {
			text += " = " + listed(l, mostNames)
		}
		if l := sorted(places[name]); len(l) > 0 {
			slices.SortFunc(l, comparePlaces)
			text += " (" + lines(l, mostNames) + ")"
		}
		out = append(out, text)
	}
	return out
}

// witness says by what of a kernel's BTF a finding was decided.
func witness(name string) string {
	if name, ok := strings.CutPrefix(name, "!"); ok {
		return name + " is in the kernel's BTF"
	}
	return name + " is not in the kernel's BTF"
}

// guessText says in words why a rule was guessed, "" where the user says it.
func guessText(r *verdict.Rule) string {
	switch r.Guess {
	case verdict.Marked:
		return "marked with a ? in SEC"
	case verdict.AllMarked:
		return "all are marked with a ? in SEC, so the loader chooses"
	case verdict.SomeMachine:
		return "only some machines have the system call"
	case verdict.Exclusive:
		return "no kernel here runs two of them, and their names differ as those of renamed functions do; --no-guess requires all"
	case verdict.SameName:
		return "the names differ only in the way of attaching"
	case verdict.SameTarget:
		return "all are attached to " + r.At
	}
	return ""
}

// splitSpec cuts "struct s.a.b" or "enum e::A" behind the type.
func splitSpec(spec string) (typ, rest string) {
	if i := strings.IndexAny(spec, ".[:"); i >= 0 {
		return spec[:i], spec[i:]
	}
	return spec, ""
}
