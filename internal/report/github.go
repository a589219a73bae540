// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// mostAnnotations is how many annotations of a level GitHub shows of a step.
const mostAnnotations = 10

// Characters that separate the parts of a workflow command, which messages and properties have as numbers.
var (
	inMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	inProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// GitHub writes workflow commands that annotate the first source line of each cause, or the object if there is none. Of each level it has
// the causes that cost most kernels. Before these are the errors that no source line shows: what is not loaded where it has to work, and what
// is worse than in the baseline.
func GitHub(w io.Writer, r *verdict.Report, o Options) error {
	b := bufio.NewWriter(w)
	v := newView(r).of(o)
	n := make(map[string]int)
	general := func(title string, texts []string) {
		for _, text := range texts {
			if n["error"]++; n["error"] <= mostAnnotations {
				escape.Fprintf(b, "::error title=%s::%s\n", inProperty.Replace("btfgen: "+title), inMessage.Replace(escape.Text(text)))
			}
		}
	}
	s := newScreen(r, o)
	if _, _, total := s.tally(""); total == 0 && s.required != "" {
		general("--require", []string{s.counted()})
	}
	general("--require", s.unloaded())
	if o.Baseline != nil {
		general("lost", lostTexts(o.Lost))
		for _, part := range s.changes(o.Baseline) {
			if part.Title == worseTitle {
				general("worse", part.texts())
			}
		}
	}
	all := slices.Concat(v.causes(false)...)
	slices.SortStableFunc(all, func(a, b group) int {
		return cmp.Or(-cmp.Compare(a.status, b.status), -cmp.Compare(len(a.Kernels), len(b.Kernels)))
	})
	for _, g := range all {
		level := "warning"
		switch g.status {
		case rule.Fails:
			level = "error"
		case rule.Unknown:
			level = "notice"
		}
		if n[level]++; n[level] > mostAnnotations {
			continue
		}
		source := r.Programs[g.programs[0]].Object + ":1"
		if len(g.sources) > 0 {
			source = g.sources[0]
		}
		file, line := place(source, o.SourceRoot)
		text := escape.Sprintf("%s. On %s. Programs: %s. %s", g.text(5), v.where(g.Kernels, 3), v.programs(g.programs, 5), g.Advice)
		escape.Fprintf(b, "::%s file=%s,line=%d,title=%s::%s\n", level, inProperty.Replace(escape.Text(file)), line,
			inProperty.Replace("btfgen: "+string(g.Code)), inMessage.Replace(string(text)))
	}
	return b.Flush()
}
