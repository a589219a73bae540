// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

func runGenerate(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	manifest := c.String("manifest")
	unlock, err := holdOutput(c, &out)
	if err != nil {
		return err
	}
	defer unlock()
	cfg, objs, err := generateConfig(c, out.Path)
	if err != nil {
		return err
	}
	cfg.Keyed = out.Format == bundle.Native
	if err := out.Check(c.Context); err != nil {
		return err
	}
	if manifest != "" {
		if err := output.CheckFile(manifest); err != nil {
			return err
		}
	}
	objs.announce(c)
	walk, stop := walkConfig(c, cfg.Corpus)
	cfg.Done = walk.Progress
	start := time.Now()
	rep, err := generate.Run(c.Context, *cfg)
	stop()
	if c.Context.Err() != nil {
		escape.Fprintf(c.App.ErrWriter, "btfgen: nothing written\n")
	}
	if err != nil {
		return err
	}
	if len(rep.Kernels) == 0 && cfg.Shard.N <= 1 {
		reportSkipped(c, rep.Skipped)
		reportHidden(c)
		return fmt.Errorf("no kernel could be minimized")
	}
	if manifest != "" {
		data, err := generate.NewManifest(tool(), cfg, rep).Encode()
		if err == nil {
			err = writeOut(c, manifest, data)
		}
		if err != nil {
			return err
		}
	}
	var info archive.Info
	if out.HasInfo() { // hashing all objects takes time
		info = archive.Info{Tool: tool(), Relocations: rep.Relocations(objs.list, cfg.Options.Keep), Shard: cfg.Shard}
		for i, obj := range objs.list {
			info.Objects = append(info.Objects, archive.NewObject(obj.Name(), objs.data[i], obj.Machines()...))
		}
	}
	var selects func(kernel.Key) bool
	if selecting(c) {
		selects = cfg.Corpus.Selects
	}
	written, err := writeKernels(c, &out, info, rep.Archive(), selects)
	if err != nil {
		return err
	}
	return reportGenerated(c, objs, rep, out.Path, written, start)
}

// reportGenerated prints the findings and the summary of a run.
func reportGenerated(
	c *cli.Context, objs *objects[*core.Object], rep *generate.Report, out string, written int64, start time.Time,
) error {
	f, stderr, verbose := found(c), c.App.ErrWriter, c.Bool("verbose")
	reportSkipped(c, rep.Skipped)
	reportUnresolved(c, rep)
	reportKept(c, rep)
	reportExternals(c, objs)
	reportMachines(c, objs, rep)
	s := generate.Summarize(out, written, rep, time.Since(start))
	if !f.silent && !f.quiet {
		if !f.on.classes[poisoned] {
			s.PrintPoisoned(stderr, verbose)
		}
		rep.PrintUnmatched(stderr, verbose)
	}
	infof(c, "%s", s)
	return document(c, struct {
		*generate.Summary
		allFindings
	}{s, findingsOf(c)})
}

// keepOption reads --keep.
func keepOption(c *cli.Context) (*core.KeepPatterns, error) {
	keep, err := core.ParseKeep(c.StringSlice("keep")...)
	var e *core.KeepError
	if errors.As(err, &e) {
		return nil, valuef("keep", e.Pattern, "%w", e.Err)
	}
	return keep, err
}

// generateConfig reads the options, objects and sources.
func generateConfig(c *cli.Context, out string) (*generate.Config, *objects[*core.Object], error) {
	manifest := c.String("manifest")
	cfg := &generate.Config{Jobs: c.Int("jobs"), Hash: manifest != ""}
	var err error
	if cfg.Options.Keep, err = keepOption(c); err != nil {
		return nil, nil, err
	}
	limitMemory(cfg.Jobs)
	if text := c.String("shard"); text != "" {
		if cfg.Shard, err = generate.ParseShard(text, os.Getenv); err != nil {
			return nil, nil, valuef("shard", text, "%w", err)
		}
	}
	objs, err := readKept(c, c.Args().Slice(), cfg.Options.Keep, false)
	if err != nil {
		return nil, nil, err
	}
	cfg.Objects = objs.list
	if cfg.Corpus, err = openCorpus(c, corpus.Options{Map: true}); err != nil {
		return nil, nil, err
	}
	in := inputsOf(append(c.StringSlice("btf"), objs.paths...)...)
	in.addCorpus(cfg.Corpus, out, manifest)
	if err := in.refuse(out, manifest); err != nil {
		return nil, nil, err
	}
	return cfg, objs, readReused(c, cfg)
}

// readReused reads the archive of --reuse. If it cannot be used, all kernels are minimized.
func readReused(c *cli.Context, cfg *generate.Config) error {
	path := c.String("reuse")
	if path == "" {
		return nil
	}
	var same string
	if distinct(buildVersion()) {
		same = tool()
	}
	old, why, err := generate.ReadOld(c.Context, path, manifestOf(path), same, cfg)
	if why != "" {
		infof(c, "btfgen: %s is not reused: %s", path, why)
	}
	cfg.Old = old
	return err
}

// manifestOf returns the path of an archive's manifest.
func manifestOf(archive string) string {
	return strings.TrimSuffix(archive, bundle.NativeSuffix) + ".json"
}

// reportKept reports patterns of --keep that match no type.
func reportKept(c *cli.Context, rep *generate.Report) {
	for _, p := range rep.NeverMatched() {
		reportf(c, unmatched, "--keep %s: no kernel has such a type", p)
	}
}

// reportExternals reports what the objects take from the running kernel's own BTF. Several objects share a line, unless these findings count or
// --verbose is set.
func reportExternals(c *cli.Context, objs *objects[*core.Object]) {
	var all []finding
	from := make(map[string]bool)
	for _, o := range objs.list {
		for _, x := range rule.Externals(o) {
			text := strings.Join(x.Subjects, ", ")
			if few := 3; len(x.Subjects) > few+1 && !c.Bool("verbose") {
				text = fmt.Sprintf("%s and %d more", strings.Join(x.Subjects[:few], ", "), len(x.Subjects)-few)
			}
			text += ": " + report.Reason(&x.Finding)
			all = append(all, finding{Class: noted, Object: o.Name(), Code: string(x.Code), Message: text})
			from[o.Name()] = true
		}
	}
	f := found(c)
	if len(from) < 2 || f.verbose || f.on.classes[noted] {
		for _, x := range all {
			reportFinding(c, x)
		}
		return
	}
	for _, x := range all {
		record(c, x)
	}
	if !f.quiet {
		infof(c, "note: %s use the running kernel's own BTF, which no archive replaces (-v shows what)",
			words.Plural(len(from), "object"))
	}
}

// reportMachines reports machines with fewer objects than another one, if kernels for both were minimized.
func reportMachines(c *cli.Context, objs *objects[*core.Object], rep *generate.Report) {
	kernels, most := make(map[string]int), 0
	for _, k := range rep.Kernels {
		if kernels[k.Machine]++; k.Machine != "" {
			most = max(most, len(core.OnMachine(k.Machine, objs.list...)))
		}
	}
	for _, m := range slices.Sorted(maps.Keys(kernels)) {
		on := core.OnMachine(m, objs.list...)
		if m == "" || len(on) == most {
			continue
		}
		var names []string
		for _, o := range on {
			names = append(names, o.Name())
		}
		reportf(c, warned, "%s has fewer objects than others: %d of %d; the BTF of %s is only for %s", m, len(on), most,
			words.Plural(kernels[m], "kernel"), words.Names(names, c.Bool("verbose")))
	}
}

// disagreement says why a relocation is ambiguous that modules define differently.
func disagreement(is *generate.Issue) string {
	if is.Modules == "" {
		return ""
	}
	return fmt.Sprintf(": modules %s define the type differently; --modules chooses",
		strings.ReplaceAll(is.Modules, ",", " and "))
}

// reportUnresolved reports the relocations that loaders refuse. Poisoned ones are printed here only if they count; the summary
// has the others.
func reportUnresolved(c *cli.Context, rep *generate.Report) {
	for _, u := range rep.Unresolved {
		x := finding{Class: class(u.Result.String()), Message: u.Relo, Object: u.Object}
		if len(u.Kernels) == 1 {
			x.Kernel = u.Kernels[0]
		} else {
			x.Message += " on " + words.Kernels(u.Kernels, len(rep.Kernels), false)
		}
		x.Message += disagreement(&u.Issue)
		if u.Result == relo.Poisoned && !found(c).counts(&x) {
			record(c, x)
		} else {
			reportFinding(c, x)
		}
	}
}
