package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/verify"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "prove that minimized BTFs give the decisions of the kernels' own",
		ArgsUsage: "ARCHIVE OBJECT...",
		Description: "ARCHIVE is what generate wrote (.btfa, a tar or a directory) or a lone .btf file. Every kernel of the sources is\n" +
			"relocated against both BTFs, under libbpf's rules and with cilium/ebpf's own code. Where these two loaders\n" +
			"disagree with each other on the full BTF is told as well. The exit status is 3 if a decision differs, if a\n" +
			"kernel is on one side only, or if a kernel or object was skipped; a disagreement alone is no finding.",
		Flags: append(sourceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "write one line of JSON per finding"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list every difference and disagreement"},
			jobsFlag(),
		),
		Action: runVerify,
	}
}

func runVerify(c *cli.Context) error {
	if c.NArg() < 2 {
		return usagef("verify needs ARCHIVE and at least one OBJECT")
	}
	if c.Int("jobs") < 1 {
		return usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	if c.Bool("json") && c.Bool("verbose") {
		return usagef("--json does not go with --verbose")
	}
	stderr := c.App.ErrWriter
	objs, err := readObjects(c.Args().Slice()[1:], stderr)
	if err != nil {
		return err
	}
	small, skipped, err := verify.Read(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, true)
	if err != nil {
		return err
	}
	cfg := verify.Config{Minimized: small, Corpus: corp, Jobs: c.Int("jobs")}
	for i, o := range objs.list {
		cfg.Objects = append(cfg.Objects, verify.Object{Object: o, Data: objs.data[i]})
	}
	bar := newProgress(stderr, len(corp.Files))
	cfg.Done = bar.set
	rep, err := verify.Run(c.Context, cfg)
	bar.finish()
	if err != nil {
		return err
	}
	rep.Skipped = append(rep.Skipped, skipped...)
	out := bufio.NewWriter(c.App.Writer)
	if c.Bool("json") {
		err = findingsJSON(out, rep)
	} else {
		findingsText(out, rep, c.Bool("verbose"))
	}
	if err = cmp.Or(err, out.Flush()); err != nil {
		return err
	}
	verifySummary(stderr, rep)
	if rep.Findings() > 0 || objs.bad > 0 {
		return errFindings
	}
	if len(rep.Kernels) == 0 {
		return fmt.Errorf("no kernel could be compared")
	}
	return nil
}

// The kinds of lines of verify --json.
const (
	findDifference   = "difference"
	findDisagreement = "disagreement"
	findNotMinimized = "not_minimized"
	findNoKernel     = "no_kernel"
	findSkipped      = "skipped"
)

func findingsJSON(w io.Writer, rep *verify.Report) error {
	enc := foreign.JSON(w)
	var lines []any
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		for _, d := range k.Differences {
			lines = append(lines, struct {
				Finding string `json:"finding"`
				verify.Difference
			}{findDifference, d})
		}
		for _, d := range k.Disagreements {
			lines = append(lines, struct {
				Finding string `json:"finding"`
				verify.Disagreement
			}{findDisagreement, d})
		}
	}
	type named struct {
		Finding string `json:"finding"`
		Name    string `json:"name"`
		Reason  string `json:"reason,omitempty"`
	}
	for _, n := range rep.NotMinimized {
		lines = append(lines, named{Finding: findNotMinimized, Name: n})
	}
	for _, n := range rep.NoKernel {
		lines = append(lines, named{Finding: findNoKernel, Name: n})
	}
	for _, s := range rep.Skipped {
		lines = append(lines, named{findSkipped, s.Path, s.Reason()})
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// shown is how many differences of a kernel are listed where nobody asked for
// all: the BTF of a wrong kernel has thousands.
const shown = 10

func findingsText(w io.Writer, rep *verify.Report, verbose bool) {
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		if len(k.Differences) == 0 {
			continue
		}
		foreign.Fprintf(w, "%s: %s\n", k.Name, plural(len(k.Differences), "difference"))
		for j, d := range k.Differences {
			if j == shown && !verbose {
				foreign.Fprintf(w, "  and %d more (--verbose lists them)\n", len(k.Differences)-shown)
				break
			}
			place := ""
			if d.Object != "" {
				place = fmt.Sprintf(" in %s %s (%s #%d)", d.Object, d.Program, d.Section, d.Index)
			}
			foreign.Fprintf(w, "  %s: %s of %s%s\n    full       %s\n    minimized  %s\n", d.Loader, d.What, d.Relocation, place, d.Full, d.Minimized)
		}
	}
	for _, n := range rep.NotMinimized {
		foreign.Fprintf(w, "%s: no minimized BTF\n", n)
	}
	for _, n := range rep.NoKernel {
		foreign.Fprintf(w, "%s: minimized, but not among the kernels\n", n)
	}
	for _, s := range rep.Skipped {
		foreign.Fprintf(w, "%s: skipped: %s\n", s.Path, s.Reason())
	}
	disagreements(w, rep, verbose)
}

// disagreements lists relocations that the loaders decide differently, each
// with the kernels where they do.
func disagreements(w io.Writer, rep *verify.Report, verbose bool) {
	type group struct {
		first   verify.Disagreement
		kernels []string
	}
	var all []*group
	at := make(map[string]*group)
	for i := range rep.Kernels {
		for _, d := range rep.Kernels[i].Disagreements {
			key := strings.Join([]string{d.Object, d.Program, d.Relocation, verdict(d.Libbpf), verdict(d.Cilium)}, "\x00")
			g := at[key]
			if g == nil {
				g = &group{first: d}
				at[key] = g
				all = append(all, g)
			}
			if !slices.Contains(g.kernels, d.Kernel) {
				g.kernels = append(g.kernels, d.Kernel)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	foreign.Fprintf(w, "libbpf and cilium/ebpf disagree on the full BTF:\n")
	for _, g := range all {
		foreign.Fprintf(w, "  %s in %s %s\n    libbpf       %s\n    cilium/ebpf  %s\n    %s\n",
			g.first.Relocation, g.first.Object, g.first.Program, g.first.Libbpf, g.first.Cilium,
			kernels(g.kernels, len(rep.Kernels), verbose))
	}
}

// verdict is the part of a decision that is the same on most kernels.
func verdict(s string) string {
	switch {
	case strings.HasSuffix(s, "=poison"), strings.HasPrefix(s, "error: "):
		return s
	case strings.Contains(s, "->"):
		return "value"
	}
	word, _, _ := strings.Cut(s, " ")
	return word
}

func verifySummary(w io.Writer, rep *verify.Report) {
	records, fixups, differences := 0, 0, 0
	for _, k := range rep.Kernels {
		records, fixups, differences = records+k.Records, fixups+k.Fixups, differences+len(k.Differences)
	}
	for _, n := range rep.Notes {
		switch {
		case n.Reason != "" && n.Records > 0:
			foreign.Fprintf(w, "btfgen: cilium/ebpf cannot load %s, %s not checked by its rules: %s\n", n.Object, plural(n.Records, "record"), n.Reason)
		case n.Reason != "":
			foreign.Fprintf(w, "btfgen: cilium/ebpf cannot load %s, its functions were checked one by one: %s\n", n.Object, n.Reason)
		default:
			foreign.Fprintf(w, "btfgen: %s: %s in no program that cilium/ebpf would load\n", n.Object, plural(n.Records, "record"))
		}
	}
	foreign.Fprintf(w, "%s: %d decisions of libbpf and %d of cilium/ebpf compared, %s\n",
		plural(len(rep.Kernels), "kernel"), records, fixups, plural(differences, "difference"))
}
