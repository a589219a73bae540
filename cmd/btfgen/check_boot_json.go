// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// bootReport is the document of check --boot --json. Within a version, fields are only added.
type bootReport struct {
	Version int            `json:"version"`
	Kernels []bootedKernel `json:"kernels"`
	Table   []boot.Count   `json:"table"` // counts of all kernels
	allFindings
}

type bootedKernel struct {
	Name     string          `json:"name"`    // as in the report of check
	Release  string          `json:"release"` // as the booted kernel reports it
	Modules  []string        `json:"modules,omitempty"`
	Emulated string          `json:"emulated,omitempty"` // why it was not run by KVM
	Programs []bootedProgram `json:"programs"`
}

type bootedProgram struct {
	Object   string `json:"object"`
	Name     string `json:"program"`
	Section  string `json:"section"`
	AutoLoad bool   `json:"autoload"`

	// The prediction, and the reasons for it.
	Status   check.Status    `json:"status"`
	Load     check.Status    `json:"load"`
	Findings []bootedFinding `json:"findings,omitempty"`

	Actual actualOutcome `json:"actual"`
	Wrong  string        `json:"wrong,omitempty"`
}

// bootedFinding is a finding with its text.
type bootedFinding struct {
	check.Finding
	Message string `json:"message"`
}

type actualOutcome struct {
	Outcome string `json:"outcome"`          // loads, fails or not tried
	Reason  string `json:"reason,omitempty"` // why it fails or was not tried
	Errno   int    `json:"errno,omitempty"`
	Log     string `json:"log,omitempty"`     // the end of the verifier's log
	Attach  string `json:"attach,omitempty"`  // attached, or why not; empty if not tried
	EbpfGo  string `json:"ebpf_go,omitempty"` // result of cilium/ebpf, if it differs: loads, or why not
}

// programsOf returns the predictions and results of a trial.
func programsOf(t *boot.Trial) []bootedProgram {
	all := []bootedProgram{}
	for i := range t.Rows {
		row := &t.Rows[i]
		p := row.Program
		b := bootedProgram{
			Object: p.Object, Name: p.Name, Section: p.Section, AutoLoad: p.AutoLoad, Status: p.Status[0], Load: p.Load[0], Wrong: row.Wrong(),
			Actual: actualOutcome{Outcome: "loads", Attach: row.Attach(), EbpfGo: cmp.Or(row.Alone(), row.Unread)},
		}
		for _, f := range p.Findings {
			b.Findings = append(b.Findings, bootedFinding{f.Finding, report.Sentence(&f.Finding)})
		}
		e := row.Refused()
		switch {
		case row.NotTried() && e == nil:
			b.Actual.Outcome, b.Actual.Reason = "not tried", "no result"
		case row.NotTried():
			b.Actual.Outcome, b.Actual.Reason = "not tried", e.Error
		case e != nil:
			b.Actual.Outcome, b.Actual.Reason, b.Actual.Errno, b.Actual.Log = "fails", row.Outcome().Reason(), e.Errno, e.Log
		}
		all = append(all, b)
	}
	return all
}

// form reads the options about the format and the output file.
func (b *boots) form() error {
	c := b.c
	if f := c.String("format"); f != "text" && f != "json" {
		return usagef("--boot does not go with --format %s, only with text and json", f)
	}
	b.w = c.App.Writer
	switch json := b.json(); {
	case json && c.IsSet("format") && c.String("format") != "json":
		return usagef("--json does not go with --format %s", c.String("format"))
	case json && c.IsSet("command"):
		return usagef("--json does not go with --command")
	case json:
		b.w = io.Discard
	case c.String("output") != "-":
		b.text = new(bytes.Buffer)
		b.w = b.text
	}
	return nil
}

func (b *boots) json() bool { return b.c.Bool("json") || b.c.String("format") == "json" }

// write writes the JSON document, or the text that goes into a file.
func (b *boots) write() error {
	write := func(w io.Writer) error {
		enc := escape.JSON(w)
		enc.SetIndent("", "  ")
		return enc.Encode(bootReport{1, b.booted, b.table.Counts(), findingsOf(b.c)})
	}
	switch {
	case b.text != nil:
		write = func(w io.Writer) error { _, err := w.Write(b.text.Bytes()); return err }
	case !b.json():
		return nil
	}
	if out := b.c.String("output"); out != "-" {
		return output.WriteFile(out, write)
	}
	return write(b.c.App.Writer)
}
