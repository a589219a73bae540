// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/relo"
)

// class is what kind of finding something is. --fail-on chooses by it.
type class string

const (
	ambiguous   class = "ambiguous"
	conflicting class = "conflicting"
	damaged     class = "damaged"
	different   class = "different"
	disagreeing class = "disagreeing"
	failed      class = "error"
	failing     class = "failing"
	missing     class = "missing"
	noted       class = "note"
	poisoned    class = "poisoned"
	reached     class = "reached"
	skipped     class = "skipped"
	uncertain   class = "uncertain"
	unmatched   class = "unmatched"
	warned      class = "warning"

	// defective is a defect of ours. It always counts, and makes the status that of a failure.
	defective class = "defect"
)

// meanings say what a class is about, for the documentation.
var meanings = map[class]string{
	ambiguous:   "a relocation that several types of a kernel resolve, each differently: loaders refuse the object",
	conflicting: "two files that claim one place, such as different BTF for one kernel",
	damaged:     "a kernel, object or other file that cannot be read or is not what it should be; of `check --boot`, a kernel that does not boot",
	different:   "a minimized BTF that gives other decisions than the kernel's own; of `check --diff`, anything that differs; of `check --boot`, a prediction that was wrong",
	disagreeing: "a relocation that libbpf and cilium/ebpf decide differently on the kernel's own BTF",
	failed:      "another relocation on which loaders refuse the object; of `corpus lint`, a finding of that severity",
	failing:     "an object that does not work on a kernel where it should, or that got worse since `--baseline`; of `check --boot`, a program that does not load, or a `--command` that fails",
	missing:     "a kernel that should be there and is not",
	noted:       "of `generate`, what an object takes from the running kernel's own BTF, whatever is shipped, and names whose flavors loaders do not agree on; of `corpus lint`, a finding of that severity",
	poisoned:    "a relocation that nothing resolves; harmless where the program asks first, as with `bpf_core_field_exists`",
	reached:     "a poisoned relocation that the verifier reaches, or may reach, or an object of which that cannot be told; `generate` looks for them with `-v` or `--fail-on reached`",
	skipped:     "left out for a good reason: an object without relocations, a kernel that no object is for",
	uncertain:   "an object that may fail on a kernel, or that cannot be judged; of `check --boot`, programs that could not be tried",
	unmatched:   "a selector, pattern or object that matches nothing, or a kernel or BTF without its counterpart",
	warned:      "of `corpus lint`, a finding of that severity",
}

// told is which findings a command tells: those that count unless --fail-on says otherwise, and the others.
type told struct{ counts, others []class }

// contract has every command that is not about btfgen itself, also those that find nothing.
var contract = map[string]told{
	"generate":        {[]class{ambiguous, conflicting, damaged, different, failed, unmatched}, []class{noted, poisoned, reached, skipped}},
	"min_core_btf":    {[]class{ambiguous, damaged, failed, unmatched}, []class{poisoned, skipped}},
	"relolog":         {[]class{ambiguous, conflicting, damaged, failed, unmatched}, []class{poisoned, skipped}},
	"verify":          {[]class{conflicting, damaged, different, missing, unmatched}, []class{disagreeing, skipped}},
	"check":           {[]class{conflicting, damaged, different, failing, unmatched}, []class{skipped, uncertain}},
	"archive convert": {},
	"archive list":    {},
	"archive lookup":  {[]class{missing}, nil},
	"archive extract": {[]class{missing}, nil},
	"archive merge":   {},
	"corpus list":     {[]class{damaged, unmatched}, nil},
	"corpus lint":     {[]class{failed, unmatched, warned}, []class{noted}},
	"corpus import":   {[]class{conflicting, damaged, unmatched}, []class{skipped}},
	"corpus extract":  {[]class{conflicting, damaged, unmatched}, []class{skipped}},
}

func (t told) all() []class { return slices.Sorted(slices.Values(slices.Concat(t.counts, t.others))) }

func listed(names []class) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// noClass is what --fail-on has for no class at all.
const noClass = "none"

// flags are the options of a command about its findings.
func (t told) flags() []cli.Flag {
	quiet := &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only errors"}
	if len(t.all()) == 0 {
		return []cli.Flag{quiet}
	}
	quiet.Usage += " and findings that count"
	usage := "count findings of the classes in `LIST`: " + listed(t.all()) + " or " + noClass
	if slices.Contains(t.all(), failing) {
		usage += "; or of codes, such as helper-missing"
	}
	return []cli.Flag{quiet, &cli.StringFlag{Name: "fail-on", Value: strings.ReplaceAll(listed(t.counts), " ", ""), Usage: usage}}
}

// failOn reads a list of classes.
func (t told) failOn(text string) (map[class]bool, error) {
	on := map[class]bool{defective: true}
	if text == noClass {
		return on, nil
	}
	for _, name := range strings.Split(text, ",") {
		c := class(strings.TrimSpace(name))
		if c == "" {
			return nil, usagef("--fail-on %q: a class is missing; there are %s", text, listed(append(t.all(), noClass)))
		}
		if !slices.Contains(t.all(), c) && !(slices.Contains(t.all(), failing) && codes.Of(relo.Code(c)) != nil) {
			return nil, usagef("--fail-on %s: %q is none of %s", text, c, listed(append(t.all(), noClass)))
		}
		on[c] = true
	}
	return on, nil
}

// finding is something that a command has found. Of what it is about, no more is set than is known.
type finding struct {
	Class   class  `json:"class"`
	Code    string `json:"code,omitempty"`   // of a finding that 'btfgen explain' has, or what 'corpus lint' calls it
	Message string `json:"message"`          // which does not repeat the others
	Object  string `json:"object,omitempty"` // its name
	Kernel  string `json:"kernel,omitempty"` // ID/VERSION_ID/ARCH/RELEASE, or a path
	File    string `json:"file,omitempty"`   // where to look
	printed bool
}

// String is the finding as it is told.
func (f *finding) String() string {
	if f.Class == defective {
		return f.text() // which says so
	}
	return string(f.Class) + ": " + f.text()
}

// text is the finding without its class.
func (f *finding) text() string {
	if f.Kernel != "" && f.Object != "" {
		return f.Object + " on " + f.Kernel + ": " + f.Message
	}
	if about := cmp.Or(f.Object, f.Kernel, f.File); about != "" {
		return about + ": " + f.Message
	}
	return f.Message
}

// findings are those of a run. It is for one goroutine.
type findings struct {
	on             map[class]bool // those that count
	quiet, verbose bool
	canVerbose     bool                  // the command knows --verbose
	silent         bool                  // tells nothing but findings
	counted        bool                  // leftOut was told
	command        string                // its name, with those that it is under
	said           []string              // of say
	report         func(io.Writer) error // in Markdown, nil for none
	all            []*finding
	atEnd          []func() // tell what is not known before
}

type findingsKey struct{}

// withFindings returns a context for a run that may have findings.
func withFindings(ctx context.Context) (context.Context, *findings) {
	f := &findings{on: map[class]bool{defective: true}}
	return context.WithValue(ctx, findingsKey{}, f), f
}

func found(c *cli.Context) *findings { return findingsIn(c.Context) }

func findingsIn(ctx context.Context) *findings { return ctx.Value(findingsKey{}).(*findings) }

// options reads the options of flags.
func (f *findings) options(c *cli.Context, t told) (err error) {
	f.quiet, f.verbose = c.Bool("quiet"), c.Bool("verbose")
	if f.quiet && f.verbose {
		return usagef("--quiet does not go with --verbose")
	}
	f.silent = f.quiet || c.Bool("json")
	f.canVerbose = slices.ContainsFunc(c.Command.Flags, func(o cli.Flag) bool { return slices.Contains(o.Names(), "verbose") })
	if len(t.all()) > 0 {
		f.on, err = t.failOn(c.String("fail-on"))
	}
	return err
}

// end tells what is not known before all was read.
func (f *findings) end() {
	tell := f.atEnd
	f.atEnd = nil
	for _, t := range tell {
		t()
	}
}

// leftOut tells once how much was noted as skipped.
func (f *findings) leftOut(stderr io.Writer) {
	f.end()
	objects, kernels := 0, 0
	for _, x := range f.all {
		switch {
		case x.printed || x.Class != skipped:
		case x.Object != "":
			objects++
		default:
			kernels++
		}
	}
	var parts []string
	if objects > 0 {
		parts = append(parts, words.Plural(objects, "object"))
	}
	if kernels > 0 {
		parts = append(parts, words.Plural(kernels, "kernel"))
	}
	if f.silent || f.counted || len(parts) == 0 {
		return
	}
	f.counted = true
	hint := ""
	if f.canVerbose {
		hint = " (-v tells which and why)"
	}
	escape.Fprintf(stderr, "left out: %s%s\n", strings.Join(parts, " and "), hint)
}

// status is that of a run that did its work.
func (f *findings) status() int {
	if slices.ContainsFunc(f.all, f.counts) {
		return statusFindings
	}
	return statusOK
}

// counts reports whether --fail-on selects a finding, by its class or, of check, its code. What is reached is poisoned, too.
func (f *findings) counts(x *finding) bool {
	return f.on[x.Class] || x.Code != "" && f.on[class(x.Code)] || x.Class == reached && f.on[poisoned]
}

func (f *findings) print(c *cli.Context, x *finding) {
	if !x.printed {
		x.printed = true
		escape.Fprintf(c.App.ErrWriter, "btfgen: %s\n", strings.ReplaceAll(x.String(), "\n", " "))
	}
}

// tell tells a finding that is no more than a text.
func tell(c *cli.Context, cl class, format string, args ...any) {
	tellOf(c, finding{Class: cl, Message: fmt.Sprintf(format, args...)})
}

// tellOf tells a finding on standard error, unless it does not count and the user wants no more than what does.
func tellOf(c *cli.Context, x finding) {
	f := found(c)
	f.all = append(f.all, &x)
	if f.counts(&x) || !f.quiet {
		f.print(c, &x)
	}
}

// note is tellOf for what there may be much of, and little to do about: unless it counts, it is told with --verbose only.
func note(c *cli.Context, x finding) {
	f := found(c)
	f.all = append(f.all, &x)
	if f.counts(&x) || f.verbose {
		f.print(c, &x)
	}
}

// record is tellOf for what standard output shows already.
func record(c *cli.Context, x finding) {
	x.printed = true
	found(c).all = append(found(c).all, &x)
}

// say tells in a line what a run came to.
func say(c *cli.Context, format string, args ...any) {
	f := found(c)
	line := string(escape.Sprintf(format, args...))
	f.said = append(f.said, line)
	if !f.silent {
		escape.Fprintf(c.App.ErrWriter, "%s\n", line)
	}
}

// tellNotes tells what note has not: it is why nothing came of a run.
func tellNotes(c *cli.Context) {
	for _, x := range found(c).all {
		found(c).print(c, x)
	}
}

// tellLeftOut tells what was left out of a run.
func tellLeftOut(c *cli.Context, all []*corpus.Error) {
	for _, e := range all {
		if errors.Is(e, corpus.ErrLink) { // which leaves nothing out; 'corpus lint' tells it
			continue
		}
		x := finding{Class: classOf(e), Message: e.Reason(), File: e.Path}
		if errors.Is(e, corpus.ErrUnmet) || errors.Is(e, corpus.ErrUnselected) {
			x.Object, x.File = e.Path, ""
		}
		if x.Class == skipped {
			note(c, x)
		} else {
			tellOf(c, x)
		}
	}
}

// classes are those of errors that mean no damage.
var classes = []struct {
	err error
	class
}{
	{minimize.ErrNoObject, skipped},
	{corpus.ErrNoObject, skipped},
	{errNoRelocations, skipped},
	{corpus.ErrNoKey, unmatched},
	{corpus.ErrUnselected, skipped},
	{corpus.ErrUnmet, unmatched},
	{embedded.ErrNone, unmatched},
	{corpus.ErrTaken, conflicting},
	{corpus.ErrAgain, skipped},
	{store.ErrInput, conflicting},
	{minimize.ErrProof, different},
}

// classOf returns the class of an error for which a kernel, object or file was left out.
func classOf(err error) class {
	var d *workers.Defect
	if errors.As(err, &d) {
		return defective
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	return damaged
}
