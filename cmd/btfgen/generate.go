// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/relo"
)

func minimizeOptions(c *cli.Context) (o minimize.Options, err error) {
	if o.Keep, err = core.ParseKeep(c.StringSlice("keep")...); err != nil {
		return o, usagef("--keep %s", err)
	}
	if c.String("padding") == "explicit" {
		o.Padding = minimize.PadExplicit
	}
	return o, nil
}

func runGenerate(c *cli.Context) error {
	out, err := parseOutput(c)
	if err != nil {
		return err
	}
	manifest, reuse := c.String("manifest"), c.String("reuse")
	unlock, err := holdOutput(c, &out, reuse, manifestOf(reuse)) // a second run waits before its work, not after it
	if err != nil {
		return err
	}
	defer unlock()
	if output.Real(manifest) != output.Real(out.Path) { // else it is refused
		unlock, err := holdInput(c, manifest, reuse, manifestOf(reuse))
		if err != nil {
			return err
		}
		defer unlock()
	}
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
		if err := writeManifest(c, manifest, cfg, objs, rep); err != nil {
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
	written, err := writeKernels(c, &out, info, rep.Archive())
	if err != nil {
		return err
	}
	return reportGenerated(c, cfg, objs, rep, out.Path, written, start)
}

// reportGenerated prints the findings and the summary of a run.
func reportGenerated(c *cli.Context, cfg *generate.Config, objs *objects[*core.Object], rep *generate.Report, out string, written int64, start time.Time) error {
	f, stderr, verbose := found(c), c.App.ErrWriter, c.Bool("verbose")
	reportSkipped(c, rep.Skipped)
	if err := reportUnresolved(c, cfg, objs, rep); err != nil {
		return err
	}
	reportKept(c, rep)
	reportExternals(c, objs)
	s := generate.Summarize(out, written, rep, time.Since(start))
	if !f.silent && !f.quiet {
		if !f.on[poisoned] {
			s.PrintPoisoned(stderr, cfg.Objects, verbose)
		}
		rep.PrintUnmatched(stderr, verbose)
	}
	f.printSkipped(stderr)
	infof(c, "%s", s)
	return document(c, struct {
		*generate.Summary
		allFindings
	}{s, findingsOf(c)})
}

// generateConfig reads the options, objects and sources.
func generateConfig(c *cli.Context, out string) (*generate.Config, *objects[*core.Object], error) {
	manifest := c.String("manifest")
	cfg := &generate.Config{Jobs: c.Int("jobs"), Hash: manifest != ""}
	var err error
	if cfg.Options, err = minimizeOptions(c); err != nil {
		return nil, nil, err
	}
	limitMemory(cfg.Jobs)
	if text := c.String("shard"); text != "" {
		if cfg.Shard, err = generate.ParseShard(text); err != nil {
			return nil, nil, usagef("--shard %w", err)
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
	if err := cmp.Or(in.refuse(out, manifest), in.refuseTree(out, cfg.Corpus)); err != nil {
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

func writeManifest(c *cli.Context, path string, cfg *generate.Config, objs *objects[*core.Object], rep *generate.Report) error {
	list := []generate.ManifestObject{}
	for i, o := range objs.list {
		list = append(list, generate.ManifestObject{Name: o.Name(), SHA256: sha256.Sum256(objs.data[i])})
	}
	b, err := generate.NewManifest(tool(), cfg, list, rep).Encode()
	if err != nil {
		return err
	}
	return writeOut(c, path, b)
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

// reportExternals reports what the objects take from the running kernel's own BTF, and names on which loaders disagree.
func reportExternals(c *cli.Context, objs *objects[*core.Object]) {
	for _, o := range objs.list {
		for _, x := range check.Externals(o) {
			text := strings.Join(x.Subjects, ", ")
			if few := 3; len(x.Subjects) > few+1 && !c.Bool("verbose") {
				text = fmt.Sprintf("%s and %d more", strings.Join(x.Subjects[:few], ", "), len(x.Subjects)-few)
			}
			reportFinding(c, finding{Class: noted, Object: o.Name(), Code: string(x.Code), Message: text + ": " + report.Reason(&x.Finding)})
		}
	}
}

// reportUnresolved reports the relocations that loaders refuse and, with --verbose or --fail-on reached, the poisoned ones
// that the verifier reaches. Poisoned ones are printed here only if they count; the summary has the others.
func reportUnresolved(c *cli.Context, cfg *generate.Config, objs *objects[*core.Object], rep *generate.Report) error {
	if f := found(c); f.verbose || f.on[reached] {
		programs, err := poisonedPrograms(c, objs, rep)
		if err != nil {
			return err
		}
		if err := generate.Reach(c.Context, cfg, programs, rep); err != nil {
			return err
		}
	}
	for i := range rep.Unresolved {
		u := &rep.Unresolved[i]
		report := func(cl class, kernels []string) {
			x := finding{Class: cl, Message: u.Relo, Object: u.Object}
			switch len(kernels) {
			case 0:
				return
			case 1:
				x.Kernel = kernels[0]
			default:
				x.Message += " on " + words.Kernels(kernels, len(rep.Kernels), false)
			}
			if u.Result == relo.Poisoned && !found(c).counts(&x) {
				record(c, x)
			} else {
				reportFinding(c, x)
			}
		}
		if u.Result != relo.Poisoned {
			report(class(u.Result.String()), u.Kernels)
			continue
		}
		report(reached, u.Reached)
		report(poisoned, slices.DeleteFunc(slices.Clone(u.Kernels), func(k string) bool { return slices.Contains(u.Reached, k) }))
	}
	return nil
}

// poisonedPrograms parses the programs of the objects with poisoned relocations.
func poisonedPrograms(c *cli.Context, objs *objects[*core.Object], rep *generate.Report) (programs []*check.Object, err error) {
	for i, o := range objs.list {
		if !slices.ContainsFunc(rep.Unresolved, func(u generate.Unresolved) bool { return u.Object == o.Name() && u.Result == relo.Poisoned }) {
			continue
		}
		p, err := check.Parse(c.Context, o.Name(), objs.data[i])
		switch {
		case c.Context.Err() != nil:
			return nil, c.Context.Err()
		case err != nil:
			why := strings.TrimPrefix(err.Error(), o.Name()+": ")
			reportFinding(c, finding{Class: reached, Object: o.Name(), Message: "cannot determine whether the verifier reaches poisoned relocations: " + why})
		default:
			programs = append(programs, p.ForMachines(o.Machines()...))
		}
	}
	return programs, nil
}
