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

// Table counts predicted verdicts on loading by what happened. It lists the programs that were predicted to load and did
// not, with the reasons.
type Table struct {
	loads, fails map[check.Status]int
	forbidden    int // programs that the user may not load
	surprises    map[string]int
}

// Add counts a program that was tried, by the verdict on loading it. The name includes the object's. errno is 0 if it was loaded, else
// why says why not.
func (t *Table) Add(name string, verdict check.Status, errno int, why string) {
	if t.loads == nil {
		t.loads, t.fails, t.surprises = make(map[check.Status]int), make(map[check.Status]int), make(map[string]int)
	}
	switch errno {
	case 0:
		t.loads[verdict]++
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

// Count is a line of a Table: how many programs with a verdict loaded, and how many did not.
type Count struct {
	Verdict check.Status `json:"verdict"`
	Loads   int          `json:"loads"`
	Fails   int          `json:"fails"`
}

// Counts returns the table, without verdicts that no program has.
func (t *Table) Counts() []Count {
	l := []Count{}
	for s := check.OK; s <= check.Fails; s++ {
		if t.loads[s]+t.fails[s] > 0 {
			l = append(l, Count{s, t.loads[s], t.fails[s]})
		}
	}
	return l
}

// Lines returns the table as text.
func (t *Table) Lines() (l []string) {
	l = append(l, "verdict    loads  fails")
	for _, c := range t.Counts() {
		l = append(l, fmt.Sprintf("%-9s  %5d  %5d", c.Verdict, c.Loads, c.Fails))
	}
	if t.forbidden > 0 {
		l = append(l, fmt.Sprintf("without %d that may not be loaded here", t.forbidden))
	}
	for _, why := range slices.Sorted(maps.Keys(t.surprises)) {
		l = append(l, fmt.Sprintf("%d predicted wrong: %s", t.surprises[why], why))
	}
	return l
}
