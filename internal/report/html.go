// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
)

//go:embed page.html
var page string

// pageData is what the page shows. Verdicts are a string per program, a digit
// per kernel; sets of kernels are "0-3,7".
type pageData struct {
	Title    string        `json:"title"`
	Kernels  []string      `json:"kernels"`
	Programs []pageProgram `json:"programs"`
	Status   []string      `json:"status"` // names by digit
}

type pageProgram struct {
	Object   string        `json:"o"`
	Name     string        `json:"n"`
	Section  string        `json:"s"`
	Status   string        `json:"v"`
	Findings []pageFinding `json:"f,omitempty"`
	Notes    []string      `json:"t,omitempty"`
}

type pageFinding struct {
	Status  int    `json:"v"`
	Text    string `json:"x"`
	Guard   string `json:"g,omitempty"`
	Kernels string `json:"k"`
}

// HTML writes the report as one self-contained page: a map of programs and
// kernels that can be sorted, filtered and opened to the reasons.
func HTML(w io.Writer, r *check.Report) error {
	d := pageData{Title: summaryLine(r)}
	for s := check.OK; s <= check.Fails; s++ {
		d.Status = append(d.Status, s.String())
	}
	ordered := order(r)
	column := make([]int, len(ordered))
	for i, k := range ordered {
		column[k] = i
		d.Kernels = append(d.Kernels, foreign.Text(r.Kernels[k].Name))
	}
	for i := range r.Programs {
		p := &r.Programs[i]
		out := pageProgram{Object: foreign.Text(p.Object), Name: foreign.Text(p.Name), Section: foreign.Text(p.Section)}
		var v strings.Builder
		for _, k := range ordered {
			v.WriteByte('0' + byte(p.Status[k]))
		}
		out.Status = v.String()
		for _, f := range p.Findings {
			out.Findings = append(out.Findings, pageFinding{int(f.Status), foreign.Text(sentence(&f.Finding)), foreign.Text(f.Guard), ranges(f.Kernels, column)})
		}
		for _, n := range p.Notes {
			out.Notes = append(out.Notes, foreign.Text(n.Subject+" "+n.Reason))
		}
		d.Programs = append(d.Programs, out)
	}
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(d); err != nil { // escapes <, > and &
		return err
	}
	head, tail, _ := strings.Cut(page, "/*DATA*/null")
	b := bufio.NewWriter(w)
	b.WriteString(head)
	b.Write(bytes.TrimSpace(data.Bytes()))
	b.WriteString(tail)
	return b.Flush()
}

// ranges writes a set of kernels as ranges of their columns.
func ranges(set []int, column []int) string {
	in := make([]bool, len(column)+1)
	for _, k := range set {
		in[column[k]] = true
	}
	var parts []string
	for i := 0; i < len(column); i++ {
		if !in[i] {
			continue
		}
		first := i
		for in[i+1] {
			i++
		}
		s := strconv.Itoa(first)
		if i > first {
			s += "-" + strconv.Itoa(i)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ",")
}
