// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/relo"
)

func generateCommand() *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "minimize the BTF of every kernel of a corpus",
		ArgsUsage: "OBJECT...",
		Description: "OBJECT is a BPF object, a file that embeds some, a directory (every BPF object in it), @LIST (a file with an OBJECT\n" +
			"on each line), or - (standard input). MACHINE=OBJECT, such as x86_64=probe.o, says for which machine it is; else its\n" +
			"name does, the program that embeds it, or the registers that it reads (docs/objects.md). OUT is by its suffix a native archive (.btfa), one file\n" +
			"(.tar.gz, .tar.xz, .tar.zst) or else a directory, with BTFHub's layout ID/VERSION_ID/ARCH/RELEASE.btf inside, from\n" +
			"which the files of an earlier run are removed.\n" +
			"A relocation that nothing resolves is information, unless --fail-on says otherwise: 'btfgen check' tells whether a\n" +
			"program reaches it.",
		Flags: append(sourceFlags(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
			&cli.StringFlag{Name: "manifest", Usage: "write hashes, sizes and counts of every kernel to `FILE`, as JSON", TakesFile: true},
			&cli.StringFlag{Name: "reuse", Usage: "take over kernels that did not change from `OLD.btfa`", TakesFile: true},
			&cli.StringFlag{Name: "reuse-manifest", Usage: "the manifest of OLD.btfa is `FILE`", DefaultText: "OLD.json", TakesFile: true},
			&cli.StringFlag{Name: "shard", Usage: "do part `I/N` of the corpus only, or the one that a batch system's variables tell (auto); archive merge puts the parts together"},
			jobsFlag(),
			paddingFlag(),
			keepFlag(),
			jsonFlag("the summary and findings"),
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list the kernels of each poisoned relocation, where the verifier reaches it, what is left out, and the time spent on each stage"},
			&cli.StringFlag{Name: "cpuprofile", Usage: "write a CPU profile for 'go tool pprof' to `FILE`", TakesFile: true},
		),
		Action: runGenerate,
	}
}

// sourceFlags are the options of all commands that take kernels from --btf.
// openCorpus evaluates them.
func sourceFlags() []cli.Flag {
	btf := &cli.StringSliceFlag{Name: "btf", Usage: "kernel BTF: a `SOURCE` is a file or a tree (default: the running kernel)", TakesFile: true}
	return append([]cli.Flag{btf}, corpusFlags()...)
}

func jobsFlag() cli.Flag {
	return &cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "work on `N` kernels at once", Value: runtime.GOMAXPROCS(0), DefaultText: "number of CPUs"}
}

func paddingFlag() cli.Flag {
	return &cli.StringFlag{Name: "padding", Usage: "what stands for dropped members: `KIND` implicit (nothing) or explicit (named filler, for readers of a C dump)", Value: "implicit"}
}

func minimizeOptions(c *cli.Context) (o minimize.Options, err error) {
	if o.Keep, err = core.ParseKeep(c.StringSlice("keep")...); err != nil {
		return o, usagef("--keep %s", err)
	}
	switch p := c.String("padding"); p {
	case "implicit":
	case "explicit":
		o.Padding = minimize.PadExplicit
	default:
		return o, usagef("--padding %q: want implicit or explicit", p)
	}
	return o, nil
}

// runningKernel is where the kernel shows its own BTF and that of its modules.
const runningKernel = "/sys/kernel/btf"

// openCorpus finds the kernels of the command's sources. Of how it takes Map and
// Extras.
func openCorpus(c *cli.Context, how corpus.Options) (*corpus.Corpus, error) {
	sources := c.StringSlice("btf")
	switch {
	case len(sources) == 0:
		sources = []string{runningKernel}
	case slices.Contains(sources, ""):
		return nil, usagef("--btf is empty")
	}
	opts, err := corpusOptions(c)
	if err != nil {
		return nil, err
	}
	opts.Map, opts.Extras = how.Map, how.Extras
	return openWith(c, sources, opts)
}

func runGenerate(c *cli.Context) (err error) {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	for _, file := range []string{out.Path, c.String("manifest")} {
		unlock, err := holdInput(c, file, c.String("reuse"), c.String("reuse-manifest"), manifestOf(c.String("reuse")))
		if err != nil {
			return err
		}
		defer unlock()
	}
	cfg, objs, err := generateConfig(c, out.Path)
	if err != nil {
		return err
	}
	cfg.Keyed = out.Native
	if err := out.Check(c.Context); err != nil {
		return err
	}
	for _, file := range []string{c.String("manifest"), c.String("cpuprofile")} {
		if file != "" {
			if err := output.CheckFile(file); err != nil {
				return err
			}
		}
	}
	stop, err := startProfile(c.String("cpuprofile"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	stderr := c.App.ErrWriter
	bar := newProgress(c, len(cfg.Corpus.Files))
	cfg.Done = bar.set
	start := time.Now()
	rep, err := generate.Run(c.Context, *cfg)
	bar.finish()
	if c.Context.Err() != nil {
		escape.Fprintf(stderr, "btfgen: %s, nothing written\n", bar)
	}
	if err != nil {
		return err
	}
	if len(rep.Kernels) == 0 && cfg.Shard.N <= 1 {
		tellLeftOut(c, rep.Skipped)
		tellNotes(c)
		return fmt.Errorf("no kernel could be minimized")
	}
	if m := c.String("manifest"); m != "" {
		if err := writeManifest(c, m, cfg, objs, rep); err != nil {
			return err
		}
	}
	var info archive.Info // hashes all objects, so that it is made only if it goes anywhere
	if out.HasInfo() {
		info = objs.info(rep, cfg.Options.Keep)
		info.Shard = cfg.Shard
	}
	if err := writeKernels(c, &out, info, rep.Archive()); err != nil {
		return err
	}
	tellLeftOut(c, rep.Skipped)
	if err := tellUnresolved(c, cfg, objs, rep); err != nil {
		return err
	}
	tellKept(c, rep)
	tellExternals(c, objs)
	s := generate.Summarize(out.Path, rep, time.Since(start))
	if !found(c).on[poisoned] && !found(c).silent {
		s.PrintPoisoned(stderr, c.Bool("verbose"))
	}
	if !found(c).silent {
		rep.PrintUnmatched(stderr, c.Bool("verbose"))
	}
	if c.Bool("verbose") {
		say(c, "%s", rep.Times())
	}
	found(c).leftOut(stderr)
	say(c, "%s", s)
	return document(c, struct {
		*generate.Summary
		allFindings
	}{s, findingsOf(c)})
}

// generateConfig reads the options, objects and sources.
func generateConfig(c *cli.Context, out string) (*generate.Config, *objects, error) {
	cfg := &generate.Config{Jobs: c.Int("jobs"), Hash: c.String("manifest") != ""}
	var err error
	if cfg.Options, err = minimizeOptions(c); err != nil {
		return nil, nil, err
	}
	if cfg.Jobs < 1 {
		return nil, nil, usagef("--jobs %d: want at least 1", cfg.Jobs)
	}
	limitMemory(cfg.Jobs)
	if cfg.Shard, err = shardFlag(c); err != nil {
		return nil, nil, err
	}
	objs, err := objectsOrNone(c, c.Args().Slice(), cfg.Options.Keep, readObjects)
	if err != nil {
		return nil, nil, err
	}
	cfg.Objects = objs.list
	if cfg.Corpus, err = openCorpus(c, corpus.Options{Map: true}); err != nil {
		return nil, nil, err
	}
	outputs := []string{out, c.String("manifest"), c.String("cpuprofile")}
	in := inputsOf(append(c.StringSlice("btf"), objs.paths...)...)
	in.addCorpus(cfg.Corpus, outputs...)
	if err := cmp.Or(in.refuse(outputs...), in.refuseTree(out, cfg.Corpus)); err != nil {
		return nil, nil, err
	}
	return cfg, objs, reuse(c, cfg)
}

// shardFlag reads --shard, and says what auto came to.
func shardFlag(c *cli.Context) (s archive.Shard, err error) {
	switch text := c.String("shard"); text {
	case "":
		return s, nil
	case "auto":
		s, from, err := generate.ShardFrom(os.Getenv)
		if err != nil {
			return s, usagef("--shard auto: %w", err)
		}
		part := "the only part"
		if s.N > 0 {
			part = "part " + s.String()
		}
		say(c, "btfgen: --shard auto: %s, by %s", part, from)
		return s, nil
	default:
		if s, err = generate.ParseShard(text); err != nil {
			err = usagef("--shard %w", err)
		}
		return s, err
	}
}

// reuse reads the archive of --reuse. One that cannot serve is told and does
// without.
func reuse(c *cli.Context, cfg *generate.Config) error {
	path := c.String("reuse")
	if path == "" {
		if c.String("reuse-manifest") != "" {
			return usagef("--reuse-manifest goes with --reuse")
		}
		return nil
	}
	var same string
	if distinct(buildVersion()) {
		same = tool()
	}
	old, why, err := generate.ReadOld(c.Context, path, cmp.Or(c.String("reuse-manifest"), manifestOf(path)), same, cfg)
	if why != "" {
		say(c, "btfgen: nothing of %s can be used: %s", path, why)
	}
	cfg.Old = old
	return err
}

// tellExternals notes what the objects take from the running kernel's own BTF, and on which names loaders do not agree.
func tellExternals(c *cli.Context, objs *objects) {
	for _, o := range objs.list {
		for _, x := range check.Externals(o) {
			text := strings.Join(x.Subjects, ", ")
			if few := 3; len(x.Subjects) > few+1 && !c.Bool("verbose") {
				text = fmt.Sprintf("%s and %d more", strings.Join(x.Subjects[:few], ", "), len(x.Subjects)-few)
			}
			tellOf(c, finding{Class: noted, Object: o.Name(), Code: string(x.Code), Message: text + ": " + report.Reason(&x.Finding)})
		}
	}
}

// tellUnresolved tells which relocations loaders refuse and, if the user wants to know that, where the verifier gets to
// poisoned ones. Those are in the summary unless they count.
func tellUnresolved(c *cli.Context, cfg *generate.Config, objs *objects, rep *generate.Report) error {
	if f := found(c); f.verbose || f.on[reached] {
		programs := make([]*check.Object, 0, len(objs.list))
		for i, o := range objs.list {
			if !slices.ContainsFunc(rep.Unresolved, func(u generate.Unresolved) bool { return u.Object == o.Name() && u.Result == relo.Poisoned }) {
				continue
			}
			p, err := check.Parse(c.Context, o.Name(), objs.data[i])
			if c.Context.Err() != nil {
				return c.Context.Err()
			}
			if err != nil {
				why := strings.TrimPrefix(err.Error(), o.Name()+": ")
				tellOf(c, finding{Class: reached, Object: o.Name(), Message: "whether the verifier reaches what is poisoned is not known: " + why})
				continue
			}
			programs = append(programs, p.ForMachines(o.Machines()...))
		}
		if err := generate.Reach(c.Context, cfg, programs, rep); err != nil {
			return err
		}
	}
	for i := range rep.Unresolved {
		u := &rep.Unresolved[i]
		if u.Result != relo.Poisoned {
			tellOf(c, unresolved(class(u.Result.String()), u, u.Kernels, len(rep.Kernels)))
			continue
		}
		others := slices.DeleteFunc(slices.Clone(u.Kernels), func(k string) bool { return slices.Contains(u.Reached, k) })
		for _, x := range []finding{unresolved(reached, u, u.Reached, len(rep.Kernels)), unresolved(poisoned, u, others, len(rep.Kernels))} {
			switch {
			case x.Class == "": // on no kernel
			case found(c).counts(&x):
				tellOf(c, x)
			default:
				record(c, x)
			}
		}
	}
	return nil
}

// unresolved is a finding about a relocation on some of n kernels. It is none if they are none.
func unresolved(cl class, u *generate.Unresolved, kernels []string, n int) finding {
	switch len(kernels) {
	case 0:
		return finding{}
	case 1:
		return finding{Class: cl, Message: u.Relo, Object: u.Object, Kernel: kernels[0]}
	}
	return finding{Class: cl, Message: u.Relo + " on " + words.Kernels(kernels, n, false), Object: u.Object}
}
