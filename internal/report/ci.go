// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
)

type (
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Suites  []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
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
		Text    string `xml:",chardata"`
	}
)

// JUnit writes a test suite per kernel with a case per program. What may fail
// or is unknown counts as skipped.
func JUnit(w io.Writer, r *check.Report) error {
	var all suites
	for k := range r.Kernels {
		s := suite{Name: foreign.Text(r.Kernels[k].Name)}
		for i := range r.Programs {
			p := &r.Programs[i]
			if p.Status[k] == check.Other {
				continue
			}
			c := testCase{Name: foreign.Text(p.Name), Class: foreign.Text(p.Object)}
			switch st := p.Status[k]; {
			case st == check.Fails:
				c.Failure = reasons(p, k)
				s.Failures++
			case st > check.Other:
				c.Skipped = reasons(p, k)
				s.Skipped++
			}
			s.Cases = append(s.Cases, c)
		}
		s.Tests = len(s.Cases)
		all.Suites = append(all.Suites, s)
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

// reasons lists what stands against a program on a kernel.
func reasons(p *check.Program, kernel int) *message {
	var m message
	for i := range p.Findings {
		f := &p.Findings[i]
		if f.Status <= check.Other || !has(f.Kernels, kernel) {
			continue
		}
		line := foreign.Text(sentence(&f.Finding))
		if m.Message == "" {
			m.Message = line
		}
		m.Text += line + "\n"
	}
	return &m
}

func has(l []int, x int) bool {
	for _, y := range l {
		if x == y {
			return true
		}
	}
	return false
}

// The part of SARIF 2.1.0 that code hosts show.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver struct {
				Name  string      `json:"name"`
				Rules []sarifRule `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifRule struct {
		ID   string    `json:"id"`
		Text sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
)

var rules = []sarifRule{
	{string(check.TopicCORE), sarifText{"CO-RE relocation without an answer"}},
	{string(check.TopicHelper), sarifText{"Helper that kernels lack"}},
	{string(check.TopicKfunc), sarifText{"Kernel function that kernels lack"}},
	{string(check.TopicInsn), sarifText{"Instruction that kernels' verifiers do not know"}},
	{string(check.TopicKsym), sarifText{"Kernel variable that kernels lack"}},
	{string(check.TopicKconfig), sarifText{"Setting of the kernel's build"}},
	{string(check.TopicMap), sarifText{"Type of maps that kernels lack"}},
	{string(check.TopicProg), sarifText{"Type of programs that kernels lack"}},
	{string(check.TopicAttach), sarifText{"Type of attachment that kernels lack"}},
	{string(check.TopicLink), sarifText{"Type of links that kernels lack"}},
	{string(check.TopicTarget), sarifText{"Nothing to attach to"}},
	{string(check.TopicAnalysis), sarifText{"Cannot be judged"}},
}

// SARIF writes each cause once per source line, so that code hosts annotate
// it. Without a source line the object is named.
func SARIF(w io.Writer, r *check.Report) error {
	var run sarifRun
	run.Tool.Driver.Name, run.Tool.Driver.Rules = "btfgen check", rules
	run.Results = []sarifResult{}
	ordered := order(r)
	for _, c := range r.Causes(check.Unknown) {
		res := sarifResult{Rule: string(c.Topic), Level: "warning"}
		if c.Status == check.Fails {
			res.Level = "error"
		}
		text := foreign.Sprintf("%s: %s: %s. On %s. Programs: %s.", c.Verdict(), c.Subject, c.Reason,
			where(r, ordered, c.Kernels, 5), programs(r, c.Programs, 10))
		res.Message.Text = strings.ReplaceAll(string(text), "](", "] (") // which would be a link
		for _, s := range c.Sources {
			res.Locations = append(res.Locations, location(s))
		}
		if len(res.Locations) == 0 {
			res.Locations = []sarifLocation{location(r.Programs[c.Programs[0]].Object)}
		}
		run.Results = append(run.Results, res)
	}
	return foreign.JSON(w).Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func location(source string) (l sarifLocation) {
	file, line, ok := strings.Cut(source, ":")
	if n, err := strconv.Atoi(line); ok && err == nil && n > 0 {
		l.Physical.Region = &sarifRegion{n}
	}
	u := url.URL{Path: strings.TrimPrefix(file, "./")}
	l.Physical.Artifact.URI = u.String()
	return l
}
