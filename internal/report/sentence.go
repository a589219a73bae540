// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/report/codes"
)

var doubts = map[check.Doubt]string{
	check.OlderRelease: "; the kernel's release is older, and its BTF does not show it",
	check.NoRelease:    "; neither the kernel's BTF nor its name shows the release",
	check.NotShown:     "; whether that is so on this kernel is not known",
	check.KeepsWidth:   "; ebpf-go does not change the width, and the verifier may refuse it",
}

var reaches = map[check.Reach]string{
	check.BySettings:     "; reached only with some updates or settings of the kernel, or some of the loader",
	check.TooManyPaths:   "; whether it is reached is not known, as too many paths lead there",
	check.TooLarge:       "; whether it is reached is not known, as the program is too large",
	check.LeavesFunction: "; execution leaves the function",
	check.UnnamedAddress: "; address of a function without a symbol",
	check.UnnamedCall:    "; call of a function without a symbol",
	check.CallsNest:      "; calls nest too deeply",
}

// why says in words what is wrong with the subject of a finding.
func why(f *check.Finding) string {
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
	case check.Together:
		b.WriteString(fmt.Sprintf("; only where modules %s are loaded together", strings.Join(f.Names.List(), " and ")))
	case check.Loaded:
		b.WriteString(fmt.Sprintf("; reached only where module %s is loaded", modules))
	case check.NotLoaded:
		b.WriteString(fmt.Sprintf("; reached only where module %s is not loaded", modules))
	}
	switch f.Stops {
	case check.ProgramStops:
		b.WriteString("; ebpf-go then refuses the program")
	case check.ObjectStops:
		b.WriteString("; libbpf then loads no program of the object")
	case check.LoadStops:
		b.WriteString("; aya then loads no program of the object")
	}
	return b.String()
}

// Sentence says in words what a finding is about and what is wrong with it, with its code.
func Sentence(f *check.Finding) string {
	g := groupOf(f)
	return g.Subject(1) + ": " + g.reason()
}

// Reason says in words what is wrong with the subject of a finding, with its code.
func Reason(f *check.Finding) string { return why(f) + " [" + string(f.Code) + "]" }

// note is a finding of status OK in words, with the kind of the relocation.
func note(f *check.Finding) string {
	s := strings.TrimSpace(f.Relocation+" "+f.Subject) + ": " + why(f)
	if f.Source != "" {
		s += " (" + f.Source + ")"
	}
	return s + " [" + string(f.Code) + "]"
}

// statusText is a status in words, with what it is about where that is only attaching.
func statusText(s check.Status, attach bool) string {
	if attach && (s == check.Fails || s == check.MayFail) {
		return s.String() + " to attach"
	}
	return s.String()
}

// guardText says in words what keeps the verifier away.
func guardText(f *check.Finding) string {
	g, ok := f.Guard.(check.Guard)
	if !ok {
		return ""
	}
	s := "a constant condition"
	switch g.By {
	case check.Unreachable:
		return "nothing leads there"
	case check.Fact:
		s = fmt.Sprintf("%s = %d", g.Name, g.Value)
	}
	if g.Source != "" {
		s += " (" + g.Source + ")"
	}
	return s
}

// witness says by what of a kernel's BTF a finding was decided.
func witness(name string) string {
	if name, ok := strings.CutPrefix(name, "!"); ok {
		return name + " is in the kernel's BTF"
	}
	return name + " is not in the kernel's BTF"
}

// guessText says in words why a rule was guessed, "" where the user says it.
func guessText(r *check.Rule) string {
	switch r.Guess {
	case check.Marked:
		return "marked with a ? in SEC"
	case check.AllMarked:
		return "all are marked with a ? in SEC, so the loader chooses"
	case check.SomeMachine:
		return "only some machines have the system call"
	case check.Exclusive:
		return "no kernel here runs two of them, and their names differ as those of renamed functions do; --no-guess requires all"
	case check.SameName:
		return "the names differ only in the way of attaching"
	case check.SameTarget:
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
