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

// explained begins the lines with which verifiers since Linux 7.3 explain the line before.
const explained = "Verification failed: "

// reason returns the line of a log, of the verifier and libbpf, that best explains why a program was not loaded.
func reason(errno int, log string) string {
	best := fmt.Sprintf("errno %d", errno)
	if strings.Contains(log, poisonedCall) || strings.Contains(log, poisonedLoad) {
		return "reaches an unresolved relocation"
	}
	for l := range strings.Lines(log) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, explained) {
			break
		}
		if l != "" && !slices.ContainsFunc(noise, func(p string) bool { return strings.HasPrefix(l, p) }) {
			best = l
		}
	}
	return best[:min(len(best), 160)]
}

// Table counts predicted verdicts by what happened.
type Table struct {
	counts    [rule.Fails + 1]Count // indexed by verdict
	unjudged  Count                 // programs predicted to work with something that is not judged; counts do not have them
	Surprises []string              // programs predicted to work that did not, with the reasons
}

// Count is a part of a Table: how many programs with a verdict loaded, and how many did not.
type Count struct {
	Verdict  rule.Status `json:"verdict"`
	Unjudged bool        `json:"unjudged,omitempty"` // programs with something that is not judged
	Loads    int         `json:"loads"`
	Fails    int         `json:"fails"`
}

// Unjudged names the verdict on programs that are to work, of which something is not judged.
const Unjudged = "ok, not judged"

// Predicted names a verdict. unjudged says that something of the program is not judged.
func Predicted(s rule.Status, unjudged bool) string {
	if unjudged && s <= rule.Guarded {
		return Unjudged
	}
	return s.String()
}

// count returns the count of a verdict, as Predicted names it.
func (t *Table) count(s rule.Status, unjudged bool) *Count {
	if Predicted(s, unjudged) == Unjudged {
		return &t.unjudged
	}
	return &t.counts[s]
}

// add counts a step of a program, if it was tried. The name includes the object's.
func (t *Table) add(name string, s step) {
	c := t.count(s.predicted, s.unjudged)
	switch s.outcome {
	case Loads:
		c.Loads++
	case Fails:
		c.Fails++
		if s.predicted <= rule.Guarded {
			t.Surprises = append(t.Surprises, "predicted wrong: "+name+": "+s.why)
		}
	}
}

// AddArchive counts a program that was loaded with the archive's BTF, too, as one that works if it is the same.
func (t *Table) AddArchive(r *Row) {
	c := t.count(r.Program.Load[0], r.Program.Unjudged())
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
	for i := range o.counts {
		t.counts[i].merge(&o.counts[i])
	}
	t.unjudged.merge(&o.unjudged)
}

func (c *Count) merge(o *Count) {
	c.Loads += o.Loads
	c.Fails += o.Fails
}

// Counts returns the table, without verdicts that no program has.
func (t *Table) Counts() []Count {
	l := []Count{}
	add := func(c Count) {
		if c.Loads+c.Fails > 0 {
			l = append(l, c)
		}
	}
	for i, c := range t.counts {
		c.Verdict = rule.Status(i)
		add(c)
	}
	u := t.unjudged
	u.Verdict, u.Unjudged = rule.OK, true
	add(u)
	return l
}

// columns returns the columns of a Markdown table.
func (t *Table) columns() (names []string, counts []Count) {
	add := func(name string, c Count) { names, counts = append(names, name), append(counts, c) }
	for _, s := range []rule.Status{rule.OK, rule.Guarded, rule.MayFail, rule.Unknown, rule.Fails} {
		if s == rule.MayFail {
			add(Unjudged, t.unjudged)
		}
		add(s.String(), t.counts[s])
	}
	return names, counts
}

// Header returns the first lines of a Markdown table of Rows.
func Header() []string {
	head, rule := "|kernel|step|", "|---|---|"
	names, _ := new(Table).columns()
	for _, name := range names {
		head += name + "|"
		rule += "---:|"
	}
	return []string{head, rule}
}

// Row returns the table as a row of a Markdown table: for each verdict, how many programs worked / how many did not.
func (t *Table) Row(kernel, step string) string {
	row := fmt.Sprintf("|%s|%s|", kernel, step)
	_, counts := t.columns()
	for _, c := range counts {
		row += fmt.Sprintf("%d/%d|", c.Loads, c.Fails)
	}
	return row
}
