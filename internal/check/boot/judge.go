// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// badRelocation is the number of the helper that poisoned instructions call.
const badRelocation = 0xbad2310

// The verifier's messages about poisoned instructions. cilium/ebpf writes the second one in place of a 64-bit load.
var (
	poisonedCall = fmt.Sprintf("invalid func unknown#%d", badRelocation)
	poisonedLoad = fmt.Sprintf("(18) r10 = 0x%x", badRelocation)
)

// noise begins lines of a log that do not say why a program was not loaded.
var noise = []string{"libbpf: failed to load object", "processed ", "libbpf: --", "libbpf: prog '"}

// reason returns the line of a log, of the verifier and libbpf, that best explains why a program was not loaded.
func reason(errno int, log string) string {
	best := fmt.Sprintf("errno %d", errno)
	if strings.Contains(log, poisonedCall) || strings.Contains(log, poisonedLoad) {
		return "reaches an unresolved relocation"
	}
	for l := range strings.Lines(log) {
		l = strings.TrimSpace(l)
		if l != "" && !slices.ContainsFunc(noise, func(p string) bool { return strings.HasPrefix(l, p) }) {
			best = l
		}
	}
	return best[:min(len(best), 160)]
}

// Table counts predicted verdicts by what happened.
type Table struct {
	counts    [rule.Fails + 1]Count // by verdict
	Surprises []string              // programs that were predicted to work and did not, with the reasons
}

// Count is a part of a Table: how many programs with a verdict loaded, and how many did not.
type Count struct {
	Verdict rule.Status `json:"verdict"`
	Loads   int         `json:"loads"`
	Fails   int         `json:"fails"`
}

// add counts a step of a program, if it was tried. The name includes the object's.
func (t *Table) add(name string, s step) {
	switch s.outcome {
	case Loads:
		t.counts[s.predicted].Loads++
	case Fails:
		t.counts[s.predicted].Fails++
		if s.predicted <= rule.Guarded {
			t.Surprises = append(t.Surprises, "predicted wrong: "+name+": "+s.why)
		}
	}
}

// AddArchive counts a program that was loaded with the archive's BTF, too, as one that works if it is the same.
func (t *Table) AddArchive(r *Row) {
	c := &t.counts[r.Program.Load[0]]
	switch r.Actual().Archive {
	case "":
	case Same:
		c.Loads++
	default:
		c.Fails++
	}
}

// Merge adds the counts of another table.
func (t *Table) Merge(o *Table) {
	for i, c := range o.counts {
		t.counts[i].Loads += c.Loads
		t.counts[i].Fails += c.Fails
	}
}

// Counts returns the table, without verdicts that no program has.
func (t *Table) Counts() []Count {
	l := []Count{}
	for i, c := range t.counts {
		if c.Verdict = rule.Status(i); c.Loads+c.Fails > 0 {
			l = append(l, c)
		}
	}
	return l
}

// columns are the verdicts of a Markdown table.
var columns = []rule.Status{rule.OK, rule.Guarded, rule.MayFail, rule.Unknown, rule.Fails}

// Header returns the first lines of a Markdown table of Rows.
func Header() []string {
	names, rule := "|kernel|step|", "|---|---|"
	for _, s := range columns {
		names += s.String() + "|"
		rule += "---:|"
	}
	return []string{names, rule}
}

// Row returns the table as a row of a Markdown table: for each verdict, how many programs worked / how many did not.
func (t *Table) Row(kernel, step string) string {
	row := fmt.Sprintf("|%s|%s|", kernel, step)
	for _, s := range columns {
		row += fmt.Sprintf("%d/%d|", t.counts[s].Loads, t.counts[s].Fails)
	}
	return row
}
