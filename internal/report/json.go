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
	jsonProposal struct {
		Object   string         `json:"object"`
		Options  []check.Option `json:"options"`
		Headline jsonHeadline   `json:"headline"`
	}
	jsonCause struct {
		check.Cause
		Message string `json:"message"`
		In      string `json:"in"` // "a.o: p, q": objects and programs
	}
)

// JSON writes the report as check.ReadBaseline reads it, with the causes and what the run found in addition.
func JSON(w io.Writer, r *check.Report, o Options) error {
	out := struct {
		*check.Report
		Objects     []jsonObject   `json:"objects,omitempty"`
		Executables []jsonObject   `json:"executables,omitempty"`
		Variants    []jsonObject   `json:"variants,omitempty"`
		Proposals   []jsonProposal `json:"proposals,omitempty"`
		Programs    []jsonProgram  `json:"programs"`
		Causes      []jsonCause    `json:"causes"`
		Warnings    []jsonCause    `json:"warnings,omitempty"`
		Findings    any            `json:"findings"`
	}{Report: r, Findings: o.Findings, Programs: []jsonProgram{}, Causes: []jsonCause{}}
	rows := func(l []check.ObjectRow) (out []jsonObject) {
		for i := range l {
			row := jsonObject{ObjectRow: l[i], Headline: jsonHeadline{Headline(r, &l[i]), l[i].Headline}}
			if s := l[i].Suggestion; s != nil {
				row.Suggestion = &jsonSuggestion{s.Options, s.Targets, jsonHeadline{Headline(r, &s.Row), s.Row.Headline}}
			}
			out = append(out, row)
		}
		return out
	}
	out.Objects, out.Executables, out.Variants = rows(r.Objects), rows(r.Executables), rows(r.Variants)
	for i := range r.Proposals {
		p := &r.Proposals[i]
		out.Proposals = append(out.Proposals, jsonProposal{p.Row.Object, p.Options, jsonHeadline{Headline(r, &p.Row), p.Row.Headline}})
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
	v := newView(r)
	causes := func(l []check.Cause) (out []jsonCause) {
		for _, c := range l {
			out = append(out, jsonCause{c, Sentence(&c.Finding), v.programs(c.Programs, mostNames)})
		}
		return out
	}
	out.Causes, out.Warnings = append(out.Causes, causes(r.Causes(check.Unknown))...), causes(r.Warnings())
	return escape.JSON(w).Encode(out)
}
