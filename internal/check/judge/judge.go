// SPDX-License-Identifier: Apache-2.0

// Package judge holds what check predicts against what a kernel does: one that
// package boot boots (Trial), or in tests the running one, where testdata/load.c
// loads every program of an object with libbpf, one at a time.
package judge

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
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

// Load runs the loader on an object file. An object that libbpf does not open
// gives one outcome of the program "-".
func Load(loader, object string) ([]Outcome, error) {
	out, err := exec.Command(loader, object).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", loader, object, err)
	}
	return parse(out)
}

func parse(out []byte) (all []Outcome, err error) {
	for len(out) > 0 {
		line, rest, _ := bytes.Cut(out, []byte("\n"))
		var o Outcome
		var n int
		if _, err := fmt.Sscanf(string(line), "%s %d %d", &o.Program, &o.Errno, &n); err != nil || n < 0 || n > len(rest) {
			return nil, fmt.Errorf("line %q of the loader", line)
		}
		o.Log, out = string(rest[:n]), rest[n:]
		all = append(all, o)
	}
	return all, nil
}

// invalidFunc is what verifiers say of a helper that they do not have, and that a
// program may not call.
var invalidFunc = regexp.MustCompile(`(?:invalid func|unknown func|cannot use helper) [\w.]*#(\d+)`)

// badRelocation is the number of the helper that libbpf makes poisoned
// instructions call.
const badRelocation = 0xbad2310

// What the verifier says of poisoned instructions, and of those that cilium/ebpf has instead in place of long loads.
var (
	poisonedCall = fmt.Sprintf("invalid func unknown#%d", badRelocation)
	poisonedLoad = fmt.Sprintf("(18) r10 = 0x%x", badRelocation)
)

// causes says what the messages blame: relocations, and missing helpers.
func (o *Outcome) causes() (core, helper bool) {
	core = strings.Contains(o.Log, "CO-RE relocation") || strings.Contains(o.Log, "failed to relocate")
	helper = strings.Contains(o.Log, "helper call might sleep") || strings.Contains(o.Log, "sleepable helper")
	for _, m := range invalidFunc.FindAllStringSubmatch(o.Log, -1) {
		switch id, _ := strconv.Atoi(m[1]); {
		case id == badRelocation:
			core = true
		case id < 1<<20: // libbpf's own for missing kfuncs are greater
			helper = true
		}
	}
	return core, helper
}

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

// Comparison is a prediction held against what happened.
type Comparison struct {
	Program   string       // with its object
	Verdict   check.Status // on loading it
	Predicted check.Status // for relocations and helpers alone
	Happened  string       // "loads", "fails" for such a cause, or "fails for another reason"
	Wrong     string       // what was wrong with the prediction, "" if nothing was
}

// Compare compares an outcome with the report on the kernel with this index.
func Compare(p *check.Program, kernel int, got *Outcome) (c Comparison) {
	c.Program, c.Verdict = p.Object+": "+p.Name, p.Load[kernel]
	core, helper := statusOf(p, kernel, check.TopicCORE), statusOf(p, kernel, check.TopicHelper)
	c.Predicted = max(core, helper)
	byCore, byHelper := got.causes()
	switch {
	case got.Errno == 0:
		c.Happened = "loads"
	case got.Errno == int(syscall.EPERM):
		c.Happened = "is not permitted" // which tells nothing of the kernel
		return c
	case byCore || byHelper:
		c.Happened = "fails"
	default:
		c.Happened = "fails for another reason"
	}
	switch {
	case c.Predicted == check.Fails && got.Errno != 0 && c.Happened != "fails" && failsToLoad(p, kernel):
		// The other reason, such as a map that is made before, was predicted as well.
	case c.Predicted == check.Fails && c.Happened != "fails":
		c.Wrong = "was to fail, but " + c.Happened
	case c.Predicted < check.Unknown && c.Happened == "fails":
		c.Wrong = "was to load, but fails"
	case c.Predicted == check.Fails && (byCore && core != check.Fails || !byCore && helper != check.Fails):
		c.Wrong = "fails, but for another cause"
	case got.Errno == 0 && failsToLoad(p, kernel):
		c.Wrong = "was to fail for another reason, but loads"
	}
	if c.Wrong != "" {
		c.Wrong = fmt.Sprintf("%s: %s %s: %s\n%v", p.Object, p.Name, c.Wrong, tail(got.Log), p.Findings)
	}
	return c
}

// Table counts verdicts on loading against what happened, and why programs of which
// they say that they load did not.
type Table struct {
	loads, fails map[check.Status]int
	forbidden    int // programs that the test may not load
	unforeseen   map[string]int
}

// Add counts a comparison of an outcome.
func (t *Table) Add(c *Comparison, got *Outcome) {
	if t.loads == nil {
		t.loads, t.fails, t.unforeseen = make(map[check.Status]int), make(map[check.Status]int), make(map[string]int)
	}
	switch got.Errno {
	case 0:
		t.loads[c.Verdict]++
		return
	case int(syscall.EPERM):
		t.forbidden++
		return
	}
	t.fails[c.Verdict]++
	if c.Verdict <= check.Guarded {
		t.unforeseen[fmt.Sprintf("%s: errno %d: %s", c.Program, got.Errno, got.Reason())]++
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

func tail(log string) string { return log[max(0, len(log)-800):] }

// statusOf is the worst of a program's findings on a topic, but for those that count
// where it is attached.
func statusOf(p *check.Program, kernel int, topic check.Topic) check.Status {
	s := check.OK
	for _, f := range p.Findings {
		if f.Topic == topic && !f.Attach && slices.Contains(f.Kernels, kernel) {
			s = max(s, f.Status)
		}
	}
	return s
}

// failsToLoad reports whether any finding says that the program does not load.
func failsToLoad(p *check.Program, kernel int) bool {
	for _, k := range []check.Topic{check.TopicKfunc, check.TopicInsn, check.TopicKsym, check.TopicKconfig, check.TopicMap, check.TopicProg, check.TopicAttach, check.TopicTarget, check.TopicContext, check.TopicReturn, check.TopicMapDef} {
		if statusOf(p, kernel, k) == check.Fails {
			return true
		}
	}
	return false
}
