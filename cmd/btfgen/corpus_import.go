package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/store"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func corpusImportCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "make a tree of a corpus that is fast to read again",
		ArgsUsage: "SOURCE...",
		Description: "SOURCE is a file or a tree. DIR gets ID/VERSION_ID/ARCH/RELEASE.btf.zst for each kernel and\n" +
			"modules/ID/VERSION_ID/ARCH/RELEASE.modules.tar.zst for its modules, and is a SOURCE in turn. Files that are\n" +
			"there already with the same content are left alone. The exit status is 3 if something was skipped.",
		Flags: corpusCommandFlags(
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write into the directory `DIR` (required)", TakesFile: true},
			&cli.StringFlag{Name: "as", Usage: "the only kernel of SOURCE is `KEY`: ID/VERSION_ID/ARCH/RELEASE, with - for no version"},
			&cli.BoolFlag{Name: "json", Usage: "write the summary as JSON to standard output"},
		),
		Action: runCorpusImport,
	}
}

func runCorpusImport(c *cli.Context) error {
	dir := c.String("output")
	if dir == "" || dir == "-" {
		return usagef("import needs -o DIR")
	}
	as, err := asKey(c.String("as"))
	if err != nil {
		return err
	}
	opts, err := corpusOptions(c)
	if err != nil {
		return err
	}
	if err := distinctDirs(dir, c.Args().Slice()); err != nil {
		return err
	}
	corp, err := openSources(c, opts, false)
	if err != nil {
		return err
	}
	cfg, stop := sweepOf(c, corp)
	res, err := store.Import(c.Context, cfg, dir, as)
	stop()
	if errors.Is(err, store.ErrSeveral) {
		return usagef("--as %w", err)
	}
	if err != nil {
		return err
	}
	return reportStored(c, dir, res)
}

// asKey reads the value of --as.
func asKey(text string) (k kernel.Key, err error) {
	if text == "" {
		return k, nil
	}
	if k, err = kernel.ParseKey(text); err != nil {
		return k, usagef("--as: %w", err)
	}
	if !k.Known() {
		return k, usagef("--as %s: only VERSION_ID may be missing", text)
	}
	return k, nil
}

// storedJSON is what --json writes. Fields are only ever added.
type storedJSON struct {
	Kernels     int             `json:"kernels"`
	WithModules int             `json:"with_modules"`
	Written     int             `json:"files_written"`
	Bytes       int64           `json:"bytes_written"`
	Kept        int             `json:"files_kept"`
	Skipped     []*corpus.Error `json:"skipped"`
}

// reportStored says what went into a directory.
func reportStored(c *cli.Context, dir string, res *store.Result) error {
	if c.Bool("json") {
		out := storedJSON{res.Kernels, res.WithModules, res.Written, res.Bytes, res.Kept, append([]*corpus.Error{}, res.Skipped...)}
		if err := writeJSON(c, out); err != nil {
			return err
		}
	} else {
		reportSkipped(c.App.ErrWriter, res.Skipped)
	}
	foreign.Fprintf(c.App.ErrWriter, "%s: %s, %d with modules: %s written (%s), %d there already, %d skipped\n", dir,
		logtext.Plural(res.Kernels, "kernel"), res.WithModules, logtext.Plural(res.Written, "file"), logtext.Bytes(res.Bytes), res.Kept, len(res.Skipped))
	if len(res.Skipped) > 0 {
		return errFindings
	}
	return nil
}
