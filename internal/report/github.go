// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
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
// the causes that cost most kernels. Errors without a source line come first: objects that are not loaded on a required kernel, and verdicts
// worse than in the baseline.
func GitHub(w io.Writer, r *verdict.Report, o Options) error {
	b := bufio.NewWriter(w)
	s := summarize(r, o)
	n := make(map[string]int)
	general := func(title string, texts []string) {
		for _, text := range texts {
			if n["error"]++; n["error"] <= mostAnnotations {
				escape.Fprintf(b, "::error title=%s::%s\n", inProperty.Replace("btfgen: "+title), inMessage.Replace(escape.Text(text)))
			}
		}
	}
	if s.total() == 0 && o.Require != "" {
		general("--require", []string{s.counted()})
	}
	general("--require", s.unloaded())
	if o.Baseline != nil {
		general("lost", lostTexts(r, o.Lost))
		for _, part := range changes(r, o.Baseline) {
			if part.Title == worseTitle {
				general("worse", part.texts())
			}
		}
	}
	for _, c := range slices.Concat(s.Causes, s.Warnings) {
		level := "warning"
		switch c.Status {
		case rule.Fails:
			level = "error"
		case rule.Unknown:
			level = "notice"
		}
		if n[level]++; n[level] > mostAnnotations {
			continue
		}
		source := r.Programs[c.Programs[0]].Object + ":1"
		if len(c.Sources) > 0 {
			source = c.Sources[0]
		}
		file, line := place(source, o.SourceRoot)
		text := escape.Sprintf("%s", causeMessage(s.Report, &c, 5))
		escape.Fprintf(b, "::%s file=%s,line=%d,title=%s::%s\n", level, inProperty.Replace(escape.Text(file)), line,
			inProperty.Replace("btfgen: "+string(c.Code)), inMessage.Replace(string(text)))
	}
	return b.Flush()
}
