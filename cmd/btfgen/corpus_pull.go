// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/text/words"
)

func runCorpusPull(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("pull needs REGISTRY/NAME:TAG")
	}
	cfg := store.PullConfig{
		Path: c.String("output"), Reference: c.Args().First(), Series: c.Args().Tail(),
		Jobs: c.Int("jobs"), DryRun: c.Bool("dry-run"),
		Waiting: func(path string) { waiting(c, path) },
	}
	switch {
	case cfg.Path == "" && !cfg.DryRun:
		return usagef("pull needs -o OUT")
	case cfg.Path != "":
		if err := checkShared(c, cfg.Path); err != nil {
			return err
		}
	}
	if err := artifact.CheckReference(cfg.Reference, true); err != nil {
		return usageError{err}
	}
	for _, name := range cfg.Series {
		if _, err := store.ParseSeries(name); err != nil {
			return usageError{err}
		}
	}
	if !cfg.DryRun {
		var err error
		if cfg.Cache, err = cacheFolder("registry"); err != nil {
			return err
		}
	}
	cfg.Before = func(res *store.Pulled) {
		if n, bytes := res.Missing(); n > 0 && !cfg.DryRun {
			infof(c, "%s: %s to download (%s), %d there already",
				cfg.Reference, words.Plural(n, "layer"), words.Bytes(bytes), len(res.Layers)-n)
		}
	}
	limitGrowth(packMemory*min(cfg.Jobs, runtime.GOMAXPROCS(0)), packGrowth)
	p := newProgress(c)
	cfg.Client = p.client(c)
	res, err := store.Pull(c.Context, cfg)
	p.finish()
	if err != nil {
		return registryError(err)
	}
	reportSkipped(c, res.Skipped)
	n, bytes := res.Missing()
	there := len(res.Layers) - n
	switch {
	case c.Bool("json"):
	case cfg.DryRun:
		if err := listLayers(c, res.Layers); err != nil {
			return err
		}
		infof(c, "%s: %s to download (%s), %d there already",
			cfg.Reference, words.Plural(n, "layer"), words.Bytes(bytes), there)
	case n == 0:
		infof(c, "%s: nothing to download, %s there already; %s in %s", cfg.Path, words.Plural(there, "layer"),
			words.Plural(res.Kernels, "kernel"), words.Bytes(res.Size))
	default:
		infof(c, "%s: %s downloaded (%s), %d there already: %d added, %d replaced, %d kept; now %s in %s",
			cfg.Path, words.Plural(n, "layer"), words.Bytes(res.Moved), there,
			res.Added, res.Replaced, res.Kept, words.Plural(res.Kernels, "kernel"), words.Bytes(res.Size))
	}
	return document(c, struct {
		Reference string `json:"reference"`
		Output    string `json:"output"`
		DryRun    bool   `json:"dry_run"`
		*store.Pulled
		allFindings
	}{cfg.Reference, cfg.Path, cfg.DryRun, res, findingsOf(c)})
}

// cacheFolder returns a folder in the user's cache, which it creates.
func cacheFolder(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for downloads: %w", err)
	}
	dir := filepath.Join(cache, "btfgen", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("no folder for downloads: %s: %w", dir, skip.Cause(err))
	}
	return dir, nil
}
