package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/minimize"
)

func generateCommand() *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "minimize the BTF of every kernel of a corpus",
		ArgsUsage: "OBJECT...",
		Description: "OBJECT is a BPF object, or a file that embeds some. OUT is by its suffix a native archive (.btfa), one file\n" +
			"(.tar.gz, .tar.xz, .tar.zst) or else a directory, with BTFHub's layout ID/VERSION_ID/ARCH/RELEASE.btf inside.\n" +
			"The exit status is 3 if a relocation is unresolved somewhere or a kernel or object was skipped.",
		Flags: append(sourceFlags(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
			&cli.StringFlag{Name: "manifest", Usage: "write hashes, sizes and counts of every kernel to `FILE`, as JSON", TakesFile: true},
			&cli.StringFlag{Name: "reuse", Usage: "take over kernels that did not change from `OLD.btfa`", TakesFile: true},
			&cli.StringFlag{Name: "reuse-manifest", Usage: "the manifest of OLD.btfa is `FILE`", DefaultText: "OLD.json", TakesFile: true},
			&cli.StringFlag{Name: "shard", Usage: "do part `I/N` of the corpus only; archive merge puts the parts together"},
			jobsFlag(),
			paddingFlag(),
			&cli.BoolFlag{Name: "json", Usage: "write the summary to standard output, as JSON"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list the kernels of each unresolved relocation, and the time spent on each stage"},
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

// openCorpus finds the kernels of the command's sources. mapped is
// corpus.Options.Map.
func openCorpus(c *cli.Context, mapped bool) (*corpus.Corpus, error) {
	sources := c.StringSlice("btf")
	if len(sources) == 0 {
		sources = []string{runningKernel}
	}
	opts, err := corpusOptions(c)
	if err != nil {
		return nil, err
	}
	opts.Map = mapped
	return corpus.Open(c.Context, sources, opts)
}

func runGenerate(c *cli.Context) (err error) {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	cfg, objs, err := generateConfig(c, out.Path)
	if err != nil {
		return err
	}
	stop, err := startProfile(c.String("cpuprofile"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	stderr := c.App.ErrWriter
	bar := newProgress(stderr, len(cfg.Corpus.Files))
	cfg.Done = bar.update
	start := time.Now()
	rep, err := generate.Run(c.Context, *cfg)
	bar.finish()
	if c.Context.Err() != nil {
		foreign.Fprintf(stderr, "btfgen: %s, nothing written\n", bar)
	}
	if err != nil {
		return err
	}
	if len(rep.Kernels) == 0 && cfg.Shard.N <= 1 {
		reportSkipped(stderr, rep.Skipped)
		return fmt.Errorf("no kernel could be minimized")
	}
	if m := c.String("manifest"); m != "" {
		if err := writeManifest(c, m, cfg, objs, rep); err != nil {
			return err
		}
	}
	var info archive.Info // hashes all objects, so that it is made only if it goes anywhere
	if out.Native {
		info = objs.info()
	}
	if err := out.Write(info, rep.Archive()); err != nil {
		return err
	}
	s := generate.Summarize(out.Path, rep, objs.bad, time.Since(start))
	if c.Bool("json") {
		err = s.JSON(c.App.Writer)
	} else {
		reportSkipped(stderr, rep.Skipped)
		s.Text(stderr, rep, c.Bool("verbose"))
	}
	if err == nil && (len(rep.Unresolved) > 0 || len(rep.Skipped) > 0 || objs.bad > 0) {
		return errFindings
	}
	return err
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
	if s := c.String("shard"); s != "" {
		if cfg.Shard, err = generate.ParseShard(s); err != nil {
			return nil, nil, usageError{err}
		}
	}
	objs, err := readObjects(c.Context, c.Args().Slice(), c.App.ErrWriter)
	if err != nil {
		return nil, nil, err
	}
	cfg.Objects = objs.list
	if cfg.Corpus, err = openCorpus(c, true); err != nil {
		return nil, nil, err
	}
	outputs := []string{out, c.String("manifest"), c.String("cpuprofile")}
	in := inputsOf(append(c.StringSlice("btf"), c.Args().Slice()...)...)
	in.addCorpus(cfg.Corpus, outputs...)
	if err := cmp.Or(in.refuse(outputs...), in.refuseTree(out, cfg.Corpus)); err != nil {
		return nil, nil, err
	}
	return cfg, objs, reuse(c, cfg)
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
		foreign.Fprintf(c.App.ErrWriter, "btfgen: nothing of %s can be used: %s\n", path, why)
	}
	cfg.Old = old
	return err
}

func reportSkipped(w io.Writer, skipped []*corpus.Error) {
	for _, s := range skipped {
		foreign.Fprintf(w, "btfgen: skipped: %s\n", s)
	}
}
