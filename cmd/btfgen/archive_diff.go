// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
)

func runArchiveDiff(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("diff needs two archives: OLD NEW")
	}
	d, err := bundle.Diff(c.Context, c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return document(c, d)
	}
	p := diffPage{c: c, markdown: c.String("format") == "markdown"}
	p.table(false, []string{"", d.Old.Archive, d.New.Archive}, [][]string{
		{"size", words.Bytes(d.Old.Bytes), words.Bytes(d.New.Bytes)},
		{"kernels", strconv.Itoa(d.Old.Kernels), strconv.Itoa(d.New.Kernels)},
		{"layouts", strconv.Itoa(d.Old.Layouts), strconv.Itoa(d.New.Layouts)},
		{"BTF", words.Bytes(d.Old.BTFBytes), words.Bytes(d.New.BTFBytes)},
		{"objects", objectCount(d, d.Old), objectCount(d, d.New)},
	})
	k := d.Kernels
	p.heading("kernels", len(k.Gained), len(k.Lost), len(k.Changed), k.Same)
	p.kernels("gained", k.Gained)
	p.kernels("lost", k.Lost)
	p.kernels("changed", k.Changed)
	p.table(true, []string{"", "kernel", "", ""}, p.rows)
	p.rows = nil
	if o := d.Objects; o != nil {
		p.heading("objects", len(o.Gained), len(o.Lost), len(o.Changed), o.Same)
		p.objects("gained", o.Gained)
		p.objects("lost", o.Lost)
		for _, x := range o.Changed {
			p.rows = append(p.rows, []string{"changed", x.Name, objectChange(x)})
		}
		p.table(true, []string{"", "object", ""}, p.rows)
	}
	return p.err
}

// objectCount returns the number of objects, or a dash if it is unknown.
func objectCount(d bundle.Difference, t bundle.Totals) string {
	if d.Objects == nil && t.Objects == 0 {
		return "-"
	}
	return strconv.Itoa(t.Objects)
}

func machinesOf(o archive.Object) string {
	return cmp.Or(strings.Join(o.Arches, ", "), "all machines")
}

func (p *diffPage) objects(what string, list []archive.Object) {
	for _, o := range list {
		p.rows = append(p.rows, []string{what, o.Name, machinesOf(o)})
	}
}

// objectChange says how an object differs.
func objectChange(x bundle.ObjectChange) string {
	text := map[string]string{
		"same": "same relocations", "other": "other relocations", "unknown": "another file",
	}[x.Relocations]
	if !slices.Equal(x.Old.Arches, x.New.Arches) {
		text += "; for " + machinesOf(x.New) + " instead of " + machinesOf(x.Old)
	}
	return text
}

// diffPage prints a comparison as text or Markdown.
type diffPage struct {
	c        *cli.Context
	markdown bool
	rows     [][]string // rows of the next table
	err      error
}

func (p *diffPage) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = escape.Fprintf(p.c.App.Writer, format, args...)
	}
}

// heading prints how many things changed.
func (p *diffPage) heading(what string, gained, lost, changed, same int) {
	var counts []string
	for _, n := range []struct {
		n    int
		what string
	}{{gained, "gained"}, {lost, "lost"}, {changed, "changed"}, {same, "same"}} {
		if n.n > 0 || n.what == "same" {
			counts = append(counts, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	if p.markdown {
		p.printf("\n**%s%s:** %s\n", strings.ToUpper(what[:1]), what[1:], strings.Join(counts, ", "))
		return
	}
	p.printf("\n%s: %s\n", what, strings.Join(counts, ", "))
}

// maxSeries is how many series the list of gained, lost or changed kernels has without --verbose.
const maxSeries = 20

// kernels adds rows for kernels: for each series, or with --verbose for each kernel.
func (p *diffPage) kernels(what string, list []bundle.KernelChange) {
	if p.c.Bool("verbose") {
		for _, k := range list {
			size := words.Bytes(int64(k.OldBytes + k.NewBytes))
			if k.OldBytes > 0 && k.NewBytes > 0 {
				size = words.Bytes(int64(k.OldBytes)) + " → " + words.Bytes(int64(k.NewBytes))
			}
			p.rows = append(p.rows, []string{what, k.Kernel, size, ""})
		}
		return
	}
	series := words.Group(list, func(k *bundle.KernelChange) any {
		return [3]string{k.Key.ID, k.Key.VersionID, k.Key.Arch}
	})
	for i, s := range series {
		if i == maxSeries && len(series) > maxSeries+1 {
			n := 0
			for _, rest := range series[i:] {
				n += len(rest)
			}
			more := fmt.Sprintf("%d more series", len(series)-i)
			p.rows = append(p.rows, []string{what, more, strconv.Itoa(n), "(-v lists all kernels)"})
			return
		}
		first, last := s[0].Key.Release, s[len(s)-1].Key.Release
		name := strings.TrimSuffix(s[0].Kernel, "/"+first)
		if len(s) > 1 {
			first += " … " + last
		}
		p.rows = append(p.rows, []string{what, name, strconv.Itoa(len(s)), first})
	}
}

// table prints rows, if there are any. In a table of names, the second column has the names; otherwise the head is printed, and columns
// after the first have numbers.
func (p *diffPage) table(names bool, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	if p.markdown {
		p.printf("\n")
		p.row(head, false)
		mark := "---:|"
		if names {
			mark = "---|"
		}
		p.printf("|---|%s\n", strings.Repeat(mark, len(head)-1))
		for _, r := range rows {
			p.row(r, names)
		}
		return
	}
	tw := tabwriter.NewWriter(p.c.App.Writer, 2, 8, 2, ' ', 0)
	if !names {
		rows = slices.Concat([][]string{head}, rows)
	}
	for _, r := range rows {
		for i := range r {
			r[i] = escape.Text(r[i])
		}
		_, err := escape.Fprintf(tw, "%s\n", escape.Own("  "+strings.TrimRight(strings.Join(r, "\t"), "\t")))
		p.err = cmp.Or(p.err, err)
	}
	p.err = cmp.Or(p.err, tw.Flush())
}

// row prints a row of a table in Markdown.
func (p *diffPage) row(cells []string, names bool) {
	var out []string
	for i, cell := range cells {
		if names && i == 1 {
			out = append(out, escape.Code(cell))
		} else {
			out = append(out, escape.Markdown(cell))
		}
	}
	p.printf("| %s |\n", escape.Own(strings.Join(out, " | ")))
}
