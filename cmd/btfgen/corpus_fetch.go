// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus/fetch"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/limits"
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
	cfg.WithoutBTF = c.Bool("without-btf")
	cfg.Newest, cfg.Retry = c.Int("newest"), c.Bool("retry")
	if text := c.String("limit"); text != "" {
		if cfg.Limit, err = words.ParseBytes(text); err != nil {
			return valuef("limit", text, "%w", err)
		}
	}
	switch {
	case cfg.Path != "" && filepath.Ext(cfg.Path) != ".btfc":
		return valuef("output", cfg.Path, "want a name that ends in .btfc")
	case cfg.Keep != "" && (cfg.Path != "" || cfg.Retry || c.IsSet("prune") || c.IsSet("modules")):
		return optionf("packages", "does not go with -o, --retry, --prune and --modules")
	case cfg.Path == "" && cfg.Keep == "" && !cfg.DryRun:
		return usagef("fetch needs -o OUT, a name that ends in .btfc, or --packages DIR")
	}
	if err := readSelectors(c, &cfg.Options); err != nil {
		return err
	}
	if cfg.Options.Modules, err = chosenModules(c); err != nil {
		return err
	}
	cfg.EncodeModules = c.IsSet("modules")
	if cfg.Prune, err = selectors(c, "prune"); err != nil {
		return err
	}
	if cfg.Keep != "" && !cfg.DryRun {
		if err := os.MkdirAll(cfg.Keep, 0o777); err != nil {
			return err
		}
	}
	limitGrowth(packMemory*min(cfg.Jobs, runtime.GOMAXPROCS(0)), packGrowth)
	res, err := runFetch(c, cfg)
	var over *store.LimitError
	if errors.As(err, &over) {
		err = fmt.Errorf("%w: raise --limit, or take fewer with --newest, --select or --exclude", err)
	}
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
	cfg.Cache, err = cacheFolder("fetch")
	return cfg, err
}

// runFetch downloads, and shows the progress.
func runFetch(c *cli.Context, cfg *store.FetchConfig) (*store.FetchResult, error) {
	p := newProgress(c)
	cfg.Progress = p.transfer
	cfg.Waiting = func(path string) { waiting(c, path) }
	defer p.finish()
	return store.Fetch(c.Context, *cfg)
}

// fetchOne downloads the newest kernel with a key that begins with name, ID/VERSION_ID[/ARCH[/RELEASE]], for an architecture, unless an
// earlier run has. RELEASE is a pattern. Without it, kernels of later releases of Linux, such as backports, do not count. fetchOne returns the files of its packages, for which there is bootNaming.
func fetchOne(c *cli.Context, name, arch string) ([]string, error) {
	series, release := splitBootKey(name)
	if strings.Count(series, "/") == 1 {
		series += "/" + arch
	}
	cfg, err := fetchConfig(c, []string{series})
	if err != nil {
		return nil, valuef("boot", name, "no such file, and %w", err)
	}
	if key := cfg.Series[0].Key; key.Arch != arch {
		return nil, valuef("boot", name, "btfgen is for %s (--btfgen FILE names another btfgen)", arch)
	}
	if release != "" {
		s, err := selection.Parse("release=" + release)
		if err != nil {
			return nil, valuef("boot", name, "%w", err)
		}
		cfg.Options.Select = []selection.Selector{s}
	}
	cfg.Keep, cfg.Touch, cfg.Newest, cfg.Own = filepath.Join(cfg.Cache, "boot"), true, 1, release == ""
	res, err := runFetch(c, cfg)
	switch {
	case err != nil:
		return nil, err
	case len(res.Kept) > 0:
		if size := prunePackages(c.Context, cfg.Keep, cachedBytes, time.Now().Add(-cachedFor)); res.Downloads > 0 {
			infof(c, "btfgen: %s: packages stay for the next run, %s so far; the least recently used are removed above %d GB",
				cfg.Keep,
				words.Bytes(size), cachedBytes/1_000_000_000)
		}
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
	data, err := limits.ReadFile(path, limits.CatalogueBytes)
	if errors.Is(err, limits.ErrTooLarge) {
		return nil, usageError{err}
	} else if err != nil {
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
func mirrors(c *cli.Context) (all []fetch.Mirror, err error) {
	for _, text := range c.StringSlice("mirror") {
		from, to, ok := strings.Cut(text, "=")
		if !ok || from == "" || to == "" {
			return nil, valuef("mirror", text, "want URL=URL")
		}
		all = append(all, fetch.Mirror{From: from, To: to})
	}
	return all, nil
}

// reportFetched prints the findings and the summary of a run.
func reportFetched(c *cli.Context, cfg *store.FetchConfig, res *store.FetchResult) error {
	for _, series := range slices.Sorted(maps.Keys(res.Unreadable)) {
		reportFinding(c, finding{Class: damaged, Kernel: series, Message: res.Unreadable[series]})
	}
	for _, k := range res.Kernels {
		if k.State == store.Failed {
			text := k.Package + " " + k.Version + ": " + k.Reason
			reportFinding(c, finding{Class: damaged, Kernel: k.Kernel, Message: text})
		}
	}
	reportSkipped(c, res.Skipped)
	reportSelection(c, res.Selection)
	reportOwnBTF(c, res.OwnBTF, 0)
	if c.Bool("json") {
		return document(c, struct {
			Output string `json:"output"`
			DryRun bool   `json:"dry_run"`
			*store.FetchResult
			allFindings
		}{cmp.Or(cfg.Path, cfg.Keep), cfg.DryRun, res, findingsOf(c)})
	}
	if !cfg.DryRun {
		if res.Count(store.New) > 0 {
			reportModules(c, cfg.Options.Modules.NotFound())
		}
		now := ""
		if cfg.Path != "" {
			now = fmt.Sprintf(", %d no longer offered, %d pruned; now %s",
				res.Withdrawn, res.Pruned, words.Bytes(res.Size))
		}
		infof(c, "%s: %s (%s), %d there already, %d failed, %d unusable in an earlier run%s",
			cmp.Or(cfg.Path, cfg.Keep), words.Plural(res.Count(store.New), "new kernel"), words.Bytes(res.Bytes),
			res.There, res.Count(store.Failed), res.Unusable, now)
		if res.Downloads > 0 {
			infof(c, "%s: lists of packages stay for the next run", cfg.Cache)
		}
		if n := res.WithoutModules; n > 0 {
			infof(c, "%s: BTF of %s made from DWARF, and none of modules (--modules makes it)",
				cfg.Path, words.Plural(n, "kernel"))
		}
		return nil
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', 0)
	escape.Fprintf(tw, "KERNEL\tLINE\tPACKAGE\tVERSION\tSIZE\tBTF\n")
	wanted := int64(0)
	var lines []string
	count := make(map[string]int)
	for _, k := range res.Kernels {
		how := "in the image"
		if k.Debug {
			how = "by pahole"
		}
		wanted += k.Bytes
		if count[k.Line]++; count[k.Line] == 1 {
			lines = append(lines, k.Line)
		}
		escape.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", k.Kernel, k.Line, k.Package, k.Version, words.Bytes(k.Bytes), how)
	}
	of := ""
	for i, l := range lines {
		of += fmt.Sprintf("%s %d of Linux %s", []string{":", ","}[min(i, 1)], count[l], l)
	}
	infof(c, "%s to download (%s), %d there already%s",
		words.Plural(len(res.Kernels), "kernel"), words.Bytes(wanted), res.There, of)
	return tw.Flush()
}
