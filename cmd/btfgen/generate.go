package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/generate"
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
		Flags: []cli.Flag{
			btfFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `OUT` (required)"},
			layoutFlag(),
			&cli.StringFlag{Name: "manifest", Usage: "write hashes, sizes and counts of every kernel to `FILE`, as JSON", TakesFile: true},
			jobsFlag(),
			paddingFlag(),
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list the kernels of each unresolved relocation"},
		},
		Action: runGenerate,
	}
}

func btfFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "btf", Usage: "kernel BTF: a `SOURCE` is a file or a tree (default: the running kernel)", TakesFile: true}
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

func openCorpus(c *cli.Context) (*corpus.Corpus, error) {
	sources := c.StringSlice("btf")
	if len(sources) == 0 {
		sources = []string{runningKernel}
	}
	return corpus.Open(c.Context, sources, corpus.Options{})
}

func runGenerate(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	opts, err := minimizeOptions(c)
	if err != nil {
		return err
	}
	if c.Int("jobs") < 1 {
		return usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	stderr := c.App.ErrWriter
	objs, err := readObjects(c.Args().Slice(), stderr)
	if err != nil {
		return err
	}
	if err := distinctOutput(out.path, append(c.StringSlice("btf"), c.Args().Slice()...)); err != nil {
		return err
	}
	corp, err := openCorpus(c)
	if err != nil {
		return err
	}
	bar := newProgress(stderr, len(corp.Files))
	rep, err := generate.Run(c.Context, generate.Config{
		Objects: objs.list, Corpus: corp, Options: opts, Jobs: c.Int("jobs"), Done: bar.set,
	})
	bar.finish()
	if err != nil {
		return err
	}
	if len(rep.Kernels) == 0 {
		reportSkipped(stderr, rep.Skipped)
		return fmt.Errorf("no kernel could be minimized")
	}
	if m := c.String("manifest"); m != "" {
		if err := writeManifest(c, m, objs, rep); err != nil {
			return err
		}
	}
	if err := out.write(objs.info(), kernelsOf(rep)); err != nil {
		return err
	}
	summary(stderr, out.path, rep, c.Bool("verbose"))
	if len(rep.Unresolved) > 0 || len(rep.Skipped) > 0 || objs.bad > 0 {
		return errFindings
	}
	return nil
}

func reportSkipped(w io.Writer, skipped []corpus.Skipped) {
	for _, s := range skipped {
		fmt.Fprintf(w, "btfgen: skipped: %s\n", s)
	}
}
