// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/words"
)

// packMemory is the memory of a worker that encodes a .btfc file, as a multiple of perWorker.
const packMemory = 2

func runCorpusImport(c *cli.Context) error {
	out := c.String("output")
	if out == "" || out == "-" {
		return usagef("import needs -o OUT, a name that ends in .btfc")
	}
	if filepath.Ext(out) != ".btfc" {
		return valuef("output", out, "want a name that ends in .btfc")
	}
	if err := refuseSource(c, out); err != nil {
		return err
	}
	if err := output.CheckFile(out); err != nil {
		return err
	}
	unlock, err := hold(c, out, false)
	if err != nil {
		return err
	}
	defer unlock()
	dwarf := pahole.New(filepath.Dir(out), c.Int("jobs"))
	done, err := store.Earlier(dwarf, out)
	if err != nil {
		return err
	}
	defer done()
	corp, err := openCorpus(c, corpus.Options{Extras: true, DWARF: dwarf, XZ: decompress.NewXZProgram(c.Context)})
	if err != nil {
		return err
	}
	cfg, stop := walkConfig(c, corp)
	limitGrowth(packMemory*min(cfg.Jobs, runtime.GOMAXPROCS(0)), packGrowth)
	res, err := store.Pack(c.Context, cfg, out, nil)
	stop()
	if err != nil {
		if res != nil { // the reasons for an empty file
			reportSkipped(c, res.Skipped)
		}
		return err
	}
	return reportPacked(c, out, res)
}

// refuseSource returns an error if an output is also a source.
func refuseSource(c *cli.Context, out string) error {
	if inputsOf(c.Args().Slice()...)[output.Real(out)] {
		return usagef("%s is input and output", out)
	}
	return nil
}

// storedJSON is the document of commands that write kernels to a directory.
type storedJSON struct {
	Output string `json:"output"`
	*store.Result
	allFindings
}

// sayContents prints what is stored with kernels.
func sayContents(c *cli.Context, path string, has *store.Contents) {
	if has.WithConfig+has.WithSymbols > 0 {
		infof(c, "%s: configuration of %s, symbols of %d", path, words.Plural(has.WithConfig, "kernel"), has.WithSymbols)
	}
	for _, maker := range slices.Sorted(maps.Keys(has.Made)) {
		infof(c, "%s: BTF of %s made from DWARF by %s", path, words.Plural(has.Made[maker], "kernel"), maker)
	}
}

// reportPacked prints the summary of a .btfc file.
func reportPacked(c *cli.Context, path string, res *store.Packed) error {
	reportSkipped(c, res.Skipped)
	n := res.Added + res.Kept
	infof(c, "%s: %s, %d with modules: %d added (%s), %d there already, %d left out; now %s in %s",
		path, words.Plural(n, "kernel"), res.WithModules,
		res.Added, words.Bytes(res.Bytes), res.Kept, len(res.Skipped),
		words.Plural(res.Kernels, "kernel"), words.Bytes(res.Size))
	if res.Lacking > 0 {
		infof(c, "%s: %s without the configuration or symbols of the source; to replace kernels, see --help",
			path, words.Plural(res.Lacking, "existing kernel"))
	}
	sayContents(c, path, &res.Contents)
	return document(c, struct {
		Output  string `json:"output"`
		Kernels int    `json:"kernels"`
		*store.Packed
		allFindings
	}{path, n, res, findingsOf(c)})
}

// reportStored prints the summary of a directory.
func reportStored(c *cli.Context, dir string, res *store.Result) error {
	reportSkipped(c, res.Skipped)
	infof(c, "%s: %s, %d with modules: %s written (%s), %d there already, %d left out", dir,
		words.Plural(res.Kernels, "kernel"), res.WithModules, words.Plural(res.Written, "file"), words.Bytes(res.Bytes),
		res.Kept, len(res.Skipped))
	if res.Kernels == 0 {
		return fmt.Errorf("%s: no kernel could be written", dir)
	}
	sayContents(c, dir, &res.Contents)
	return document(c, storedJSON{dir, res, findingsOf(c)})
}
