// SPDX-License-Identifier: Apache-2.0

// Package judge holds what check predicts against what a kernel does: one that
// package boot boots (Trial), or in tests the running one, where testdata/load.c
// loads every program of an object with libbpf, one at a time.
package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/btfgen/btfgen/internal/check"
)

// Outcome is what the running kernel made of one program.
type Outcome struct {
	Program string
	Errno   int    // 0 where it was loaded
	Log     string // of the verifier, and libbpf's messages
}

// badRelocation is the number of the helper that libbpf makes poisoned
// instructions call.
const badRelocation = 0xbad2310

// What the verifier says of poisoned instructions, and of those that cilium/ebpf has instead in place of long loads.
var (
	poisonedCall = fmt.Sprintf("invalid func unknown#%d", badRelocation)
	poisonedLoad = fmt.Sprintf("(18) r10 = 0x%x", badRelocation)
)

// Reason is the line of the messages that says most of why a program was not
// loaded.
func (o *Outcome) Reason() string {
	best := fmt.Sprintf("errno %d", o.Errno)
	if strings.Contains(o.Log, poisonedCall) || strings.Contains(o.Log, poisonedLoad) {
		return "reaches a relocation that nothing resolves"
	}
	for l := range strings.Lines(o.Log) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "libbpf: failed to load object") && !strings.HasPrefix(l, "processed ") &&
			!strings.HasPrefix(l, "libbpf: --") && !strings.HasPrefix(l, "libbpf: prog '") {
			best = l
		}
	}
	return best[:min(len(best), 160)]
}

// Table counts verdicts on loading against what happened, and why programs of which
// they say that they load did not.
type Table struct {
	loads, fails map[check.Status]int
	forbidden    int // programs that the test may not load
	unforeseen   map[string]int
}

// Add counts the outcome of a program, and the verdict on loading it. The name has the object's in front.
func (t *Table) Add(name string, verdict check.Status, got *Outcome) {
	if t.loads == nil {
		t.loads, t.fails, t.unforeseen = make(map[check.Status]int), make(map[check.Status]int), make(map[string]int)
	}
	switch got.Errno {
	case 0:
		t.loads[verdict]++
		return
	case int(syscall.EPERM):
		t.forbidden++
		return
	}
	t.fails[verdict]++
	if verdict <= check.Guarded {
		t.unforeseen[fmt.Sprintf("%s: errno %d: %s", name, got.Errno, got.Reason())]++
	}
}

// Count is a line of a Table: how many programs with a verdict on loading did load, and did not.
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
		l = append(l, fmt.Sprintf("%d that may not be loaded here are left out", t.forbidden))
	}
	for _, why := range slices.Sorted(maps.Keys(t.unforeseen)) {
		l = append(l, fmt.Sprintf("%d not foreseen: %s", t.unforeseen[why], why))
	}
	return l
}
