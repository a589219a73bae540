// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

//go:embed archivediff.tmpl
var archiveDiffSource string

// changes are the texts of DiffObject.Change.
var changes = map[string]string{
	generate.ObjectGained: "new", generate.ObjectLost: "removed", generate.ObjectRelocations: "other relocations", generate.ObjectCode: "the same relocations, other code",
	generate.ObjectFile: "another file",
}

// ArchiveDiff writes the differences between two archives: as "text" for people, or as "markdown" for release notes, with a table by
// distribution, and the kernels that are new or gone.
func ArchiveDiff(w io.Writer, d *generate.Diff, format string) error {
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"text": escape.Text, "code": escape.Code, "plural": words.Plural, "bytes": words.Bytes, "series": diffSeries,
		"change": func(c string) string { return changes[c] },
	}).Parse(archiveDiffSource))
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, format, d); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// seriesDiff is how many kernels of a distribution were gained, lost and changed.
type seriesDiff struct {
	Name                  string
	Gained, Lost, Changed int
}

func diffSeries(d *generate.Diff) (all []*seriesDiff) {
	rows := make(map[string]*seriesDiff)
	count := func(kernels []generate.DiffKernel, n func(*seriesDiff) *int) {
		for _, k := range kernels {
			name := k.Kernel[:max(0, strings.LastIndexByte(k.Kernel, '/'))]
			if rows[name] == nil {
				rows[name] = &seriesDiff{Name: name}
			}
			*n(rows[name])++
		}
	}
	count(d.Gained, func(s *seriesDiff) *int { return &s.Gained })
	count(d.Lost, func(s *seriesDiff) *int { return &s.Lost })
	count(d.Changed, func(s *seriesDiff) *int { return &s.Changed })
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, rows[name])
	}
	return all
}
