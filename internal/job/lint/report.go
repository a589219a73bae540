// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// How much a report lists where nobody asked for all.
const (
	maxRows  = 5 // of one code
	maxNames = 3 // in one row
)

// Text writes the findings for people: for each code what it means, and the kernels, those with the
// same detail in one row. verbose lists all of them, and where they are.
func (r *Report) Text(w io.Writer, verbose bool) error {
	bw := bufio.NewWriter(w)
	for at := 0; at < len(r.Findings); {
		end := at
		for end < len(r.Findings) && r.Findings[end].Code == r.Findings[at].Code {
			end++
		}
		section(bw, r.Findings[at:end], verbose)
		at = end
	}
	return bw.Flush()
}

// section writes the findings of one code.
func section(w io.Writer, list []Finding, verbose bool) {
	c := list[0].Code
	escape.Fprintf(w, "%s: %s (%d): %s\n", c.Severity(), c, len(list), c.Text())
	rows := fold(list, verbose)
	for i, row := range rows {
		if i == maxRows && !verbose {
			left := 0
			for _, r := range rows[i:] {
				left += len(r)
			}
			escape.Fprintf(w, "  and %d more (-v lists all)\n", left)
			return
		}
		escape.Fprintf(w, "  %s%s\n", names(row, verbose), detail(row, verbose))
	}
}

// fold puts findings with the same detail together, in the order of the first of each.
func fold(list []Finding, verbose bool) (rows [][]Finding) {
	at := make(map[string]int)
	for _, f := range list {
		i, ok := at[f.Detail]
		if !ok || verbose {
			i = len(rows)
			at[f.Detail] = i
			rows = append(rows, nil)
		}
		rows[i] = append(rows[i], f)
	}
	return rows
}

// names lists the kernels of a row, or the first of them.
func names(row []Finding, verbose bool) string {
	var list []string
	for _, f := range row { // which are in order of the kernels
		list = append(list, f.Kernel)
	}
	list = slices.Compact(list)
	if len(list) <= maxNames || verbose {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNames], ", "), len(list)-maxNames)
}

// detail is what follows the names of a row.
func detail(row []Finding, verbose bool) string {
	text := ""
	f := row[0]
	if f.Detail != "" {
		text = ": " + f.Detail
	}
	// A key does not say which of several files, or which module, it is about.
	if f.Path != f.Kernel && len(row) == 1 && (verbose || f.Code == KeyConflict || f.Code == KeyRepeated || f.Code == Damaged) {
		text += " (" + f.Path + ")"
	}
	return text
}

// Summary returns one line about the whole corpus.
func (r *Report) Summary() string {
	return fmt.Sprintf("%s: %s, %s, %s", words.Plural(r.Kernels, "kernel"), words.Plural(r.Errors, "error"), words.Plural(r.Warnings, "warning"), words.Plural(r.Notes, "note"))
}
