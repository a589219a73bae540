// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// answers are the formats that show where objects work, for a README. With these formats, kernels on which an
// object fails are not findings.
var answers = []string{"min-kernel", "table", "badge", "suggest"}

// reportOptions reads --format and --json, and the options of formats.
func reportOptions(c *cli.Context) (format string, o report.Options, err error) {
	o = report.Options{
		Verbose: c.Bool("verbose"), Brief: c.Bool("brief"), Quiet: c.Bool("quiet"),
		Version: buildVersion(), Command: c.App.Name,
	}
	if c.String("output") == "-" {
		o.Width = columnsOf(c.App.Writer)
	}
	o.Color = colored(c) && (c.String("output") == "-" || c.String("color") == "always")
	root, err := filepath.Abs(c.String("source-root"))
	if err != nil {
		return "", o, err
	}
	o.SourceRoot = filepath.ToSlash(root)
	format = c.String("format")
	if c.Bool("json") {
		format = "json"
	}
	for _, a := range found(c).args {
		o.Command += " " + quoted(a)
	}
	return format, o, err
}

// checkOptions are the parsed options of check.
type checkOptions struct {
	format  string // format of the report
	report  report.Options
	require []selection.Selector
	loaders []rule.Loader
	policy  verdict.Policy
	args    []string              // the OBJECT arguments
	selects func(kernel.Key) bool // the selection of the corpus
}

func readCheckOptions(c *cli.Context) (o checkOptions, err error) {
	if err := checkLoader(c); err != nil {
		return o, err
	}
	if o.loaders, o.policy, err = readPolicy(c); err != nil {
		return o, err
	}
	if slices.Contains(o.loaders, rule.Aya) && c.IsSet("types") {
		return o, optionf("types", "does not go with --loader aya, which adds no types to the kernel's")
	}
	if o.require, err = selectors(c, "require"); err != nil {
		return o, err
	}
	o.args = c.Args().Slice()
	if len(o.args) == 0 {
		return o, usagef("no BPF object given")
	}
	var old *verdict.Baseline
	if f := c.String("baseline"); f != "" {
		if old, err = verdict.ReadBaseline(c.Context, f); err != nil {
			return o, usageError{err}
		}
	}
	o.format, o.report, err = reportOptions(c)
	o.report.Baseline, o.report.Old = old, c.String("baseline")
	return o, err
}

// checkLoader validates the options that describe the loader: --rodata-var and --target.
func checkLoader(c *cli.Context) error {
	if _, err := patterns(c, "rodata-var"); err != nil {
		return err
	}
	for _, t := range c.StringSlice("target") {
		program, to, ok := strings.Cut(t, "=")
		if !ok || program == "" || to == "" {
			return valuef("target", t, "want PROGRAM=NAME")
		}
		if _, err := path.Match(program, ""); err != nil {
			return valuef("target", t, "%w", err)
		}
	}
	return nil
}

func runCheck(c *cli.Context) error {
	if c.IsSet("boot") {
		return runBoot(c)
	}
	for _, name := range []string{"archive", "command", "timeout", "btfgen", "catalogue", "mirror"} {
		if c.IsSet(name) {
			return optionf(name, "goes with --boot")
		}
	}
	o, err := readCheckOptions(c)
	if err != nil {
		return err
	}
	growSlowly()
	objs, types, err := readChecked(c, o.args, make(map[string]string))
	if err != nil {
		return err
	}
	var prefer []rule.Loader
	if c.String("loader") == autoLoader {
		prefer = visibleLoaders(c, objs)
	}
	objs.data = nil // only visibleLoaders reads the files
	corp, err := openCorpus(c, corpus.Options{Map: true, Extras: true})
	if err != nil {
		return err
	}
	o.selects = corp.Selects
	in := inputsOf(slices.Concat(c.StringSlice("btf"), c.StringSlice("types"), objs.paths)...)
	in.addCorpus(corp, c.String("output"), c.String("summary"))
	if err := in.refuse(c.String("output"), c.String("summary")); err != nil {
		return err
	}
	objs.announce(c)
	p := newProgress(c)
	cfg := check.Config{
		Objects: objs.list, Corpus: corp, Jobs: c.Int("jobs"), Done: p.set, Doing: p.doing,
		Loaders: o.loaders, Prefer: prefer, Policy: o.policy,
		Rodata: c.StringSlice("rodata-var"), Types: types, NoOwnBTF: c.Bool("no-kernel-btf"),
	}
	rep, err := check.Run(c.Context, cfg)
	p.finish()
	if err != nil {
		return err
	}
	for _, g := range cfg.UnmatchedRodata() {
		reportUnmatched(c, "rodata-var", g, "no object has such a variable")
	}
	reportUnmatchedPolicy(c, &o.policy, objs.list)
	reportSkipped(c, rep.Skipped)
	if len(rep.Kernels) == 0 {
		reportHidden(c)
		return errors.New("no kernel could be checked")
	}
	reportUnloaded(c, rep)
	if err := checkVerdict(c, rep, &o); err != nil {
		return err
	}
	o.report.Findings = findingsOf(c).Findings
	if len(o.require) > 0 {
		o.report.Require = strings.Join(c.StringSlice("require"), ",")
		o.report.Required = func(k int) bool {
			return slices.ContainsFunc(o.require, func(s selection.Selector) bool { return s.Match(rep.Kernels[k].Key()) })
		}
	}
	if path := c.String("summary"); path != "" {
		if err := writeTo(c, path, func(w io.Writer) error { return report.Summary(w, rep, o.report) }); err != nil {
			return err
		}
	}
	return writeTo(c, c.String("output"), func(w io.Writer) error { return report.Formats[o.format](w, rep, o.report) })
}

// reportUnmatchedPolicy reports options of a policy that match nothing.
func reportUnmatchedPolicy(c *cli.Context, p *verdict.Policy, objects []*rule.Object) {
	for _, x := range p.Unmatched(objects) {
		reportUnmatched(c, x.Name, x.Value, noSuch(x, objects))
	}
}

// noSuch says why an option of the policy matches nothing.
func noSuch(x verdict.Option, objects []*rule.Object) string {
	switch {
	case x.Name == "loader-map":
		return "no object has such a map"
	case strings.HasSuffix(strings.Split(x.Value, "=")[0], ":"):
		return "there is no such object"
	}
	for word := range strings.FieldsFuncSeq(x.Value, func(r rune) bool { return strings.ContainsRune("=,+", r) }) {
		isObject := func(o *rule.Object) bool {
			ok, _ := path.Match(word, path.Base(o.Name()))
			return ok
		}
		if word != "*" && slices.ContainsFunc(objects, isObject) {
			return fmt.Sprintf("no object has such a program (%s: is the object)", word)
		}
	}
	return "no object has such a program"
}

// reportUnloaded reports objects, or variants, that are loaded on no kernel. If options leave kernels out, they may be
// loaded on those.
func reportUnloaded(c *cli.Context, rep *verdict.Report) {
	for _, o := range rep.Whole() {
		n := o.Sum()
		if !n.NeverLoaded() {
			continue
		}
		x := finding{Class: unmatched, Code: string(rule.AnalysisUnloaded), Object: o.Object,
			Message: fmt.Sprintf("not loaded on any of %s", words.Plural(n.Unloaded, "kernel"))}
		if selecting(c) {
			x.Class = skipped
			reportIfVerbose(c, x)
		} else {
			reportFinding(c, x)
		}
	}
}

// readChecked reads the objects to check, with --target, and the types of --types. It adds the new targets by program.
func readChecked(c *cli.Context, args []string, targets map[string]string) (*programs, []check.Types, error) {
	objs, err := readPrograms(c, args)
	if err != nil {
		return nil, nil, err
	}
	for _, target := range c.StringSlice("target") {
		setTarget(c, objs.list, target, targets)
	}
	types, err := readTypes(c)
	return objs, types, err
}

// setTarget overrides the attach target of the programs that match target, which is PROGRAM=NAME. It adds it to targets by program.
func setTarget(c *cli.Context, objs []*rule.Object, target string, targets map[string]string) {
	glob, to, _ := strings.Cut(target, "=")
	matched := false
	for i, o := range objs {
		with, programs := o.WithTarget(glob, to)
		for _, p := range programs {
			targets[p], objs[i], matched = to, with, true
		}
	}
	if !matched {
		reportUnmatched(c, "target", target, "no object has such a program, or its attach target has no name")
	}
}

// checkVerdict records the findings of a report, as --require and --baseline select them. The result of whole objects counts,
// not of single programs.
func checkVerdict(c *cli.Context, rep *verdict.Report, o *checkOptions) error {
	for i := range rep.Warnings {
		recordCause(c, rep, &rep.Warnings[i], warned)
	}
	for i := range rep.Programs {
		p := &rep.Programs[i]
		for j := range p.Notes {
			n := &p.Notes[j]
			text := p.Name + ": " + report.Sentence(n)
			record(c, finding{Class: noted, Code: string(n.Code), Object: p.Object, File: n.Source, Message: text})
		}
	}
	if o.report.Baseline == nil && len(o.require) == 0 {
		if slices.Contains(answers, o.format) {
			return nil
		}
		for i := range rep.Causes {
			class := failing
			if rep.Causes[i].Status != rule.Fails {
				class = uncertain
			}
			recordCause(c, rep, &rep.Causes[i], class)
		}
		return nil
	}
	keys := make([]kernel.Key, len(rep.Kernels))
	for k := range keys {
		keys[k] = rep.Kernels[k].Key()
	}
	for _, s := range o.require {
		if !slices.ContainsFunc(keys, s.Match) {
			reportUnmatched(c, "require", s.String(), selection.Nearest(s, slices.Values(keys)))
			o.report.Unmet = append(o.report.Unmet, report.Unmet{Selector: s.String()})
		}
		if o.report.Baseline == nil {
			reportUnmet(c, rep, s, keys, &o.report)
		}
	}
	if o.report.Baseline == nil {
		return nil
	}
	return reportWorse(c, rep, o, keys)
}

// reportUnmet reports that a requirement is not met, or may not be. It adds to the options where nothing is loaded.
func reportUnmet(c *cli.Context, rep *verdict.Report, s selection.Selector, keys []kernel.Key, o *report.Options) {
	required := func(k int) bool { return s.Match(keys[k]) }
	count := 0
	for k := range keys {
		if required(k) {
			count++
		}
	}
	for _, gap := range rep.Gaps(required) {
		o.Unmet = append(o.Unmet, report.Unmet{Selector: s.String(), Gap: gap})
		what := "nothing"
		if gap.Row != nil {
			what = "none of " + gap.Row.Object
		}
		where := words.Kernels(kernelNames(rep, gap.Kernels), count, found(c).verbose)
		reportf(c, failing, "--require %s: not met: %s is loaded on %s", s, what, where)
	}
	switch worst := rep.Worst(required); {
	case worst == rule.Fails:
		names, kernels := rep.Failing(required)
		verb := "fails"
		if len(names) > 1 {
			verb = "fail"
		}
		reportf(c, failing, "--require %s: not met: %s %s on %s", s, words.Names(names, false), verb,
			words.Kernels(kernelNames(rep, kernels), count, found(c).verbose))
	case worst >= rule.Unknown:
		reportIfVerbose(c, finding{Class: uncertain, Message: fmt.Sprintf("--require %s: may not be met", s)})
	}
}

// reportWorse reports what is worse than in the baseline, on kernels that are required.
func reportWorse(c *cli.Context, rep *verdict.Report, o *checkOptions, keys []kernel.Key) error {
	if err := reportLost(c, rep, o); err != nil {
		return err
	}
	required := func(k int) bool {
		matches := func(s selection.Selector) bool { return s.Match(keys[k]) }
		return len(o.require) == 0 || slices.ContainsFunc(o.require, matches)
	}
	added := make(map[string]int) // counts, by object not in the baseline, the kernels on which it fails
	for _, ch := range rep.CompareObjects(o.report.Baseline, required) {
		text := fmt.Sprintf("%s, was %s", ch.New, ch.Old)
		if ch.Lost() {
			why := "the object is no longer for this machine"
			if ch.New == rule.Unloaded {
				why = "the object is no longer loaded on this kernel"
			}
			reportFinding(c, finding{Class: lost, Message: text + ": " + why, Object: ch.Object, Kernel: ch.Kernel})
			continue
		}
		switch {
		case ch.Added:
			text = fmt.Sprintf("%s, not in the baseline", ch.New)
		case ch.ProgramAdded:
			text += " without this program"
		}
		if ch.Program != "" {
			text = ch.Program + ": " + text
		}
		if ch.Worse() || ch.Added && len(o.require) > 0 {
			reportFinding(c, finding{Class: failing, Message: text, Object: ch.Object, Kernel: ch.Kernel})
		} else if ch.Added {
			added[ch.Object]++
		}
	}
	reportLostPrograms(c, rep, o.report.Baseline, required)
	for _, object := range slices.Sorted(maps.Keys(added)) {
		infof(c, "btfgen: new: %s is not ok on %s; the baseline does not have it",
			object, words.Plural(added[object], "kernel"))
	}
	return nil
}

// recordCause records a cause with its objects and kernels.
func recordCause(c *cli.Context, rep *verdict.Report, cause *verdict.Cause, class class) {
	var objects []string
	for _, p := range cause.Programs {
		objects = append(objects, rep.Programs[p].Object)
	}
	slices.Sort(objects)
	programs := words.Plural(len(cause.Programs), "program")
	if len(cause.Programs) == 1 {
		programs = "program " + rep.Programs[cause.Programs[0]].Name
	}
	where := words.Kernels(kernelNames(rep, cause.Kernels), len(rep.Kernels), false)
	x := finding{Class: class, Code: string(cause.Code), Message: fmt.Sprintf("%s (%s of %s on %s)",
		report.CauseText(cause, 10), programs, words.Names(slices.Compact(objects), false), where)}
	if len(cause.Sources) > 0 {
		x.File = cause.Sources[0]
	}
	record(c, x)
}

// kernelNames returns the names of kernels of a report.
func kernelNames(rep *verdict.Report, kernels []int) (names []string) {
	for _, k := range kernels {
		names = append(names, rep.Kernels[k].Name)
	}
	return names
}

// reportLostPrograms reports programs that are no longer loaded on a kernel while their objects are.
func reportLostPrograms(c *cli.Context, rep *verdict.Report, old *verdict.Baseline, required func(kernel int) bool) {
	at := make(map[string]int)
	for k := range rep.Kernels {
		at[rep.Kernels[k].Name] = k
	}
	type key struct {
		object, program string
		was             rule.Status
	}
	changes := slices.DeleteFunc(rep.Compare(old), func(ch verdict.Change) bool {
		k := at[ch.Kernel]
		return ch.New != rule.Unloaded || !required(k) || slices.ContainsFunc(rep.Objects, func(o verdict.ObjectRow) bool {
			return o.Object == ch.Object && !o.Status[k].Judged()
		})
	})
	for _, same := range words.Group(changes, func(ch *verdict.Change) any { return key{ch.Object, ch.Program, ch.Old} }) {
		var kernels []string
		for i := range same {
			kernels = append(kernels, same[i].Kernel)
		}
		ch := &same[0]
		reportFinding(c, finding{Class: lost, Object: ch.Object,
			Message: fmt.Sprintf("program %s: %s, was %s (%s)", ch.Program, ch.New, ch.Old, words.Kernels(kernels, len(rep.Kernels), found(c).verbose))})
	}
}

// reportLost reports what the baseline has and the report does not: kernels that the options select, objects and programs.
func reportLost(c *cli.Context, rep *verdict.Report, o *checkOptions) error {
	o.report.Lost = rep.Lost(o.report.Baseline, func(name string) bool {
		key, err := kernel.ParseKey(name)
		matches := func(s selection.Selector) bool { return err == nil && s.Match(key) }
		return (len(o.require) == 0 || slices.ContainsFunc(o.require, matches)) && o.selects(key)
	})
	var kernels []string
	for _, l := range o.report.Lost {
		if l.Kernel != "" {
			kernels = append(kernels, l.Kernel)
			continue
		}
		x := finding{Class: lost, Message: "in the baseline, not checked now", Object: l.Object}
		if l.Program != "" {
			x.Message = "program " + l.Program + ": in the baseline, not in the object now"
		}
		reportFinding(c, x)
	}
	for _, series := range report.KernelSeries(kernels) {
		x := finding{Class: lost, Message: series + ": in the baseline, not checked now"}
		if slices.Contains(kernels, series) {
			x.Kernel, x.Message = series, "in the baseline, not checked now"
		}
		reportFinding(c, x)
	}
	return nil
}

// special reports whether a shell may take a character of a word for something else.
func special(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_=./:,@%+", c)
}

// quoted quotes a word for a shell, if it needs quotes.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// readPolicy reads policyFlags.
func readPolicy(c *cli.Context) (loaders []rule.Loader, p verdict.Policy, err error) {
	loaders = rule.Loaders()
	if l := c.String("loader"); l != "both" && l != autoLoader {
		loaders = []rule.Loader{rule.Loader(l)}
	}
	p.Exact = c.Bool("no-guess")
	for _, option := range []string{"optional", "one-of", "when", "loader-map", "tail-called"} {
		for _, text := range c.StringSlice(option) {
			if err := p.Add(option, text); err != nil {
				return nil, p, valuef(option, text, "%w", err)
			}
		}
	}
	return loaders, p, nil
}

// parseAll parses the values of an option.
func parseAll[T any](c *cli.Context, option string, parse func(string) (T, error)) (all []T, err error) {
	for _, text := range c.StringSlice(option) {
		x, err := parse(text)
		if err != nil {
			return nil, valuef(option, text, "%w", err)
		}
		all = append(all, x)
	}
	return all, nil
}

// readTypes reads the files of --types.
func readTypes(c *cli.Context) (all []check.Types, err error) {
	for _, path := range c.StringSlice("types") {
		corp, err := corpus.Open(c.Context, []string{path}, corpus.Options{})
		if err != nil {
			return nil, fmt.Errorf("--types: %w", err)
		}
		var found []check.Types
		for _, f := range corp.Files {
			if err := f.Read(c.Context, func(k *corpus.Kernel) error {
				found = append(found, check.Types{Name: path, BTF: bytes.Clone(k.BTF)})
				return nil
			}); err != nil {
				return nil, fmt.Errorf("--types: %w", err)
			}
		}
		if len(found) != 1 {
			return nil, valuef("types", path, "holds %d BTFs, want one", len(found))
		}
		all = append(all, found...)
	}
	return all, nil
}
