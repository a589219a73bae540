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

// How much Text lists without verbose.
const (
	maxRows  = 5 // per code
	maxNames = 3 // per row
)

// Text writes the findings for people: the text of each code, and the kernels, with a row for those with the same detail. verbose
// lists each finding with its path.
func (r *Report) Text(w io.Writer, verbose bool) error {
	bw := bufio.NewWriter(w)
	for _, list := range words.Group(r.Findings, func(f *Finding) any { return f.Code }) {
		c := list[0].Code
		escape.Fprintf(bw, "%s: %s (%d): %s\n", c.Severity, c, len(list), c.Text)
		rows := words.Group(list, func(f *Finding) any { return f.Detail })
		if verbose {
			rows = slices.Collect(slices.Chunk(list, 1))
		}
		left := len(list)
		for i, row := range rows {
			if i == maxRows && !verbose {
				escape.Fprintf(bw, "  and %d more (-v lists all)\n", left)
				break
			}
			left -= len(row)
			escape.Fprintf(bw, "  %s%s\n", names(row), detail(row, verbose))
		}
	}
	return bw.Flush()
}

// names lists the kernels of a row, which are sorted.
func names(row []Finding) string {
	var list []string
	for _, f := range row {
		list = append(list, f.Kernel)
	}
	list = slices.Compact(list)
	if len(list) <= maxNames {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNames], ", "), len(list)-maxNames)
}

// detail returns what follows the names of a row.
func detail(row []Finding, verbose bool) string {
	text := ""
	f := row[0]
	if f.Detail != "" {
		text = ": " + f.Detail
	}
	// With these codes, a key does not identify the file or the module.
	if f.Path != f.Kernel && len(row) == 1 && (verbose || f.Code == KeyConflict || f.Code == KeyRepeated || f.Code == Damaged) {
		text += " (" + f.Path + ")"
	}
	return text
}

// Summary returns one line about the whole corpus.
func (r *Report) Summary() string {
	return fmt.Sprintf("%s: %s, %s, %s", words.Plural(r.Kernels, "kernel"), words.Plural(r.Errors, "error"), words.Plural(r.Warnings, "warning"), words.Plural(r.Notes, "note"))
}
