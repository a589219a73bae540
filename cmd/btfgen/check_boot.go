// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func bootFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "boot", Usage: "boot the kernel in `PACKAGE` (.deb, .rpm or vmlinuz) under qemu, load the objects, and compare"},
		&cli.StringFlag{Name: "command", Usage: "run `COMMAND` in booted kernels instead of loading; arguments are files for it"},
		countFlag("timeout", "stop a booted kernel after `SECONDS`", 600),
		&cli.StringFlag{Name: "btfgen", Usage: "boot with `FILE`, a static btfgen for the machine (default: this one)"},
	}
}

// bootNot are options of check that --boot does not support: they select other reports or other sources of kernels.
// --boot does not support the options of policyFlags either.
var bootNot = []string{"btf", "select", "exclude", "min-kernel", "require", "baseline", "diff"}

// boots is a run of check --boot.
type boots struct {
	c        *cli.Context
	packages []string
	args     []string
	objs     *programs // nil with a command
	types    []check.Types
	files    []boot.File
	command  []string
	env      []string // of the command
	host     *boot.Host
	self     *guestProgram
	tool     *guestProgram // of the command

	used   map[int]bool // objects that support the machine of a kernel
	table  boot.Table
	rows   int
	booted []bootedKernel

	w    io.Writer     // receives the report as text
	text *bytes.Buffer // is w if the text goes into a file, else nil
}

func runBoot(c *cli.Context) error {
	b := &boots{c: c, packages: c.StringSlice("boot"), used: make(map[int]bool)}
	if err := cmp.Or(b.options(), b.itself(), boot.Installed()); err != nil {
		return err
	}
	if b.command == nil {
		objs, err := readPrograms(c, b.args)
		if err != nil {
			return err
		}
		for _, target := range c.StringSlice("target") {
			setTarget(c, objs.list, target)
		}
		b.objs = objs
		if b.types, err = readTypes(c); err != nil {
			return err
		}
	}
	corp, err := b.open()
	if err != nil {
		return err
	}
	in := inputsOf(slices.Concat(b.inputs(), []string{b.self.path})...)
	in.addCorpus(corp, c.String("output"))
	if err := in.refuse(c.String("output")); err != nil {
		return err
	}
	for _, f := range corp.Files {
		one := *corp
		one.Files, one.Skipped = []*corpus.File{f}, nil
		if err := b.kernel(&one); err != nil {
			if c.Context.Err() != nil {
				return c.Context.Err()
			}
			reportFinding(c, finding{Class: damaged, Message: strings.TrimPrefix(err.Error(), f.Path+": "), Kernel: f.Path})
		}
	}
	if len(b.booted) == 0 {
		return errors.New("no kernel was booted")
	}
	b.sum()
	return b.write()
}

// options reads the options. Arguments that are packages are kernels, too, so that a shell can expand --boot *.deb.
func (b *boots) options() error {
	not := slices.Clone(bootNot)
	for _, f := range policyFlags() {
		not = append(not, f.Names()[0])
	}
	for _, name := range not {
		if b.c.IsSet(name) {
			return usagef("--boot does not go with --%s", name)
		}
	}
	if err := cmp.Or(b.form(), checkLoader(b.c)); err != nil {
		return err
	}
	b.host = &boot.Host{Timeout: time.Duration(b.c.Int("timeout")) * time.Second}
	for _, a := range b.c.Args().Slice() {
		if corpus.HoldsImage(a) {
			b.packages = append(b.packages, a)
		} else {
			b.args = append(b.args, a)
		}
	}
	if !b.c.IsSet("command") {
		if len(b.args) == 0 {
			return usagef("no BPF object given")
		}
		return nil
	}
	if b.c.IsSet("types") {
		return usagef("--types does not go with --command")
	}
	words := strings.Fields(b.c.String("command"))
	n := 0
	for n < len(words) && strings.Contains(words[n], "=") {
		n++
	}
	b.env, b.command = words[:n], words[n:]
	if len(b.command) == 0 {
		return usagef("--command names no program")
	}
	var err error
	if b.tool, err = readGuest(b.command[0]); err != nil {
		return fmt.Errorf("--command: %w", err)
	}
	b.files = []boot.File{{Name: filepath.Base(b.command[0]), Data: b.tool.data}}
	for _, path := range b.args {
		data, err := os.ReadFile(path)
		if err != nil {
			return usageError{err}
		}
		name := filepath.Base(path)
		if slices.ContainsFunc(b.files, func(f boot.File) bool { return f.Name == name }) {
			return usagef("two files are called %s", name)
		}
		b.files = append(b.files, boot.File{Name: name, Data: data})
	}
	b.command[0] = b.files[0].Name
	return nil
}

// inputs returns the files that the arguments name.
func (b *boots) inputs() []string {
	if b.tool != nil {
		return append([]string{b.tool.path}, b.args...)
	}
	return slices.Concat(b.objs.paths, b.c.StringSlice("types"))
}

// open finds the kernels in the packages. A package with only modules or a configuration belongs to the kernel of another package.
func (b *boots) open() (*corpus.Corpus, error) {
	corp, err := openSources(b.c, b.packages, corpus.Options{Extras: true})
	if err != nil {
		return nil, err
	}
	reportSkipped(b.c, corp.Skipped)
	return corp, nil
}

var errManyKernels = errors.New("holds several kernels; one at a time can be booted")

// kernel boots the only kernel of a corpus. An error affects only this kernel, unless the context is done.
func (b *boots) kernel(corp *corpus.Corpus) error {
	ctx := b.c.Context
	run := &bootRun{boots: b, name: corp.Files[0].Path, progress: b.c.App.ErrWriter}
	if found(b.c).quiet {
		run.progress = io.Discard
	}
	m := &boot.Machine{Init: b.self.data, Files: b.files, Job: boot.Job{Command: b.command, Env: b.env}}
	var modules []string
	if b.objs != nil {
		rep, err := b.predict(corp)
		if rep == nil || err != nil {
			return err
		}
		run.name, modules = rep.Kernels[0].Name, rep.Modules()
		run.trial = boot.NewTrial(rep, b.objs.list)
		for _, i := range run.trial.Objects {
			b.used[i] = true
			m.Objects = append(m.Objects, b.objs.data[i])
		}
		if len(m.Objects) == 0 {
			return errors.New("no object is for its machine")
		}
		m.Job.Targets = b.targets()
		for _, t := range b.types {
			m.Types = append(m.Types, t.BTF)
		}
	}
	var s corpus.Scratch
	k, err := corp.Files[0].Bootable(ctx, &s, modules)
	if err != nil {
		return err
	}
	for _, p := range []*guestProgram{b.self, b.tool} {
		if p != nil && p.arch != k.Machine {
			return fmt.Errorf("the kernel is for %s, and %s for %s", k.Machine, p.path, cmp.Or(p.arch, "another machine"))
		}
	}
	m.Arch, m.Kernel, m.Config = k.Machine, k.Image, k.Config
	for _, mod := range k.Modules {
		m.Modules, run.modules = append(m.Modules, mod.ELF), append(run.modules, mod.Name)
	}
	if len(k.Missing) > 0 {
		infof(b.c, "btfgen: %s: has no module %s", run.name, strings.Join(k.Missing, ", "))
	}
	return run.boot(ctx, m)
}

// predict checks the objects against a kernel, as libbpf loads them. It returns nil without an error if the kernel was skipped
// and the reason reported.
func (b *boots) predict(corp *corpus.Corpus) (*check.Report, error) {
	rep, err := check.Run(b.c.Context, check.Config{
		Objects: b.objs.list, Corpus: corp, Jobs: 1, Loaders: []check.Loader{check.Libbpf}, Rodata: b.c.StringSlice("rodata-var"), Types: b.types,
	})
	if err != nil {
		return nil, err
	}
	left := len(rep.Skipped)
	// sum reports the objects for other machines.
	reportSkipped(b.c, slices.DeleteFunc(rep.Skipped, func(e *corpus.Error) bool { return errors.Is(e, corpus.ErrUnmet) }))
	switch {
	case len(rep.Kernels) > 1:
		return nil, errManyKernels
	case len(rep.Kernels) == 1:
		return rep, nil
	case left > 0:
		return nil, nil
	}
	return nil, errors.New("no kernel in it")
}

func (b *boots) targets() map[string]string {
	m := make(map[string]string)
	for _, t := range b.c.StringSlice("target") {
		program, to, _ := strings.Cut(t, "=")
		m[program] = to
	}
	return m
}

// itself reads the btfgen that runs in the booted machine.
func (b *boots) itself() error {
	path := b.c.String("btfgen")
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return err
		}
	}
	p, err := readGuest(path)
	if err != nil {
		return fmt.Errorf("%w (--btfgen FILE names another btfgen; CGO_ENABLED=0 go build makes a static one)", err)
	}
	b.self = p
	return nil
}

// guestProgram is a statically linked program.
type guestProgram struct {
	path, arch string
	data       []byte
}

func readGuest(path string) (*guestProgram, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{err}
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s is no program for Linux: %w", path, err)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, fmt.Errorf("%s is dynamically linked, and there are no libraries in the booted machine", path)
	}
	return &guestProgram{path, machine.OfELF(f.Machine, f.Class, f.Data), data}, nil
}

// bootRun is the run of one booted kernel.
type bootRun struct {
	*boots
	name    string
	trial   *boot.Trial // nil with a command
	modules []string    // modules that are loaded

	release string // as the booted kernel reports it
	started time.Time
	hello   time.Duration // time from started to the guest's first event
	exit    *boot.Event
	partial bool // the command's output lacks the end of a line

	progress io.Writer     // receives lines about the progress
	reported time.Duration // time of the last such line, since started
	events   int           // programs that were tried
	done     int           // objects that are complete and printed
	counts   struct{ fine, untried, lost int }
}

func (r *bootRun) boot(ctx context.Context, m *boot.Machine) error {
	c := r.c
	r.started = time.Now()
	escape.Fprintf(r.w, "%s%s:\n", r.name, r.with())
	escape.Fprintf(r.progress, "btfgen: %s: booting\n", r.name)
	err := r.host.Boot(ctx, m, r.take)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.hello > 0 {
		how := "by KVM"
		if why := r.host.Emulated; why != "" {
			how = "emulated, which is slow: " + why
		}
		infof(c, "btfgen: %s: booted in %.1f s, done after %.1f (%s)", r.name, r.hello.Seconds(), time.Since(r.started).Seconds(), how)
	}
	if r.hello > 0 {
		k := bootedKernel{Name: r.name, Release: r.release, Modules: r.modules, Emulated: r.host.Emulated}
		if r.trial != nil {
			r.printUntil(len(r.trial.Objects))
			r.sumKernel()
			k.Programs = programsOf(r.trial)
		}
		r.booted = append(r.booted, k)
	}
	if err == nil && r.command != nil {
		r.ended()
	}
	return err
}

// with returns the loaded modules as text for the report.
func (r *bootRun) with() string {
	if len(r.modules) == 0 {
		return ""
	}
	return " with " + words.Plural(len(r.modules), "module") + " (" + strings.Join(r.modules, ", ") + ")"
}

// take handles an event of the guest.
func (r *bootRun) take(e boot.Event) {
	switch e.Kind {
	case boot.Hello:
		r.hello, r.release = time.Since(r.started), e.Name
	case boot.Module:
		if e.Error != "" && 0 <= e.Object && e.Object < len(r.modules) {
			infof(r.c, "btfgen: %s: module %s: %s", r.name, r.modules[e.Object], e.Error)
		}
	case boot.Output:
		for line := range strings.Lines(e.Output) {
			if !r.partial {
				io.WriteString(r.w, "  ")
			}
			text, whole := strings.CutSuffix(line, "\n")
			escape.Fprintf(r.w, "%s", strings.TrimSuffix(text, "\r"))
			if r.partial = !whole; whole {
				io.WriteString(r.w, "\n")
			}
		}
	case boot.Exit:
		r.exit = &e
	default:
		if r.trial == nil {
			return
		}
		r.printUntil(e.Object) // the guest finishes an object before it begins the next
		r.trial.Take(e)
		if e.Kind == boot.Program {
			r.tried(time.Since(r.started))
		}
	}
}

// tried counts a program that the machine has tried. Once every interval it prints the count. now is the time since the start.
func (r *bootRun) tried(now time.Duration) {
	r.events++
	if now-r.reported >= every {
		r.reported = now
		escape.Fprintf(r.progress, "btfgen: %s: %d of %s tried\n", r.name, r.events, words.Plural(len(r.trial.Rows), "program"))
	}
}

// ended reports the result of the command.
func (r *bootRun) ended() {
	if r.partial {
		escape.Fprintf(r.w, "\n")
	}
	switch {
	case r.exit == nil:
		reportFinding(r.c, finding{Class: damaged, Message: "the command's exit status did not arrive", Kernel: r.name})
	case r.exit.Error != "":
		reportFinding(r.c, finding{Class: failing, Message: fmt.Sprintf("%s: %s", r.command[0], r.exit.Error), Kernel: r.name})
	default:
		escape.Fprintf(r.w, "  %s: exit status 0\n", r.command[0])
	}
}

// printUntil prints the programs of all objects before the given one that were not printed yet.
func (r *bootRun) printUntil(object int) {
	for ; r.done < min(object, len(r.trial.Objects)); r.done++ {
		r.print(r.trial.Of(r.done))
	}
}

// print prints the predicted and actual results of an object's programs. Programs that work as predicted are counted, and
// printed only with --verbose.
func (r *bootRun) print(rows []boot.Row) {
	c := r.c
	w := tabwriter.NewWriter(r.w, 0, 0, 2, ' ', 0)
	var wrongRows []*boot.Row
	for i := range rows {
		row := &rows[i]
		p := row.Program
		r.rows++
		switch {
		case row.Got == nil && row.Refused() == nil:
			r.counts.lost++
		case row.NotTried():
			r.counts.untried++
		default:
			r.table.Add(p.Object+": "+p.Name, p.Load[0], row.Outcome())
		}
		wrong, refused := row.Wrong(), row.Refused()
		if wrong == "" && refused == nil && row.Alone() == "" && !row.NotTried() && p.Status[0] <= check.Guarded && !c.Bool("verbose") {
			r.counts.fine++
			continue
		}
		mark := ""
		if wrong != "" {
			mark = "WRONG: "
		}
		escape.Fprintf(w, "  %s\t%s\t%s\t%s%s\n", p.Object, p.Name, predicted(p), mark, actual(row))
		if wrong != "" {
			wrongRows = append(wrongRows, row)
			record(c, finding{Class: different, Message: p.Name + " " + wrong, Object: p.Object, Kernel: r.name})
		}
		if refused != nil && !row.NotTried() && p.AutoLoad {
			record(c, finding{Class: failing, Message: p.Name + " does not load", Object: p.Object, Kernel: r.name})
		}
	}
	w.Flush()
	for _, row := range wrongRows {
		printLog(r.w, row, c.Bool("verbose"))
	}
	if len(rows) > 0 && rows[0].Unread != "" {
		escape.Fprintf(r.w, "  %s: cilium/ebpf does not read it: %s\n", rows[0].Program.Object, rows[0].Unread)
	}
}

// sumKernel prints the number of programs that worked as predicted, and reports those without a result.
func (r *bootRun) sumKernel() {
	if n := r.counts.fine; n > 0 {
		escape.Fprintf(r.w, "  %s ok, as predicted\n", words.Plural(n, "program"))
	}
	if n := r.counts.untried; n > 0 {
		reportFinding(r.c, finding{Class: uncertain, Message: words.Plural(n, "program") + " could not be tried", Kernel: r.name})
	}
	if n := r.counts.lost; n > 0 {
		reportFinding(r.c, finding{Class: damaged, Message: "no result for " + words.Plural(n, "program"), Kernel: r.name})
	}
}

// predicted describes the verdict on a program.
func predicted(p *check.Program) string {
	load, all := p.Load[0], p.Status[0]
	if all > load && all > check.Guarded {
		return fmt.Sprintf("%s, %s to attach", load, all)
	}
	return load.String()
}

// actual describes the result of a program in the guest.
func actual(row *boot.Row) string {
	var parts []string
	switch e := row.Refused(); {
	case e == nil && row.Got == nil:
		parts = append(parts, "not tried")
	case row.NotTried():
		parts = append(parts, "not tried: "+e.Error)
	case e != nil:
		parts = append(parts, "does not load: "+row.Outcome().Reason())
	default:
		parts = append(parts, "loads")
		if a := row.Attach(); a != "" {
			parts = append(parts, a)
		}
	}
	if a := row.Alone(); a == "loads" {
		parts = append(parts, "loads with cilium/ebpf")
	} else if a != "" {
		parts = append(parts, "does not load with cilium/ebpf: "+a)
	}
	return strings.Join(parts, "; ")
}

// logLines is the maximum number of lines of a log that are printed without --verbose.
const logLines = 6

// anInsn matches the start of an instruction's line in a verifier's log.
var anInsn = regexp.MustCompile(`^\d+: \([0-9a-f]{2}\) `)

// logEnd returns the end of a verifier's log: the last instruction, the source line above it, and the lines below it except
// statistics. These say why the verifier refused the program.
func logEnd(log string) []string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r")
	}
	end := len(lines)
	for end > 1 && slices.ContainsFunc([]string{"processed ", "verification time ", "stack depth "}, func(p string) bool { return strings.HasPrefix(lines[end-1], p) }) {
		end--
	}
	start := end - 1
	for start > 0 && !anInsn.MatchString(lines[start]) {
		start--
	}
	if start > 0 && strings.HasPrefix(lines[start-1], ";") {
		start--
	}
	return lines[max(start, end-logLines):end]
}

// printLog prints the reasons for a wrong prediction and the end of the verifier's log. With verbose, it prints the whole log
// that the machine sent.
func printLog(w io.Writer, row *boot.Row, verbose bool) {
	p := row.Program
	escape.Fprintf(w, "  WRONG: %s: %s %s\n", p.Object, p.Name, row.Wrong())
	for _, f := range p.Findings {
		escape.Fprintf(w, "      predicted: %s: %s\n", f.Status, report.Sentence(&f.Finding))
	}
	if e := row.Refused(); e != nil && e.Log != "" {
		lines := logEnd(e.Log)
		if verbose {
			lines = strings.Split(strings.TrimSpace(e.Log), "\n")
		}
		for _, line := range lines {
			escape.Fprintf(w, "      | %s\n", strings.TrimRight(line, "\r"))
		}
	}
}

// sum reports the objects that support no kernel's machine, and prints the table of all kernels.
func (b *boots) sum() {
	if b.objs == nil {
		return
	}
	for i, o := range b.objs.list {
		if !b.used[i] {
			reportSkipped(b.c, []*corpus.Error{{Path: o.Name(), Err: corpus.ErrUnmet}})
		}
	}
	escape.Fprintf(b.w, "%s on %s, predicted against actual:\n", words.Plural(b.rows, "program"), words.Plural(len(b.booted), "kernel"))
	for _, l := range b.table.Lines() {
		escape.Fprintf(b.w, "  %s\n", l)
	}
}
