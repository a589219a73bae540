// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// Minima writes a line for each object, or executable with several, with a release for each machine: "tracer.bpf.o: x86_64 5.2, arm64 5.10,
// arm never (6.12 tried)".
func Minima(w io.Writer, r *verdict.Report, _ Options) error {
	b := bufio.NewWriter(w)
	for _, o := range r.Whole() {
		text := minimaText(r, o)
		var programs []verdict.ProgramRow
		for _, p := range o.Programs {
			programs = append(programs, r.Programs[p])
		}
		if not := unjudged(programs); not != "" {
			text += "; " + not
		}
		escape.Fprintf(b, "%s: %s\n", o.Object, text)
	}
	return b.Flush()
}

// minimaText has the minima of a row, and the cell of all kernels without a release.
func minimaText(r *verdict.Report, o *verdict.ObjectRow) string {
	var parts []string
	for i := range o.Minima {
		parts = append(parts, minimumText(r, o, &o.Minima[i]))
	}
	var undated verdict.Cell
	for i := range r.Lines {
		if r.Lines[i].Machine == verdict.Unknown {
			undated = sumCells(undated, o.Cells[i])
		}
	}
	if undated.Judged() > 0 {
		parts = append(parts, verdict.Unknown+" "+word(undated))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case o.Sum().NeverLoaded():
		return "not loaded here"
	}
	return "no kernel here is for it"
}

func sumCells(a, b verdict.Cell) verdict.Cell {
	return verdict.Cell{Works: a.Works + b.Works, Fails: a.Fails + b.Fails, Uncertain: a.Uncertain + b.Uncertain, Unloaded: a.Unloaded + b.Unloaded}
}

// minimumText is the minimum of a machine: "x86_64 5.2", "x86_64 6.1 (5.10 fails)", "arm never (6.12 tried)".
func minimumText(r *verdict.Report, o *verdict.ObjectRow, m *verdict.Minimum) string {
	text, notes := m.Machine+" ", first(cellRuns(r, o, m.Others))
	switch {
	case m.Since == "" && m.Perhaps == "" && len(m.Others) == 0:
		return text + fmt.Sprintf("never (%s tried)", strings.Join(first(lineRuns(r, m.Tried)), ", "))
	case m.Since == "" && m.Perhaps == "":
		return text + fmt.Sprintf("some kernels (%s)", strings.Join(first(cellRuns(r, o, m.Tried)), ", "))
	case m.Since == "":
		text += "perhaps " + releases(m.Perhaps, m.Until)
	case m.Perhaps == "":
		text += releases(m.Since, m.Until)
	default:
		text += releases(m.Since, m.Until) + " or perhaps " + m.Perhaps
	}
	if m.Oldest {
		notes = append([]string{"the oldest here"}, notes...)
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// releases is a range of releases, without end if until is "".
func releases(since, until string) string {
	if until == "" || until == since {
		if until != "" {
			return since + " only"
		}
		return since
	}
	return since + " to " + until
}

// cellRuns names the cells of some lines: "5.10 fails", and equal ones that follow each other as "6.12 to 7.3 fail".
func cellRuns(r *verdict.Report, o *verdict.ObjectRow, lines []int) (out []string) {
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && lines[end] == lines[end-1]+1 && word(o.Cells[lines[end]]) == word(o.Cells[lines[i]]) {
			end++
		}
		name, verdict := r.Lines[lines[i]].Name, word(o.Cells[lines[i]])
		switch {
		case end-i > 1 && verdict == "fails":
			out = append(out, fmt.Sprintf("%s to %s fail", name, r.Lines[lines[end-1]].Name))
		case end-i > 1 && (verdict == "ok" || verdict == uncertain):
			out = append(out, fmt.Sprintf("%s to %s %s", name, r.Lines[lines[end-1]].Name, verdict))
		default:
			for _, l := range lines[i:end] {
				out = append(out, r.Lines[l].Name+" "+verdict)
			}
		}
		i = end
	}
	return out
}

// lineRuns names lines, three or more that follow each other as "5.10 to 7.3".
func lineRuns(r *verdict.Report, lines []int) []string {
	var names []lineName
	for i, l := range lines {
		names = append(names, lineName{r.Lines[l].Name, true, i > 0})
	}
	return joined(names)
}
