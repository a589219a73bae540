// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// The forms of a report in JSON have, in addition to what package check has, the text of findings and headlines.
type (
	jsonFinding struct {
		check.KernelFinding
		Message string `json:"message"`
	}
	jsonNote struct {
		check.Finding
		Message string `json:"message"`
	}
	jsonProgram struct {
		check.Program
		Findings []jsonFinding `json:"findings,omitempty"`
		Notes    []jsonNote    `json:"notes,omitempty"`
	}
	jsonHeadline struct {
		Text string `json:"text"`
		check.Headline
	}
	jsonObject struct {
		check.ObjectRow
		Headline   jsonHeadline    `json:"headline"`
		Suggestion *jsonSuggestion `json:"suggestion,omitempty"`
	}
	jsonSuggestion struct {
		Options  []check.Option `json:"options,omitempty"`
		Targets  []string       `json:"targets,omitempty"`
		Headline jsonHeadline   `json:"headline"`
	}
	jsonCause struct {
		check.Cause
		Message string `json:"message"`
	}
)

// JSON writes the report as check.ReadBaseline reads it, with the causes and what the run found in addition.
func JSON(w io.Writer, r *check.Report, o Options) error {
	out := struct {
		*check.Report
		Objects  []jsonObject  `json:"objects,omitempty"`
		Programs []jsonProgram `json:"programs"`
		Causes   []jsonCause   `json:"causes"`
		Findings any           `json:"findings"`
	}{Report: r, Findings: o.Findings, Programs: []jsonProgram{}, Causes: []jsonCause{}}
	for i := range r.Objects {
		o := &r.Objects[i]
		row := jsonObject{ObjectRow: *o, Headline: jsonHeadline{Headline(r, o), o.Headline}}
		if s := o.Suggestion; s != nil {
			row.Suggestion = &jsonSuggestion{s.Options, s.Targets, jsonHeadline{Headline(r, &s.Row), s.Row.Headline}}
		}
		out.Objects = append(out.Objects, row)
	}
	for i := range r.Programs {
		p := jsonProgram{Program: r.Programs[i]}
		for _, f := range p.Program.Findings {
			p.Findings = append(p.Findings, jsonFinding{f, Sentence(&f.Finding)})
		}
		for _, n := range p.Program.Notes {
			p.Notes = append(p.Notes, jsonNote{n, note(&n)})
		}
		out.Programs = append(out.Programs, p)
	}
	for _, c := range r.Causes(check.Unknown) {
		out.Causes = append(out.Causes, jsonCause{c, Sentence(&c.Finding)})
	}
	return escape.JSON(w).Encode(out)
}
