// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"io"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
)

type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"` // always 0; readers expect the attribute
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string   `xml:"name,attr"`
		Class   string   `xml:"classname,attr"`
		Failure *message `xml:"failure,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
	}
	message struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"` // only for failures
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a test suite per kernel with a case per object, which is called
// "object", one per group of variants and one per program. What may fail or is unknown counts as skipped, and so does
// a program that fails while its object works.
func JUnit(w io.Writer, r *verdict.Report, _ Options) error {
	all := suites{Name: "btfgen check"}
	for k := range r.Kernels {
		s := suite{Name: escape.Text(r.Kernels[k].Name)}
		works := make(map[string]bool) // objects
		loaders := make(map[string]rule.Loader)
		for i := range r.Objects {
			o := &r.Objects[i]
			works[o.Object], loaders[o.Object] = o.Status[k] <= rule.Guarded, o.Loader
			s.add(o.Object, "object", o.Status[k], func() *message { return deciders(r, o, k) })
		}
		for i := range r.Variants {
			o := &r.Variants[i]
			s.add(o.Object, "variants", o.Status[k], func() *message { return deciders(r, o, k) })
		}
		for i := range r.Programs {
			p := &r.Programs[i]
			st := p.Status[k]
			if st == rule.Fails && works[p.Object] {
				st = rule.MayFail
			}
			s.add(p.Object, p.Name, st, func() *message { return reasons(p, k, loaders[p.Object]) })
		}
		s.Tests = len(s.Cases)
		all.Suites = append(all.Suites, s)
		all.Tests += s.Tests
		all.Failures += s.Failures
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// add adds a case, unless it is for other machines.
func (s *suite) add(object, name string, status rule.Status, why func() *message) {
	c := testCase{Name: escape.Text(name), Class: escape.Text(object)}
	switch {
	case status == rule.Other:
		return
	case status == rule.Unloaded:
		c.Skipped = &message{Message: "not loaded on this kernel"}
		s.Skipped++
	case status == rule.Fails:
		c.Failure = why()
		s.Failures++
	case status > rule.Other:
		c.Skipped = why()
		c.Skipped.Type = ""
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// reasons lists what stands against a program on a kernel with a loader, or with any if it is "", the worst first. The
// type is the code of that.
func reasons(p *verdict.ProgramRow, kernel int, l rule.Loader) *message {
	var m message
	last := ""
	for i := range p.Findings {
		f := &p.Findings[i]
		if f.Status <= rule.Other || !slices.Contains(f.Kernels, kernel) || l != "" && !f.Concerns(l) {
			continue
		}
		text := escape.Text(line(&f.Finding))
		if m.Message == "" {
			m.Message, m.Type = text, string(f.Code)
		}
		if text != last {
			m.Text += text + "\n"
		}
		last = text
	}
	return &m
}

// deciders lists the reasons against an object on a kernel: those against the
// programs that decide its verdict. The worst is in the message.
func deciders(r *verdict.Report, o *verdict.ObjectRow, kernel int) *message {
	var m message
	worst := rule.OK
	for _, d := range o.Decides {
		if !slices.Contains(d.Kernels, kernel) {
			continue
		}
		p := &r.Programs[d.Program]
		of := reasons(p, kernel, o.Loader)
		name := escape.Text(p.Name)
		if s := p.Status[kernel]; s > worst {
			worst, m.Message, m.Type = s, name+": "+of.Message, of.Type
		}
		m.Text += name + ":\n" + of.Text
	}
	return &m
}
