// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/bootable"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func runBoot(c *cli.Context) error {
	if err := checkBootOptions(c); err != nil {
		return err
	}
	// Arguments that are packages are kernels, too, so that a shell can expand --boot *.deb.
	packages, args := c.StringSlice("boot"), []string(nil)
	for _, a := range c.Args().Slice() {
		if bootable.HoldsImage(a) {
			packages = append(packages, a)
		} else {
			args = append(args, a)
		}
	}
	cfg := boot.Config{
		Jobs: c.Int("jobs"), Timeout: time.Duration(c.Int("timeout")) * time.Second,
		Rodata: c.StringSlice("rodata-var"),
	}
	objs, inputs, err := readBooted(c, &cfg, packages, args)
	if err != nil {
		return err
	}
	if cfg.Init, err = readGuest(c); err != nil {
		return err
	}
	if err := boot.Installed(); err != nil {
		return err
	}
	if err := openBootSources(c, &cfg, packages, inputsOf(append(inputs, cfg.Init.Path)...)); err != nil {
		return err
	}
	objs.announce(c)
	return bootAndReport(c, &cfg)
}

// readBooted reads what kernels are booted for, the objects or the command, and returns the files.
func readBooted(c *cli.Context, cfg *boot.Config, packages, args []string) (objs *programs, inputs []string, err error) {
	if c.IsSet("command") {
		if err := readCommand(c, cfg, args); err != nil {
			return nil, nil, err
		}
		inputs = append([]string{cfg.Tool.Path}, args...)
	} else if len(args) == 0 {
		return nil, nil, usagef("no BPF object given")
	}
	if err := checkKernels(c, packages); err != nil {
		return nil, nil, err
	}
	if _, cfg.Policy, err = readPolicy(c); err != nil || cfg.Tool != nil {
		return new(programs), inputs, err
	}
	cfg.Targets = make(map[string]string)
	if objs, cfg.Types, err = readChecked(c, args, cfg.Targets); err != nil {
		return nil, nil, err
	}
	cfg.Objects, cfg.Data = objs.list, objs.data
	reportUnmatchedPolicy(c, &cfg.Policy, objs.list)
	return objs, slices.Concat(objs.paths, c.StringSlice("types")), nil
}

// openBootSources opens the kernels and the archive, and refuses an output that is one of the inputs.
func openBootSources(c *cli.Context, cfg *boot.Config, packages []string, in inputs) error {
	// A package with only modules or a configuration belongs to the kernel of another package.
	opts := corpus.Options{Extras: true}
	sources, err := bootSources(c, packages, &opts, cfg.Init.Arch)
	if err != nil {
		return err
	}
	corp, err := openSources(c, sources, opts)
	if err != nil {
		return err
	}
	reportSkipped(c, corp.Skipped)
	cfg.Corpus = corp
	in.addCorpus(corp, c.String("output"))
	if btf := c.StringSlice("btf"); len(btf) > 0 {
		if cfg.BTF, err = openSources(c, btf, corpus.Options{Extras: true}); err != nil {
			return err
		}
		reportSkipped(c, cfg.BTF.Skipped)
		in.addCorpus(cfg.BTF, c.String("output"))
	}
	if name := c.String("archive"); name != "" {
		if cfg.Archive, err = openBooted(c, name, cfg); err != nil {
			return err
		}
		in[output.Real(name)] = true
	}
	return in.refuse(c.String("output"))
}

// bootAndReport boots the kernels, and writes the report.
func bootAndReport(c *cli.Context, cfg *boot.Config) error {
	w := &bootWatcher{c: c, cfg: cfg, used: make(map[int]bool), printed: make(map[*boot.Kernel]time.Time)}
	asJSON := c.Bool("json") || c.String("format") == "json"
	var text bytes.Buffer // content of the output file
	out := c.App.Writer
	if asJSON {
		out = io.Discard
	} else if c.String("output") != "-" {
		out = &text
	}
	w.report = report.NewBoot(out, c.Bool("verbose"))
	if err := boot.Run(c.Context, *cfg, w); err != nil {
		return err
	}
	if w.booted == 0 {
		return errors.New("no kernel was booted")
	}
	if cfg.Tool == nil {
		for i, o := range cfg.Objects {
			if !w.used[i] {
				reportSkipped(c, []*corpus.Error{{Path: o.Name(), Err: corpus.ErrUnmet}})
			}
		}
		w.report.Sum()
	}
	if asJSON {
		return writeTo(c, c.String("output"), func(out io.Writer) error {
			return w.report.JSON(out, findingsOf(c).Findings)
		})
	}
	return writeTo(c, c.String("output"), func(out io.Writer) error { _, err := text.WriteTo(out); return err })
}

// isFile reports whether a value of --boot is a file, which may be missing, rather than a key.
func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil || !strings.Contains(name, "/")
}

// checkKernels returns an error if a file of --boot is missing, or a key is not in the catalogue.
func checkKernels(c *cli.Context, packages []string) error {
	catalogue, err := readCatalogue(c)
	if err != nil {
		return err
	}
	for _, p := range packages {
		if isFile(p) {
			if _, err := os.Stat(p); err != nil {
				return err
			}
			continue
		}
		series, release := splitBootKey(p)
		if _, err := catalogue.Series([]string{series}); err != nil {
			return valuef("boot", p, "no such file, and %w", err)
		}
		if _, err := selection.Parse("release=" + release); release != "" && err != nil {
			return valuef("boot", p, "%w", err)
		}
	}
	_, err = mirrors(c)
	return err
}

// splitBootKey splits a key of --boot, ID/VERSION_ID[/ARCH[/RELEASE]], into the series and the release, which is a pattern.
func splitBootKey(name string) (series, release string) {
	parts := strings.SplitN(name, "/", 4)
	if len(parts) == 4 {
		release = parts[3]
	}
	return strings.Join(parts[:min(len(parts), 3)], "/"), release
}

// bootSources returns the files of packages, after downloading those that are named by a key, and adds the names of the latter to
// opts.
func bootSources(c *cli.Context, packages []string, opts *corpus.Options, arch string) (sources []string, err error) {
	for _, p := range packages {
		if isFile(p) {
			sources = append(sources, p)
			continue
		}
		files, err := fetchOne(c, p, arch)
		if err != nil {
			return nil, err
		}
		as, err := naming.Parse(bootNaming)
		if err != nil {
			return nil, err
		}
		sources, opts.As = append(sources, files...), []*naming.Rule{as}
	}
	return sources, nil
}

// checkBootOptions refuses options that do not go together.
func checkBootOptions(c *cli.Context) error {
	switch f := c.String("format"); {
	case f != "text" && f != "json":
		return valuef("format", f, "does not go with --boot, only text and json do")
	case (c.Bool("json") || f == "json") && c.IsSet("command"):
		return optionf("json", "does not go with --command")
	case c.IsSet("summary"):
		return optionf("summary", "does not go with --boot")
	}
	for _, name := range []string{"archive", "btf", "types", "when"} {
		if c.IsSet(name) && c.IsSet("command") {
			return optionf(name, "does not go with --command")
		}
	}
	return checkLoader(c)
}

// openBooted opens the archive to load objects with, and prints which of them it was not made for.
func openBooted(c *cli.Context, name string, cfg *boot.Config) (*archive.Archive, error) {
	a, err := bundle.OpenNative(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--archive: %w", err)
	case a == nil:
		return nil, fmt.Errorf("--archive %s: not a %s archive", name, bundle.NativeSuffix)
	}
	for i, o := range cfg.Objects {
		if err := a.Covers(archive.NewObject(o.Name(), cfg.Data[i], o.Machines()...)); err != nil {
			infof(c, "btfgen: %v", err)
		}
	}
	return a, nil
}

// readCommand reads --command, which may begin with variables, and its files.
func readCommand(c *cli.Context, cfg *boot.Config, paths []string) error {
	line := strings.Fields(c.String("command"))
	n := slices.IndexFunc(line, func(word string) bool { return !strings.Contains(word, "=") })
	if n < 0 {
		return optionf("command", "names no program")
	}
	cfg.Env, cfg.Command = line[:n], line[n:]
	var err error
	if cfg.Tool, err = readExecutable(cfg.Command[0]); err != nil {
		return fmt.Errorf("--command: %w", err)
	}
	cfg.Command[0] = filepath.Base(cfg.Tool.Path)
	cfg.Files = []boot.File{{Name: cfg.Command[0], Data: cfg.Tool.Data}}
	for _, path := range paths {
		data, err := limits.ReadFile(path, limits.GuestFile)
		if err != nil {
			return usageError{err}
		}
		name := filepath.Base(path)
		if slices.ContainsFunc(cfg.Files, func(f boot.File) bool { return f.Name == name }) {
			return usagef("two files are called %s", name)
		}
		cfg.Files = append(cfg.Files, boot.File{Name: name, Data: data})
	}
	return nil
}

// readGuest reads the btfgen that runs in the booted machine.
func readGuest(c *cli.Context) (*boot.Executable, error) {
	path := c.String("btfgen")
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	x, err := readExecutable(path)
	if err != nil {
		return nil, fmt.Errorf("%w (--btfgen FILE names another btfgen; CGO_ENABLED=0 go build makes a static one)",
			err)
	}
	return x, nil
}

func readExecutable(path string) (*boot.Executable, error) {
	data, err := limits.ReadFile(path, limits.GuestFile)
	if err != nil {
		return nil, usageError{err}
	}
	return boot.ParseExecutable(path, data)
}

// bootWatcher reports what happens in a run of check --boot.
type bootWatcher struct {
	c       *cli.Context
	cfg     *boot.Config
	report  *report.Boot
	used    map[int]bool               // numbers of the objects for the machine of some kernel
	booted  int                        // number of kernels that booted
	printed map[*boot.Kernel]time.Time // time of the last line of progress
}

func (b *bootWatcher) Skipped(_ *boot.Kernel, errs []*corpus.Error) { reportSkipped(b.c, errs) }

func (b *bootWatcher) Note(k *boot.Kernel, text string) { infof(b.c, "btfgen: %s: %s", k.Name, text) }

func (b *bootWatcher) Begin(k *boot.Kernel) { b.report.Begin(k) }

func (b *bootWatcher) Output(_ *boot.Kernel, text string) { b.report.Output(text) }

func (b *bootWatcher) Stopped(k *boot.Kernel, program string, why error) {
	text := "the machine stopped at " + program + ": " + why.Error()
	reportFinding(b.c, finding{Class: damaged, Message: text, Kernel: k.Name})
}

// Object prints the results of an object and records its findings.
func (b *bootWatcher) Object(k *boot.Kernel, i int) {
	rows := k.Trial.Of(i)
	b.report.Object(rows)
	for i := range rows {
		row := &rows[i]
		p := row.Program
		if wrong := row.Wrong(); wrong != "" {
			record(b.c, finding{Class: different, Message: p.Name + " " + wrong, Object: p.Object, Kernel: k.Name})
		}
		a := row.Actual()
		if a.Archive != "" && a.Archive != boot.Same {
			record(b.c, finding{Class: different, Message: p.Name + " " + a.Archive, Object: p.Object, Kernel: k.Name})
		}
		if a.Outcome == boot.Fails && p.AutoLoad {
			record(b.c, finding{Class: failing, Message: p.Name + " does not load", Object: p.Object, Kernel: k.Name})
		}
	}
}

// otherBoot names a kernel that the archive has: the nearest one, or the last one for the machine.
func otherBoot(a *archive.Archive, m *archive.Match) string {
	other := cmp.Or(m.Below, m.Above)
	for _, k := range a.Keys() {
		if cmp.Or(m.Below, m.Above) == (kernel.Key{}) && k.Arch == m.Want.Arch {
			other = k
		}
	}
	if other == (kernel.Key{}) {
		return ""
	}
	return "; to boot one that it has, use --boot " + quoted(other.String())
}

// End reports how a kernel ended.
func (b *bootWatcher) End(k *boot.Kernel, err error) {
	if k.Trial != nil {
		for _, i := range slices.Concat(k.Trial.Objects, k.Trial.Left) {
			b.used[i] = true
		}
		if n := k.Trial.Unloaded; n > 0 {
			infof(b.c, "btfgen: %s: %s not loaded (--when)", k.Name, words.Plural(n, "program"))
		}
	}
	if k.Up > 0 {
		b.booted++
		b.reportBooted(k)
	}
	switch {
	case err != nil:
		b.reportUnfinished(k, err)
	case b.cfg.Tool != nil:
		b.reportExit(k)
	}
}

// reportBooted reports how a kernel booted, and what is missing of its results.
func (b *bootWatcher) reportBooted(k *boot.Kernel) {
	how := "by KVM"
	if k.Emulated != "" {
		how = "emulated, which is slow: " + k.Emulated
	}
	infof(b.c, "btfgen: %s: booted in %.1f s, done after %.1f (%s)", k.Name, k.Up.Seconds(), k.Done.Seconds(), how)
	b.report.End(k)
	if b.cfg.Archive != nil && !k.Match.Found() {
		text := "not in the archive: " + k.Match.Reason + otherBoot(b.cfg.Archive, &k.Match)
		reportFinding(b.c, finding{Class: missing, Message: text, Kernel: k.Name})
	}
	if k.Trial == nil {
		return
	}
	lost, untried := k.Trial.Missing()
	if untried > 0 {
		text := words.Plural(untried, "program") + " could not be tried"
		reportFinding(b.c, finding{Class: uncertain, Message: text, Kernel: k.Name})
	}
	if len(lost) > 0 {
		text := "no result for " + words.Plural(len(lost), "program") + ": " + words.Names(lost, found(b.c).verbose)
		reportFinding(b.c, finding{Class: damaged, Message: text, Kernel: k.Name})
	}
}

// reportUnfinished reports why a kernel did not boot or did not finish.
func (b *bootWatcher) reportUnfinished(k *boot.Kernel, err error) {
	x := finding{Class: damaged, Message: err.Error(), Kernel: k.Path}
	if e, ok := err.(*corpus.Error); ok && e.Path == k.Path {
		x.Message = e.Reason()
	}
	if errors.As(err, new(boot.Unused)) {
		x.Class = unmatched
	}
	reportFinding(b.c, x)
}

// reportExit reports how the command of a kernel ended.
func (b *bootWatcher) reportExit(k *boot.Kernel) {
	switch command := b.cfg.Command[0]; {
	case k.Exit == nil:
		reportFinding(b.c, finding{Class: damaged, Message: "the command's exit status did not arrive", Kernel: k.Name})
	case k.Exit.Error != "":
		reportFinding(b.c, finding{Class: failing, Message: command + ": " + k.Exit.Error, Kernel: k.Name})
	default:
		b.report.Output(command + ": exit status 0\n")
	}
}

// Progress prints a line when a kernel boots and, at intervals, how many programs were tried.
func (b *bootWatcher) Progress(k *boot.Kernel, tried int) {
	now := time.Now()
	if found(b.c).quiet || tried > 0 && now.Sub(b.printed[k]) < every {
		return
	}
	b.printed[k] = now
	if tried == 0 {
		escape.Fprintf(b.c.App.ErrWriter, "btfgen: %s: booting\n", k.Name)
	} else {
		escape.Fprintf(b.c.App.ErrWriter, "btfgen: %s: %d of %s tried\n",
			k.Name, tried, words.Plural(len(k.Trial.Rows), "program"))
	}
}
