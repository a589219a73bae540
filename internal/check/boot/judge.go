// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/btfgen/btfgen/internal/check"
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

// Table counts predicted verdicts by what happened. It lists the programs that were predicted to work and did not, with the reasons.
type Table struct {
	works, fails map[check.Status]int
	forbidden    int // programs that the user may not load
	surprises    map[string]int
}

// Add counts a program that was tried, by its verdict. The name includes the object's. errno is 0 if it worked, else why says why not.
func (t *Table) Add(name string, verdict check.Status, errno int, why string) {
	if t.works == nil {
		t.works, t.fails, t.surprises = make(map[check.Status]int), make(map[check.Status]int), make(map[string]int)
	}
	switch errno {
	case 0:
		t.works[verdict]++
		return
	case int(syscall.EPERM):
		t.forbidden++
		return
	}
	t.fails[verdict]++
	if verdict <= check.Guarded {
		t.surprises[fmt.Sprintf("%s: errno %d: %s", name, errno, why)]++
	}
}

// Count is a part of a Table: how many programs with a verdict loaded, and how many did not.
type Count struct {
	Verdict check.Status `json:"verdict"`
	Loads   int          `json:"loads"`
	Fails   int          `json:"fails"`
}

// Counts returns the table, without verdicts that no program has.
func (t *Table) Counts() []Count {
	l := []Count{}
	for s := check.OK; s <= check.Fails; s++ {
		if t.works[s]+t.fails[s] > 0 {
			l = append(l, Count{s, t.works[s], t.fails[s]})
		}
	}
	return l
}

// columns are the verdicts of a Markdown table.
var columns = []check.Status{check.OK, check.Guarded, check.MayFail, check.Unknown, check.Fails}

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
		row += fmt.Sprintf("%d/%d|", t.works[s], t.fails[s])
	}
	return row
}

// Surprises returns the programs that were predicted to work and did not.
func (t *Table) Surprises() (l []string) {
	if t.forbidden > 0 {
		l = append(l, fmt.Sprintf("without %d that may not be loaded here", t.forbidden))
	}
	for _, why := range slices.Sorted(maps.Keys(t.surprises)) {
		l = append(l, fmt.Sprintf("%d predicted wrong: %s", t.surprises[why], why))
	}
	return l
}
