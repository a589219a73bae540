// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func archiveLookupCommand() *cli.Command {
	return &cli.Command{
		Name:      "lookup",
		Usage:     "find the BTF for a host, as a tracer would",
		ArgsUsage: "ARCHIVE",
		Description: "Without options the host is the one that this runs on. A kernel of the same release and arch under another\n" +
			"distribution or version is taken if that leaves one BTF; a near release never is, unless --neighbour asks for\n" +
			"it and all builds next to the host's have one BTF: N before it, and N after it or all that there are, of the same\n" +
			"distribution, version, arch, version of Linux and flavour.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "os-release", Usage: "read distribution and version from `FILE`", TakesFile: true},
			&cli.StringFlag{Name: "release", Usage: "kernel `RELEASE`, as uname -r prints it"},
			&cli.StringFlag{Name: "arch", Usage: "`ARCH`, as uname -m prints it"},
			&cli.StringFlag{Name: "root", Usage: "the host's root directory is `DIR`", TakesFile: true},
			&cli.BoolFlag{Name: "neighbour", Usage: "on a miss, take the BTF that all builds next to the kernel have"},
			&cli.IntFlag{Name: "builds", Usage: "--neighbour wants `N` builds before the kernel", Value: 3},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the BTF to `FILE`"},
			jsonFlag("the explanation"),
		},
		Action: runArchiveLookup,
	}
}

// lookupResult is what lookup --json writes. Fields are only ever added.
type lookupResult struct {
	Host       string `json:"host"`
	Match      string `json:"match"` // exact, release, neighbour or none
	Kernel     string `json:"kernel,omitempty"`
	Layout     *int   `json:"layout,omitempty"`
	Reason     string `json:"reason"`
	Below      string `json:"below,omitempty"`
	Above      string `json:"above,omitempty"`
	SameLayout bool   `json:"same_layout,omitempty"`
}

func runArchiveLookup(c *cli.Context) error {
	neighbours := 0
	switch n := c.Int("builds"); {
	case c.Bool("neighbour") && n < 1:
		return usagef("--builds %d: want at least 1", n)
	case c.Bool("neighbour"):
		neighbours = n
	case c.IsSet("builds"):
		return usagef("--builds goes with --neighbour")
	}
	for _, name := range []string{"release", "arch"} {
		if err := (kernel.Key{Release: c.String(name)}).Validate(); err != nil {
			return usagef("--%s: %w", name, err)
		}
	}
	if err := inputsOf(c.Args().First(), c.String("os-release")).refuse(c.String("output")); err != nil {
		return err
	}
	a, err := openArchive(c)
	if err != nil {
		return err
	}
	k, err := kernel.Host(kernel.HostOptions{
		Root: c.String("root"), OSRelease: c.String("os-release"), Release: c.String("release"), Arch: c.String("arch"),
	})
	if err != nil {
		return err
	}
	m := a.Lookup(k, neighbours)
	out := c.String("output")
	if m.Found() && out != "" {
		b, err := a.BTF(m.Key)
		if err != nil {
			return err
		}
		if err := writeOut(c, out, b); err != nil {
			return err
		}
	}
	if !m.Found() {
		record(c, finding{Class: missing, Message: m.Reason, Kernel: m.Want.String()})
	}
	if !c.Bool("json") {
		return explain(explainTo(c, out), a, m)
	}
	return document(c, struct {
		lookupResult
		allFindings
	}{lookupJSON(a, m), findingsOf(c)})
}

// explainTo keeps words out of BTF.
func explainTo(c *cli.Context, out string) io.Writer {
	if out == "-" {
		return c.App.ErrWriter
	}
	return c.App.Writer
}

func explain(w io.Writer, a *archive.Archive, m archive.Match) error {
	line := func(name, format string, args ...any) {
		escape.Fprintf(w, "%-8s%s\n", name+":", fmt.Sprintf(format, args...))
	}
	line("host", "%s", m.Want)
	if m.Found() {
		layout, _ := a.Layout(m.Key)
		line("match", "%s: %s", m.Rule, m.Reason)
		line("kernel", "%s (layout %d)", m.Key, layout)
		return nil
	}
	line("match", "none: %s", m.Reason)
	if m.Below != (kernel.Key{}) {
		line("below", "%s", m.Below)
	}
	if m.Above != (kernel.Key{}) {
		line("above", "%s", m.Above)
	}
	if m.SameLayout {
		line("hint", "both neighbours have the same BTF, so this kernel may have it too")
	}
	return nil
}

func lookupJSON(a *archive.Archive, m archive.Match) lookupResult {
	text := func(k kernel.Key) string {
		if k == (kernel.Key{}) {
			return ""
		}
		return k.String()
	}
	r := lookupResult{
		Host: m.Want.String(), Match: m.Rule.String(), Reason: m.Reason, Kernel: text(m.Key),
		Below: text(m.Below), Above: text(m.Above), SameLayout: m.SameLayout,
	}
	if layout, ok := a.Layout(m.Key); ok {
		r.Layout = &layout
	}
	return r
}
