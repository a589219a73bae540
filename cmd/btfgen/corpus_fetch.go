// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func runCorpusFetch(c *cli.Context) error {
	if c.NArg() == 0 {
		return listCatalogue(c)
	}
	cfg, err := fetchConfig(c, c.Args().Slice())
	if err != nil {
		return err
	}
	cfg.Path, cfg.Keep, cfg.DryRun = c.String("output"), c.String("packages"), c.Bool("dry-run")
	cfg.Newest, cfg.Retry = c.Int("newest"), c.Bool("retry")
	switch {
	case cfg.Path != "" && filepath.Ext(cfg.Path) != ".btfc":
		return usagef("-o %s: want a name that ends in .btfc", cfg.Path)
	case cfg.Keep != "" && (cfg.Path != "" || cfg.Retry || c.IsSet("prune")):
		return usagef("--packages does not go with -o, --retry and --prune")
	case cfg.Path == "" && cfg.Keep == "" && !cfg.DryRun:
		return usagef("fetch needs -o OUT, a name that ends in .btfc, or --packages DIR")
	}
	if text := c.String("limit"); text != "" {
		if cfg.Limit, err = store.ParseSize(text); err != nil {
			return usagef("--limit %w", err)
		}
	}
	if err := selection(c, &cfg.Options); err != nil {
		return err
	}
	if cfg.Prune, err = selectors(c, "prune"); err != nil {
		return err
	}
	if cfg.Keep != "" && !cfg.DryRun {
		if err := os.MkdirAll(cfg.Keep, 0o777); err != nil {
			return err
		}
	}
	for _, path := range []string{cfg.Cache, cfg.Path, cfg.Keep} {
		if path == "" || path == cfg.Keep && cfg.Path != "" {
			continue
		}
		unlock, err := holdNow(c, path, path != cfg.Path)
		if err != nil {
			return err
		}
		defer unlock()
	}
	limitMemory(packMemory * cfg.Jobs)
	res, err := runFetch(c, cfg)
	if res == nil {
		return err
	}
	return errors.Join(reportFetched(c, cfg, res), err)
}

// fetchConfig returns a configuration for the series with these names, with the catalogue and the cache that are used.
func fetchConfig(c *cli.Context, names []string) (*store.FetchConfig, error) {
	catalogue, err := readCatalogue(c)
	if err != nil {
		return nil, err
	}
	cfg := &store.FetchConfig{Jobs: c.Int("jobs")}
	if cfg.Series, err = catalogue.Series(names); err != nil {
		return nil, usageError{err}
	}
	if cfg.Mirrors, err = mirrors(c); err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cfg.Cache = filepath.Join(cache, "btfgen", "fetch")
	return cfg, os.MkdirAll(cfg.Cache, 0o700)
}

// runFetch downloads, and shows the progress.
func runFetch(c *cli.Context, cfg *store.FetchConfig) (*store.FetchResult, error) {
	bar := newProgress(c)
	cfg.Progress = bar.fetching
	defer bar.finish()
	return store.Fetch(c.Context, *cfg)
}

// fetchOne downloads the newest kernel with a key that begins with name, ID/VERSION_ID[/ARCH[/RELEASE]], for an architecture, unless an
// earlier run has. RELEASE is a pattern. fetchOne returns the files of its packages, for which there is bootNaming.
func fetchOne(c *cli.Context, name, arch string) ([]string, error) {
	parts := strings.SplitN(name, "/", 4)
	series := strings.Join(parts[:min(len(parts), 3)], "/")
	if len(parts) == 2 {
		series += "/" + arch
	}
	cfg, err := fetchConfig(c, []string{series})
	if err != nil {
		return nil, usagef("--boot %s: no such file, and %w", name, err)
	}
	if key := cfg.Series[0].Key; key.Arch != arch {
		return nil, usagef("--boot %s: btfgen is for %s (--btfgen FILE names another btfgen)", name, arch)
	}
	if len(parts) == 4 {
		s, err := corpus.ParseSelector("release=" + parts[3])
		if err != nil {
			return nil, usagef("--boot %s: %w", name, err)
		}
		cfg.Options.Select = []corpus.Selector{s}
	}
	unlock, err := hold(c, cfg.Cache, true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	cfg.Keep, cfg.Newest, cfg.One = filepath.Join(cfg.Cache, "boot"), 1, true
	res, err := runFetch(c, cfg)
	switch {
	case err != nil:
		return nil, err
	case len(res.Kept) > 0:
		return res.Kept, nil
	case len(res.Kernels) > 0:
		return nil, fmt.Errorf("%s: %s", res.Kernels[0].Package, res.Kernels[0].Reason)
	}
	return nil, fmt.Errorf("%s: no kernel matches", name)
}

// bootNaming gives the packages of fetchOne their keys.
const bootNaming = "btfgen/fetch/boot/{id}/{version}/{arch}/*={id}/{version}/{arch}"

// readCatalogue returns the embedded catalogue with that of --catalogue.
func readCatalogue(c *cli.Context) (*fetch.Catalogue, error) {
	catalogue, err := fetch.Default()
	path := c.String("catalogue")
	if err != nil || path == "" {
		return catalogue, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	more, err := fetch.Parse(data)
	if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	catalogue.Add(more)
	return catalogue, nil
}

// listCatalogue prints what can be fetched.
func listCatalogue(c *cli.Context) error {
	catalogue, err := readCatalogue(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return usagef("fetch needs SERIES, such as debian/12")
	}
	for _, name := range catalogue.Names() {
		escape.Fprintf(c.App.Writer, "%s\n", name)
	}
	return nil
}

// mirrors returns the values of --mirror.
func mirrors(c *cli.Context) (map[string]string, error) {
	all := make(map[string]string)
	for _, text := range c.StringSlice("mirror") {
		from, to, ok := strings.Cut(text, "=")
		if !ok || from == "" || to == "" {
			return nil, usagef("--mirror %q: want URL=URL", text)
		}
		all[from] = to
	}
	return all, nil
}

// holdNow locks an output, a file or folder, or fails if another process has locked it.
func holdNow(c *cli.Context, path string, dir bool) (unlock func(), err error) {
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	unlock, err = output.Lock(ctx, path, dir, cancel)
	if err != nil && ctx.Err() != nil && c.Context.Err() == nil {
		err = errors.New(path + ": another process is writing it")
	}
	return unlock, err
}

// fetching shows how far downloads are.
func (p *progress) fetching(s store.FetchProgress) {
	if now := time.Since(p.start); s.DoneBytes > 0 {
		rate := float64(s.DoneBytes) / now.Seconds()
		left := time.Duration(float64(s.AllBytes-s.DoneBytes)/rate) * time.Second
		p.print(now, "%s: %d of %d packages, %s of %s, %s/s, %s left", s.Current, s.Done, s.All, words.Bytes(s.DoneBytes), words.Bytes(s.AllBytes),
			words.Bytes(int64(rate)), left)
	}
}

// reportFetched prints the findings and the tables of a run.
func reportFetched(c *cli.Context, cfg *store.FetchConfig, res *store.FetchResult) error {
	for _, series := range slices.Sorted(maps.Keys(res.Unreadable)) {
		reportFinding(c, finding{Class: damaged, Kernel: series, Message: res.Unreadable[series]})
	}
	for _, k := range res.Kernels {
		if k.State == store.Failed {
			reportFinding(c, finding{Class: damaged, Kernel: k.Kernel, Message: k.Package + " " + k.Version + ": " + k.Reason})
		}
	}
	reportSkipped(c, res.Skipped)
	reportSelection(c, res.Selection)
	if c.Bool("json") {
		return document(c, struct {
			Output string `json:"output"`
			DryRun bool   `json:"dry_run"`
			*store.FetchResult
			allFindings
		}{cmp.Or(cfg.Path, cfg.Keep), cfg.DryRun, res, findingsOf(c)})
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', 0)
	wanted := int64(0)
	if cfg.DryRun {
		escape.Fprintf(tw, "KERNEL\tPACKAGE\tVERSION\tSIZE\tBTF\n")
		for _, k := range res.Kernels {
			how := "in the image"
			if k.Debug {
				how = "by pahole"
			}
			wanted += k.Bytes
			escape.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", k.Kernel, k.Package, k.Version, words.Bytes(k.Bytes), how)
		}
	} else {
		escape.Fprintf(tw, "SERIES\tNEW\tTHERE ALREADY\tLEFT FOR LATER\tNO LONGER OFFERED\tUNUSABLE\tFAILED\n")
		for _, s := range res.Series {
			escape.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Series, s.New, s.There, s.Wanted, s.Withdrawn, s.Unusable, s.Failed)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	now := ""
	if cfg.Path != "" {
		now = fmt.Sprintf(", %d pruned; now %s", res.Pruned, words.Bytes(res.Size))
	}
	if cfg.DryRun {
		there := 0
		for _, s := range res.Series {
			there += s.There
		}
		infof(c, "%s to download (%s), %d there already", words.Plural(len(res.Kernels), "kernel"), words.Bytes(wanted), there)
		return nil
	}
	infof(c, "%s: %s downloaded (%s in %.0f s)%s", cmp.Or(cfg.Path, cfg.Keep), words.Plural(res.Downloads, "package"), words.Bytes(res.Bytes),
		res.Seconds.Download, now)
	return nil
}
