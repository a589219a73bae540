// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// The forms of a report in JSON have, in addition to what package verdict has, the text of findings and causes.
type (
	jsonFinding struct {
		verdict.KernelFinding
		Message string `json:"message"`
	}
	jsonNote struct {
		rule.Finding
		Message string `json:"message"`
	}
	jsonProgram struct {
		verdict.ProgramRow
		Findings []jsonFinding `json:"findings,omitempty"`
		Notes    []jsonNote    `json:"notes,omitempty"`
	}
	jsonObject struct {
		verdict.ObjectRow
		Suggestion *jsonSuggestion `json:"suggestion,omitempty"`
	}
	jsonSuggestion struct {
		Options []verdict.Option  `json:"options,omitempty"`
		Targets []string          `json:"targets,omitempty"`
		Cells   []verdict.Cell    `json:"cells"`            // results with Options applied
		Minima  []verdict.Minimum `json:"minima,omitempty"` // results with Options applied
	}
	jsonProposal struct {
		Object  string            `json:"object"`
		Options []verdict.Option  `json:"options"`
		Now     []verdict.Cell    `json:"now"`
		Cells   []verdict.Cell    `json:"cells"` // results with Options applied
		Minima  []verdict.Minimum `json:"minima,omitempty"`
	}
	jsonCause struct {
		verdict.Cause
		Message string `json:"message"`
		Advice  string `json:"advice,omitempty"`
	}
)

// JSON writes the report as check.ReadBaseline reads it, with the causes and what the run found in addition. It encodes one row at a
// time: verdicts on many kernels take far more bytes in JSON than in memory.
func JSON(w io.Writer, r *verdict.Report, o Options) error {
	out := jsonWriter{w: bufio.NewWriter(w), first: true}
	out.text("{")
	out.value("version", r.Version)
	array(&out, "kernels", r.Kernels, func(k *verdict.Column) any { return k })
	array(&out, "lines", r.Lines, func(l *verdict.Line) any { return l })
	row := func(o *verdict.ObjectRow) any {
		row := jsonObject{ObjectRow: *o}
		if s := o.Suggestion; s != nil {
			row.Suggestion = &jsonSuggestion{s.Options, s.Targets, s.Row.Cells, s.Row.Minima}
		}
		return row
	}
	arrayUnlessEmpty(&out, "objects", r.Objects, row)
	arrayUnlessEmpty(&out, "executables", r.Executables, row)
	arrayUnlessEmpty(&out, "variants", r.Variants, row)
	arrayUnlessEmpty(&out, "proposals", r.Proposals, func(p *verdict.Proposal) any {
		return jsonProposal{p.Row.Object, p.Options, p.Now.Cells, p.Row.Cells, p.Row.Minima}
	})
	array(&out, "programs", r.Programs, func(program *verdict.ProgramRow) any {
		p := jsonProgram{ProgramRow: *program}
		for _, f := range program.Findings {
			p.Findings = append(p.Findings, jsonFinding{f, Sentence(&f.Finding)})
		}
		for _, n := range program.Notes {
			p.Notes = append(p.Notes, jsonNote{n, note(&n)})
		}
		return p
	})
	cause := func(c *verdict.Cause) any { return jsonCause{*c, CauseText(c, 1000), advice(c, false)} }
	array(&out, "causes", r.Causes, cause)
	arrayUnlessEmpty(&out, "warnings", r.Warnings, cause)
	out.value("findings", o.Findings)
	out.text("}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// jsonWriter writes a JSON object, one member or element after the other. After an error it writes nothing.
type jsonWriter struct {
	w     *bufio.Writer
	first bool // no member or element precedes the next one
	err   error
}

func (j *jsonWriter) text(s string) {
	if j.err == nil {
		_, j.err = j.w.WriteString(s)
	}
}

// name writes the name of a member.
func (j *jsonWriter) name(name string) {
	j.next()
	j.text(`"` + name + `":`)
}

// next writes a comma before each member or element but the first.
func (j *jsonWriter) next() {
	if !j.first {
		j.text(",")
	}
	j.first = false
}

func (j *jsonWriter) value(name string, v any) {
	j.name(name)
	j.encode(v)
}

// encode writes a value without the line end of an encoder.
func (j *jsonWriter) encode(v any) {
	var b bytes.Buffer
	if j.err == nil {
		j.err = escape.JSON(&b).Encode(v)
		j.text(strings.TrimSuffix(b.String(), "\n"))
	}
}

// array writes an array.
func array[T any](j *jsonWriter, name string, all []T, form func(*T) any) {
	j.name(name)
	j.text("[")
	j.first = true
	for i := range all {
		j.next()
		j.encode(form(&all[i]))
	}
	j.first = false
	j.text("]")
}

// arrayUnlessEmpty writes an array unless it is empty.
func arrayUnlessEmpty[T any](j *jsonWriter, name string, all []T, form func(*T) any) {
	if len(all) > 0 {
		array(j, name, all, form)
	}
}
