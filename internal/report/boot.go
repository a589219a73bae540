// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/check/boot"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// Boot is the report of check --boot. Its text is written while kernels run, its JSON form at the end.
type Boot struct {
	w       io.Writer
	verbose bool

	kernels []bootedKernel // those that booted
	table   boot.Table     // loading on all kernels
	tables  boot.Tables    // each step on this kernel
	archive boot.Table     // programs on this kernel by whether they are the same with the archive's BTF
	summary []string       // lines of all kernels: of the table, and after it
	notes   []string
	rows    int  // programs on all kernels
	fine    int  // programs on this kernel that work as predicted and are not printed
	same    int  // programs on this kernel that are the same with the archive's BTF
	differ  int  // programs on this kernel that are different with the archive's BTF
	partial bool // the command's output lacks the end of a line
}

// The JSON form of the report.
type (
	bootedKernel struct {
		Name     string          `json:"name"`    // name in the report of check
		Release  string          `json:"release"` // release that the booted kernel reports
		Modules  []string        `json:"modules,omitempty"`
		Emulated string          `json:"emulated,omitempty"` // why it was not run by KVM
		Archive  string          `json:"archive,omitempty"`  // kernel of the archive whose BTF was used
		Programs []bootedProgram `json:"programs"`
	}
	bootedProgram struct {
		Object   string       `json:"object"`
		Name     string       `json:"program"`
		Section  string       `json:"section"`
		AutoLoad bool         `json:"autoload"`
		Status   rule.Status  `json:"status"`                 // predicted
		Load     rule.Status  `json:"load"`                   // the same of loading alone
		EbpfGo   *rule.Status `json:"load_ebpf_go,omitempty"` // the same of loading with cilium/ebpf
		Findings []jsonNote   `json:"findings,omitempty"`     // reasons for the prediction
		Actual   boot.Actual  `json:"actual"`
		Wrong    string       `json:"wrong,omitempty"`
	}
)

// NewBoot returns a report whose text goes to w.
func NewBoot(w io.Writer, verbose bool) *Boot { return &Boot{w: w, verbose: verbose} }

// JSON writes the report as JSON. Within a version, fields are only added.
func (b *Boot) JSON(w io.Writer, findings any) error {
	enc := escape.JSON(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Version  int            `json:"version"`
		Kernels  []bootedKernel `json:"kernels"`
		Table    []boot.Count   `json:"table"` // counts of all kernels
		Findings any            `json:"findings"`
	}{1, b.kernels, b.table.Counts(), findings})
}

// Begin writes the name of a kernel.
func (b *Boot) Begin(k *boot.Kernel) {
	with := ""
	if n := len(k.Modules); n > 0 {
		with = " with " + words.Plural(n, "module") + " (" + strings.Join(k.Modules, ", ") + ")"
	}
	escape.Fprintf(b.w, "%s%s:\n", k.Name, with)
	b.fine, b.same, b.differ, b.partial, b.tables, b.archive = 0, 0, 0, false, boot.Tables{}, boot.Table{}
}

// Output writes a part of a command's output.
func (b *Boot) Output(text string) {
	for line := range strings.Lines(text) {
		if !b.partial {
			io.WriteString(b.w, "  ")
		}
		text, whole := strings.CutSuffix(line, "\n")
		escape.Fprintf(b.w, "%s", strings.TrimSuffix(text, "\r"))
		if b.partial = !whole; whole {
			io.WriteString(b.w, "\n")
		}
	}
}

// Object writes the predicted and actual results of an object's programs. Programs that work as predicted are counted, and
// printed only with --verbose.
func (b *Boot) Object(rows []boot.Row) {
	w := tabwriter.NewWriter(b.w, 0, 0, 2, ' ', 0)
	var wrong []*boot.Row
	for i := range rows {
		row := &rows[i]
		p, a := row.Program, row.Actual()
		b.rows++
		b.tables.Add(row)
		b.archive.AddArchive(row)
		different := a.Archive != "" && a.Archive != boot.Same
		switch {
		case different:
			b.differ++
		case a.Archive != "":
			b.same++
		}
		mark := ""
		if row.Wrong() != "" {
			mark = "WRONG: "
			wrong = append(wrong, row)
		} else if a.Outcome == boot.Loads && differs(row, a) == "" && !different && p.Status[0] <= rule.Guarded && !b.verbose {
			b.fine++
			continue
		}
		predicted := boot.Predicted(p.Load[0], p.Unjudged())
		if all := p.Status[0]; all > max(p.Load[0], rule.Guarded) {
			predicted += ", " + all.String() + " to attach"
		}
		escape.Fprintf(w, "  %s\t%s\t%s\t%s%s\n", p.Object, p.Name, predicted, mark, actual(row, a))
	}
	w.Flush()
	for _, row := range wrong {
		b.wrong(row)
	}
	if len(rows) > 0 && rows[0].Unread != "" {
		escape.Fprintf(b.w, "  %s: ebpf-go does not read it: %s\n", rows[0].Program.Object, rows[0].Unread)
	}
}

// differs returns the result of cilium/ebpf if it reads the object and its result differs.
func differs(row *boot.Row, a boot.Actual) string {
	if row.Unread != "" {
		return ""
	}
	return a.EbpfGo
}

// actual describes the result of a program in the guest.
func actual(row *boot.Row, a boot.Actual) string {
	text := a.Outcome
	switch {
	case a.Outcome == boot.Fails:
		text = "does not load: " + a.Reason
	case a.Reason != "" && a.Reason != boot.NoResult:
		text += ": " + a.Reason
	case a.Attach != "":
		text += "; " + a.Attach
	}
	switch alone := differs(row, a); alone {
	case "":
	case boot.Loads:
		text += "; loads with ebpf-go"
	default:
		text += "; does not load with ebpf-go: " + alone
	}
	if a.Archive != "" && a.Archive != boot.Same {
		text += "; DIFFERS: " + a.Archive
	}
	return text
}

// wrong writes the reasons for a wrong prediction and the end of the verifier's log, or the whole log that the machine sent.
func (b *Boot) wrong(row *boot.Row) {
	p := row.Program
	escape.Fprintf(b.w, "  WRONG: %s: %s %s\n", p.Object, p.Name, row.Wrong())
	for _, f := range row.Findings() {
		escape.Fprintf(b.w, "      predicted: %s: %s\n", f.Status, Sentence(&f.Finding))
	}
	lines := strings.Split(strings.TrimSpace(row.Actual().Log), "\n")
	if !b.verbose {
		lines = logEnd(lines)
	}
	for _, line := range lines {
		if line != "" {
			escape.Fprintf(b.w, "      | %s\n", strings.TrimRight(line, "\r"))
		}
	}
}

// logEnd returns the last lines of a verifier's log, without the statistics below them.
func logEnd(lines []string) []string {
	const most = 6
	end := len(lines)
	for ; end > 1; end-- {
		if first, _, _ := strings.Cut(lines[end-1], " "); first != "processed" && first != "verification" && first != "stack" {
			break
		}
	}
	return lines[max(0, end-most):end]
}

// End writes how a booted kernel ended.
func (b *Boot) End(k *boot.Kernel) {
	out := bootedKernel{Name: k.Name, Release: k.Release, Modules: k.Modules, Emulated: k.Emulated}
	if b.partial {
		io.WriteString(b.w, "\n")
		b.partial = false
	}
	if b.fine > 0 {
		escape.Fprintf(b.w, "  %s ok, as predicted\n", words.Plural(b.fine, "program"))
	}
	if b.same+b.differ > 0 {
		out.Archive = k.Match.Key.String()
		escape.Fprintf(b.w, "  %s the same with the archive's BTF for %s, %d different\n", words.Plural(b.same, "program"), k.Match.Key, b.differ)
	}
	if k.Trial != nil {
		for i, step := range boot.Steps {
			b.summary = append(b.summary, b.tables[i].Row(cmp.Or(k.Release, k.Name), step.Name))
			for _, l := range slices.Sorted(slices.Values(b.tables[i].Surprises)) {
				b.notes = append(b.notes, step.Name+": "+l)
			}
		}
		if b.same+b.differ > 0 {
			b.summary = append(b.summary, b.archive.Row(cmp.Or(k.Release, k.Name), "same with the archive's BTF"))
		}
		b.table.Merge(&b.tables[0])
		out.Programs = []bootedProgram{}
		for i := range k.Trial.Rows {
			row := &k.Trial.Rows[i]
			p := row.Program
			var findings []jsonNote
			for _, f := range row.Findings() {
				findings = append(findings, jsonNote{f.Finding, Sentence(&f.Finding)})
			}
			var other *rule.Status
			if row.EbpfGo != nil {
				other = &row.EbpfGo.Load[0]
			}
			out.Programs = append(out.Programs, bootedProgram{
				p.Object, p.Name, p.Section, p.AutoLoad, p.Status[0], p.Load[0], other, findings, row.Actual(), row.Wrong(),
			})
		}
	}
	b.kernels = append(b.kernels, out)
}

// Sum writes a Markdown table of all kernels, and below it what was predicted to work and did not.
func (b *Boot) Sum() {
	escape.Fprintf(b.w, "%s on %s, predicted against actual (works/does not):\n\n", words.Plural(b.rows, "program"), words.Plural(len(b.kernels), "kernel"))
	for _, l := range slices.Concat(boot.Header(), b.summary) {
		escape.Fprintf(b.w, "%s\n", l)
	}
	for i, l := range b.notes {
		if i == 0 {
			io.WriteString(b.w, "\n")
		}
		escape.Fprintf(b.w, "%s\n", l)
	}
}
