// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

func runCorpusPush(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("push needs FILE and REGISTRY/NAME:TAG")
	}
	cfg := store.PushConfig{
		Path: c.Args().Get(0), Reference: c.Args().Get(1), Tool: "btfgen " + buildVersion(),
		Jobs: c.Int("jobs"), DryRun: c.Bool("dry-run"), WithoutBTF: c.Bool("without-btf"),
		Waiting: func(path string) { waiting(c, path) },
	}
	if err := checkShared(c, cfg.Path); err != nil {
		return err
	}
	if err := artifact.CheckReference(cfg.Reference, false); err != nil {
		return usageError{err}
	}
	created := time.Now()
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return usagef("SOURCE_DATE_EPOCH=%s: want seconds since 1970", text)
		}
		created = time.Unix(seconds, 0)
	}
	cfg.Created = created.UTC().Format(time.RFC3339)
	var err error
	if cfg.Cache, err = cacheFolder("registry"); err != nil {
		return err
	}
	p := newProgress(c)
	cfg.Client = p.client(c)
	p.doing("splitting the file")
	res, err := store.Push(c.Context, cfg)
	p.finish()
	if err != nil {
		return registryError(err)
	}
	reportOwnBTF(c, res.OwnBTF.Left, res.OwnBTF.Unknown)
	n, _ := store.Count(res.Layers, store.LayerThere)
	switch {
	case c.Bool("json"):
	case cfg.DryRun:
		if err := listLayers(c, res.Layers); err != nil {
			return err
		}
		infof(c, "%s: %s to push, %d there already", cfg.Reference, words.Plural(len(res.Layers)-n, "layer"), n)
	case res.There:
		infof(c, "%s: nothing to push, there already; digest %s", cfg.Reference, res.Digest)
	default:
		infof(c, "%s: %s pushed (%s uploaded), %d there already; digest %s", cfg.Reference, words.Plural(len(res.Layers)-n, "layer"),
			words.Bytes(res.Moved), n, res.Digest)
	}
	return document(c, struct {
		Reference string `json:"reference"`
		DryRun    bool   `json:"dry_run"`
		*store.Pushed
		allFindings
	}{cfg.Reference, cfg.DryRun, res, findingsOf(c)})
}

// checkShared returns an error if the name of a file is not one of those that push and pull of the group move: .btfc for corpus, .btfa for archive.
func checkShared(c *cli.Context, path string) error {
	group, _, _ := strings.Cut(found(c).command, " ")
	suffixes := map[string]string{"corpus": ".btfc", "archive": bundle.NativeSuffix}
	want, ext := suffixes[group], filepath.Ext(path)
	if ext == want {
		return nil
	}
	for other, suffix := range suffixes {
		if ext == suffix {
			return usagef("%s: 'btfgen %s %s' is for %s files", path, other, c.Command.Name, suffix)
		}
	}
	return usagef("%s: want a name that ends in %s", path, want)
}

// registryError returns an error of push or pull. One about the reference is wrong usage.
func registryError(err error) error {
	var e *artifact.Error
	if errors.As(err, &e) && e.Kind == artifact.Usage {
		return usageError{err}
	}
	return err
}

// client returns a client whose progress is shown.
func (p *progress) client(c *cli.Context) artifact.Client {
	return artifact.Client{
		PlainHTTP: c.Bool("plain-http"),
		Progress:  func(done, size int64) { p.transfer(store.FetchProgress{Bytes: done, Size: size}) },
		Waiting:   func(registry string) { infof(c, "btfgen: %s: waiting for the registry", registry) },
	}
}

// listLayers prints a table of layers.
func listLayers(c *cli.Context, layers []store.Layer) error {
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', 0)
	escape.Fprintf(tw, "SERIES\tKERNELS\tNEWEST\tSIZE\tSTATE\n")
	for _, l := range layers {
		series, newest := l.Series, l.Newest
		if series == "" {
			series = "(archive)"
		}
		if newest == "" {
			newest = "-"
		}
		escape.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\n", series, l.Kernels, newest, words.Bytes(l.Bytes), string(l.State))
	}
	return tw.Flush()
}
