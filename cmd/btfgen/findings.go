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

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/relo"
)

// class is the kind of a finding, as --fail-on selects it.
type class string

const (
	ambiguous   class = "ambiguous"
	conflicting class = "conflicting"
	damaged     class = "damaged"
	different   class = "different"
	failed      class = "error"
	failing     class = "failing"
	lost        class = "lost"
	missing     class = "missing"
	noted       class = "note"
	poisoned    class = "poisoned"
	skipped     class = "skipped"
	uncertain   class = "uncertain"
	unmatched   class = "unmatched"
	warned      class = "warning"

	// defective is a defect in btfgen. It always counts, and the exit status is that of a failure.
	defective class = "defect"
)

// meanings describes the classes for the documentation and for 'btfgen explain'.
var meanings = map[class]string{
	ambiguous:   "a relocation that several types of a kernel resolve differently",
	conflicting: "different files for one place, such as two BTFs of one kernel, or BTF of another machine than its path says",
	damaged:     "a file that cannot be read or is invalid; in `check --boot`, a kernel that does not boot",
	different:   "a minimized BTF on which a loader decides differently; in `check --boot`, a wrong prediction, or a program that differs with the archive's BTF",
	failed:      "another relocation for which loaders refuse the object; a severity of `corpus lint`",
	failing:     "an object that does not work on a kernel, or got worse since `--baseline`; in `check --boot`, a program or `--command` that fails",
	lost:        "a kernel, machine, object or program that `--baseline` has and this run does not",
	missing:     "an expected kernel that is absent; in `check --boot`, from the archive",
	noted:       "in `check`, what is noted of a program, such as what is not judged; in `generate`, a use of the running kernel's own BTF; in `corpus lint`, a property of a kernel's BTF that only its maker can change",
	poisoned:    "a relocation that no type resolves; harmless if the program checks first",
	skipped:     "left out as expected: an object without relocations, a kernel that no object supports",
	uncertain:   "an object that may fail, or cannot be judged; in `verify`, one that a loader does not read; in `check --boot`, programs that could not be tried",
	unmatched:   "a selector, pattern or object without a match, or a kernel or BTF without its counterpart",
	warned:      "in `check`, a program that reads something else than on other kernels; in `generate`, a machine with fewer objects than others; a severity of `corpus lint`",
}

// findingClasses are the classes of findings that a command reports: those that count by default, and the others.
type findingClasses struct{ Counts, Others []class }

// commandClasses has every command that is not about btfgen itself, including those without findings.
var commandClasses = map[string]findingClasses{
	"generate":        {[]class{ambiguous, conflicting, damaged, different, failed, unmatched}, []class{noted, poisoned, skipped, warned}},
	"min_core_btf":    {[]class{ambiguous, damaged, failed, unmatched}, []class{poisoned, skipped}},
	"relolog":         {[]class{ambiguous, conflicting, damaged, failed, unmatched}, []class{poisoned, skipped}},
	"verify":          {[]class{conflicting, damaged, different, missing, uncertain, unmatched}, []class{skipped}},
	"check":           {[]class{conflicting, damaged, different, failing, lost, missing, unmatched}, []class{noted, skipped, uncertain, warned}},
	"archive list":    {},
	"archive lookup":  {[]class{missing}, nil},
	"archive convert": {[]class{unmatched}, nil},
	"archive push":    {},
	"archive pull":    {[]class{damaged}, nil},
	"archive diff":    {},
	"corpus list":     {[]class{damaged, unmatched}, nil},
	"corpus lint":     {[]class{failed, unmatched, warned}, []class{noted}},
	"corpus fetch":    {[]class{conflicting, damaged, unmatched}, []class{skipped}},
	"corpus import":   {[]class{conflicting, damaged, unmatched}, []class{skipped}},
	"corpus push":     {},
	"corpus pull":     {[]class{damaged}, nil},
	"corpus extract":  {[]class{conflicting, damaged, unmatched}, []class{skipped}},
}

func (t findingClasses) all() []class {
	return slices.Sorted(slices.Values(slices.Concat(t.Counts, t.Others)))
}

// noClass is the value of --fail-on that selects no class.
const noClass = "none"

// flags returns a command's options about findings.
func (t findingClasses) flags() []cli.Flag {
	if len(t.all()) == 0 {
		return []cli.Flag{newFlag("quiet", "print only errors", "q")}
	}
	usage := "count findings of the classes in `LIST`: " + joinClasses(t.all(), ", ") + " or " + noClass
	if slices.Contains(t.all(), failing) {
		usage += "; or of codes, such as helper-missing"
	}
	return []cli.Flag{
		newFlag("quiet", "print only errors and findings that count", "q"),
		hidden(&cli.BoolFlag{Name: "brief", Usage: "as --quiet, and print summaries"}),
		&cli.StringFlag{Name: "fail-on", Value: joinClasses(t.Counts, ","), Usage: usage},
	}
}

// joinClasses is strings.Join for classes.
func joinClasses(l []class, sep string) string {
	names := make([]string, len(l))
	for i, c := range l {
		names[i] = string(c)
	}
	return strings.Join(names, sep)
}

// failOn is the value of --fail-on: the classes and the codes of findings that count.
type failOn struct {
	classes map[class]bool
	codes   map[string]bool
}

// defects selects only defects, which always count.
func defects() failOn {
	return failOn{map[class]bool{defective: true}, make(map[string]bool)}
}

// failOn parses the value of --fail-on.
func (t findingClasses) failOn(text string) (failOn, error) {
	on := defects()
	if text == noClass {
		return on, nil
	}
	all := t.all()
	for _, name := range strings.Split(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return on, valuef("fail-on", text, "a class is missing; there are %s", joinClasses(append(all, noClass), ", "))
		case slices.Contains(all, class(name)):
			on.classes[class(name)] = true
		case slices.Contains(all, failing) && codes.Of(relo.Code(name)) != nil:
			on.codes[name] = true
		case slices.Contains(all, failing):
			return on, valuef("fail-on", text, "%q is none of %s, nor a code of 'btfgen explain'%s", name,
				joinClasses(append(all, noClass), ", "), didYouMean("", name, codesAndClasses()))
		default:
			return on, valuef("fail-on", text, "%q is none of %s", name, joinClasses(append(all, noClass), ", "))
		}
	}
	return on, nil
}

// finding is one finding of a command. Object, Kernel and File are empty if unknown.
type finding struct {
	Class   class  `json:"class"`
	Code    string `json:"code,omitempty"`   // a code of 'btfgen explain' or of 'corpus lint'
	Message string `json:"message"`          // does not repeat the other fields
	Object  string `json:"object,omitempty"` // the name of the object
	Kernel  string `json:"kernel,omitempty"` // ID/VERSION_ID/ARCH/RELEASE, or a path
	File    string `json:"file,omitempty"`   // the file that the finding is about
	printed bool
	kernels int32 // kernels of the file with the same cause, printed with this one; 0 if this is the only one
}

// String returns the text of the finding for output, with its class.
func (f *finding) String() string {
	if f.Class == defective {
		return f.text() // the text names the class
	}
	return string(f.Class) + ": " + f.text()
}

// text returns the finding without its class.
func (f *finding) text() string {
	if f.Kernel != "" && f.Object != "" {
		return f.Object + " on " + f.Kernel + ": " + f.Message
	}
	if about := cmp.Or(f.Object, f.File, f.Kernel); about != "" {
		return about + ": " + f.Message
	}
	return f.Message
}

// findings collects the findings of a run. It must not be used concurrently.
type findings struct {
	on             failOn   // value of --fail-on
	quiet, verbose bool     // print only errors, summaries and findings that count; print all
	canVerbose     bool     // the command has --verbose
	silent         bool     // print no summaries
	command        string   // the command's full name, as in "archive list"
	args           []string // the whole command line
	all            []*finding
	deferred       []func() // report what is known only after all input was read
}

type findingsKey struct{}

// withFindings returns a context for a run that may have findings.
func withFindings(ctx context.Context) (context.Context, *findings) {
	f := &findings{on: defects()}
	return context.WithValue(ctx, findingsKey{}, f), f
}

func found(c *cli.Context) *findings { return findingsIn(c.Context) }

func findingsIn(ctx context.Context) *findings { return ctx.Value(findingsKey{}).(*findings) }

// options reads the options that flags defines.
func (f *findings) options(c *cli.Context, t findingClasses) (err error) {
	f.quiet, f.verbose = c.Bool("quiet") || c.Bool("brief"), c.Bool("verbose")
	f.silent = c.Bool("quiet") || c.Bool("json")
	f.canVerbose = slices.ContainsFunc(c.Command.Flags, func(o cli.Flag) bool {
		return slices.Contains(o.Names(), "verbose")
	})
	if len(t.all()) > 0 {
		f.on, err = t.failOn(c.String("fail-on"))
	}
	return err
}

// runDeferred calls the deferred functions, each once.
func (f *findings) runDeferred() {
	deferred := f.deferred
	f.deferred = nil
	for _, report := range deferred {
		report()
	}
}

// printSkipped prints how many objects and kernels were skipped without a message.
func (f *findings) printSkipped(stderr io.Writer) {
	f.runDeferred()
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
	if f.silent || f.quiet || len(parts) == 0 {
		return
	}
	hint := ""
	if f.canVerbose {
		hint = " (-v shows which and why)"
	}
	escape.Fprintf(stderr, "left out: %s%s\n", strings.Join(parts, " and "), hint)
}

// status returns the exit status of a run without an error.
func (f *findings) status() int {
	if slices.ContainsFunc(f.all, f.counts) {
		return statusFindings
	}
	return statusOK
}

// counts reports whether --fail-on selects a finding by its class or, for check, by its code.
func (f *findings) counts(x *finding) bool { return f.on.classes[x.Class] || f.on.codes[x.Code] }

func (f *findings) print(c *cli.Context, x *finding) {
	if !x.printed {
		x.printed = true
		text := x.String()
		if x.kernels > 0 {
			all := "--json"
			if f.canVerbose {
				all = "-v"
			}
			text = fmt.Sprintf("%s: %s: %s; affects %s (%s lists them)",
				x.Class, corpusOf(x.File), x.Message, words.Plural(int(x.kernels), "kernel"), all)
		}
		escape.Fprintf(c.App.ErrWriter, "btfgen: %s\n", strings.ReplaceAll(text, "\n", "; "))
	}
}

// reportf reports a finding that has only a message.
func reportf(c *cli.Context, cl class, format string, args ...any) {
	reportFinding(c, finding{Class: cl, Message: fmt.Sprintf(format, args...)})
}

// reportFinding adds a finding and prints it on standard error. With --quiet, it prints only findings that count.
func reportFinding(c *cli.Context, x finding) {
	f := found(c)
	f.all = append(f.all, &x)
	if f.counts(&x) || !f.quiet {
		f.print(c, &x)
	}
}

// reportIfVerbose adds a finding of a kind that is frequent and rarely needs action. Unless the finding counts, it is printed
// only with --verbose.
func reportIfVerbose(c *cli.Context, x finding) {
	f := found(c)
	f.all = append(f.all, &x)
	if f.counts(&x) || f.verbose {
		f.print(c, &x)
	}
}

// record adds a finding that is already part of the output, without printing it.
func record(c *cli.Context, x finding) {
	x.printed = true
	found(c).all = append(found(c).all, &x)
}

// infof prints a line about the run, such as a summary. It is not a finding.
func infof(c *cli.Context, format string, args ...any) {
	if !found(c).silent {
		escape.Fprintf(c.App.ErrWriter, format+"\n", args...)
	}
}

// reportHidden prints all findings that were not printed, because they explain why a run had no result.
func reportHidden(c *cli.Context) {
	for _, x := range found(c).all {
		found(c).print(c, x)
	}
}

// reportSkipped reports the kernels, objects and files that a run skipped.
func reportSkipped(c *cli.Context, all []*corpus.Error) {
	shared := make(causes)
	for _, e := range all {
		if e.Shared {
			shared[causeOf(e.Path, e.Reason())]++
		}
	}
	again := 0
	for _, e := range all {
		if errors.Is(e, corpus.ErrAgain) {
			again++
		}
		x := finding{Class: classOf(e), Message: e.Reason(), File: e.Path}
		if errors.Is(e, corpus.ErrUnmet) || errors.Is(e, corpus.ErrUnselected) {
			x.Object, x.File = e.Path, ""
		}
		if e.Shared {
			shared.join(c, &x, e.Reason())
		}
		if x.Class == skipped {
			reportIfVerbose(c, x)
		} else {
			reportFinding(c, x)
		}
	}
	if f := found(c); again > 0 && !f.verbose && !f.quiet && !f.on.classes[skipped] {
		infof(c, "btfgen: left out as copies of other kernels: %s%s", words.Plural(again, "kernel"), listsThem(c))
	}
}

// causes counts the kernels that each cause in a corpus in one file concerns. It is 0 once a finding counts them.
type causes map[string]int32

// causeOf returns the key of a cause, which is the reason for a kernel with this path.
func causeOf(path, reason string) string { return corpusOf(path) + "\n" + reason }

// corpusOf returns FILE of a path FILE!KEY.
func corpusOf(path string) string { return path[:strings.LastIndexByte(path, '!')] }

// join sets the number of kernels of a finding that is the first of several with one cause. The other findings are not printed. With
// --verbose, all are.
func (m causes) join(c *cli.Context, x *finding, reason string) {
	cause := causeOf(x.File, reason)
	n := m[cause]
	if n == 1 || found(c).verbose {
		return
	}
	x.kernels, x.printed = n, n == 0
	m[cause] = 0
}

// errorClasses are the classes of errors that do not mean damage.
var errorClasses = []struct {
	err error
	class
}{
	{minimize.ErrNoObject, skipped},
	{corpus.ErrNoObject, skipped},
	{core.ErrNoRelocations, skipped},
	{bpfobj.ErrNoProgram, skipped},
	{naming.ErrNoKey, unmatched},
	{corpus.ErrUnselected, skipped},
	{corpus.ErrUnmet, unmatched},
	{embedded.ErrNone, unmatched},
	{corpus.ErrTaken, conflicting},
	{corpus.ErrMachine, conflicting},
	{corpus.ErrAgain, skipped},
	{store.ErrInput, conflicting},
	{minimize.ErrProof, different},
}

// classOf returns the class of an error that made a kernel, object or file be skipped.
func classOf(err error) class {
	var d *workers.Defect
	if errors.As(err, &d) {
		return defective
	}
	for _, c := range errorClasses {
		if errors.Is(err, c.err) {
			return c.class
		}
	}
	return damaged
}
