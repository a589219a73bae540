// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// Outcome is what the running kernel did with a program that testdata/load.c loads with libbpf.
type Outcome struct {
	Program string
	Errno   int    // 0 if it was loaded
	Log     string // last lines of libbpf's messages and of the verifier's log
}

// load runs the loader, whose source describes the lines, on an object file. An object that libbpf does not open has one outcome, of the
// program "-".
func load(loader, object string) ([]Outcome, error) {
	out, err := exec.Command(loader, object).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", loader, object, err)
	}
	return parseOutcomes(out)
}

func parseOutcomes(out []byte) (all []Outcome, err error) {
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 || !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("line %q of the loader", line)
		}
		errno, err := strconv.Atoi(f[2])
		if err != nil {
			return nil, fmt.Errorf("line %q of the loader: %w", line, err)
		}
		o := Outcome{Program: f[1], Errno: errno}
		if errno != 0 {
			o.Log = strings.ReplaceAll(f[3]+`\n`+f[4], `\n`, "\n")
		}
		all = append(all, o)
	}
	return all, nil
}

// invalidFunc matches verifiers' messages about missing and forbidden helpers.
var invalidFunc = regexp.MustCompile(`(?:invalid func|unknown func|cannot use helper) [\w.]*#(\d+)`)

// causes reports whether the messages blame relocations or missing helpers.
func (o *Outcome) causes() (core, helper bool) {
	core = strings.Contains(o.Log, "CO-RE relocation") || strings.Contains(o.Log, "failed to relocate")
	helper = slices.ContainsFunc([]string{"helper call might sleep", "sleepable helper", "call GPL-restricted function", "not supported for program type", "supported only for"},
		func(text string) bool { return strings.Contains(o.Log, text) })
	for _, m := range invalidFunc.FindAllStringSubmatch(o.Log, -1) {
		switch id, _ := strconv.Atoi(m[1]); {
		case id == badRelocation:
			core = true
		case id < 1<<20: // libbpf uses greater ones for missing kfuncs
			helper = true
		}
	}
	return core, helper
}

// comparison is a prediction and what happened.
type comparison struct {
	Program   string      // program with its object
	Verdict   rule.Status // predicted verdict on loading
	Predicted rule.Status // predicted verdict on relocations and helpers alone
	Happened  string      // "loads", "fails" because of relocations or helpers, or "fails for another reason"
	Wrong     string      // mistake in the prediction, "" for none
}

// compare compares an outcome with the report on the kernel with this index.
func compare(p *verdict.ProgramRow, kernel int, got *Outcome) (c comparison) {
	c.Program, c.Verdict = p.Object+": "+p.Name, p.Load[kernel]
	core, helper := statusOf(p, kernel, rule.FamilyCORE), statusOf(p, kernel, rule.FamilyHelper)
	c.Predicted = max(core, helper)
	byCore, byHelper := got.causes()
	switch {
	case got.Errno == 0:
		c.Happened = "loads"
	case got.Errno == int(syscall.EPERM):
		c.Happened = "is not permitted" // the kernel did not verify it
		return c
	case byCore || byHelper:
		c.Happened = "fails"
	default:
		c.Happened = "fails for another reason"
	}
	switch {
	case c.Predicted == rule.Fails && got.Errno != 0 && c.Happened != "fails" && failsToLoad(p, kernel):
		// The other reason, such as a map, was predicted, too.
	case c.Predicted == rule.Fails && c.Happened != "fails":
		c.Wrong = "was to fail, but " + c.Happened
	case c.Predicted < rule.Unknown && c.Happened == "fails":
		c.Wrong = "was to load, but fails"
	case c.Predicted == rule.Fails && (byCore && core != rule.Fails || !byCore && helper != rule.Fails):
		c.Wrong = "fails, but for another cause"
	case got.Errno == 0 && failsToLoad(p, kernel):
		c.Wrong = "was to fail for another reason, but loads"
	}
	if c.Wrong != "" {
		c.Wrong = fmt.Sprintf("%s: %s %s: %s\n%v", p.Object, p.Name, c.Wrong, tail(got.Log), p.Findings)
	}
	return c
}

func tail(log string) string { return log[max(0, len(log)-800):] }

// statusOf returns the worst status of a program's findings of a family, except for findings about attaching.
func statusOf(p *verdict.ProgramRow, kernel int, family rule.Family) rule.Status {
	s := rule.OK
	for _, f := range p.Findings {
		if rule.FamilyOf(f.Code) == family && !f.Attach && slices.Contains(f.Kernels, kernel) {
			s = max(s, f.Status)
		}
	}
	return s
}

// failsToLoad reports whether a finding predicts that the program does not load.
func failsToLoad(p *verdict.ProgramRow, kernel int) bool {
	for _, k := range []rule.Family{rule.FamilyKfunc, rule.FamilyInsn, rule.FamilyKsym, rule.FamilyKconfig, rule.FamilyMapType, rule.FamilyProg, rule.FamilyAttach, rule.FamilyTarget, rule.FamilyContext, rule.FamilyReturn, rule.FamilyMapDef} {
		if statusOf(p, kernel, k) == rule.Fails {
			return true
		}
	}
	return false
}
