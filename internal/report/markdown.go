// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/logtext"
)

// icons stand for verdicts in Markdown.
var icons = map[check.Status]string{
	check.OK: "✅", check.Guarded: "🛡️", check.Other: "", check.Unknown: "❔", check.MayFail: "⚠️", check.Fails: "❌",
}

// maxTable is how many columns a table in a pull request can have.
const maxTable = 24

// Markdown writes the report for a pull request.
func Markdown(w io.Writer, r *check.Report, o Options) error {
	b := bufio.NewWriter(w)
	m := newMatrix(r)
	foreign.Fprintf(b, "### Portability: %s\n", summaryLine(r))
	if len(m.rows) > 0 && len(m.columns) <= maxTable {
		m.table(b)
	}
	least, most := check.Unknown, 5
	if o.Verbose {
		least, most = check.Guarded, 1000
	}
	if l := r.Causes(least); len(l) > 0 {
		foreign.Fprintf(b, "\n| kernels | | what | where | programs |\n|--:|---|---|---|---|\n")
		for _, c := range l {
			what := fmt.Sprintf("%s %s: %s", topicName(c.Topic), foreign.Code(c.Subject), foreign.Markdown(c.Reason))
			if len(c.Sources) > 0 {
				what += " (" + foreign.Markdown(strings.Join(c.Sources[:min(len(c.Sources), most)], ", ")) + ")"
			}
			foreign.Fprintf(b, "| %d | %s %s | %s | %s | %s |\n", len(c.Kernels), icons[c.Status], c.Verdict(), what,
				foreign.Markdown(where(r, m.ordered, c.Kernels, most)), foreign.Markdown(programs(r, c.Programs, 2*most)))
		}
	}
	return b.Flush()
}

func (m *matrix) table(b *bufio.Writer) {
	foreign.Fprintf(b, "\n| program |")
	for i := range m.columns {
		foreign.Fprintf(b, " %d |", i+1)
	}
	foreign.Fprintf(b, "\n|---|%s\n", strings.Repeat(":-:|", len(m.columns)))
	for _, i := range m.rows {
		p := &m.r.Programs[i]
		foreign.Fprintf(b, "| %s: %s |", foreign.Markdown(p.Object), foreign.Markdown(p.Name))
		for c := range m.columns {
			foreign.Fprintf(b, " %s |", icons[m.at(i, c)])
		}
		foreign.Fprintf(b, "\n")
	}
	if m.fine > 0 {
		foreign.Fprintf(b, "\n%s ok on every kernel.\n", logtext.Plural(m.fine, "program"))
	}
	foreign.Fprintf(b, "\n")
	for i, c := range m.columns {
		foreign.Fprintf(b, "%d. %s\n", i+1, foreign.Markdown(c.label(m.r)))
	}
}
