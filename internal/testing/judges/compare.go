// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/btfgen/btfgen/internal/check/boot"
)

// program is a line of the text of check --boot --verbose.
type program struct {
	key
	load    string // the verdict on loading it alone
	outcome string // boot.Loads, boot.Fails or boot.NotTried
	reason  string // why it does not load
}

// programLine matches these lines: object, program, verdict, and what happened.
var programLine = regexp.MustCompile(`^  (\S+) +(\S+) +(ok|guarded|ok, not judged|may fail|unknown|fails)(?:, [a-z ]+ to attach)? +(?:WRONG: )?(loads|does not load|not tried)(?:: (.*?))?(?:; .*)?$`)

// parseReport reads the text of check --boot --verbose about one kernel. kernel is the name in its table.
func parseReport(text string) (kernel string, programs []program, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := programLine.FindStringSubmatch(line); m != nil {
			outcome := m[4]
			if outcome == "does not load" {
				outcome = boot.Fails
			}
			programs = append(programs, program{key{m[1], m[2]}, m[3], outcome, m[5]})
		}
		if f := strings.Split(line, "|"); len(f) > 3 && f[2] == boot.Steps[0].Name {
			if kernel != "" {
				return "", nil, errors.New("a report on several kernels")
			}
			kernel = f[1]
		}
	}
	if kernel == "" || len(programs) == 0 {
		return "", nil, errors.New("no report of check --boot --verbose")
	}
	return kernel, programs, nil
}

// Kinds of disagreement.
const (
	wrongOK    = "wrong ok"
	wrongFails = "wrong fails"
	differ     = "judges differ"
)

var kinds = []string{wrongOK, wrongFails, differ}

// verdicts are the columns of the table.
var verdicts = []string{"ok", "guarded", boot.Unjudged, "may fail", "unknown", "fails"}

// known is a disagreement with a reason.
type known struct {
	kind, object, program, kernel string // the last three are patterns
	reason                        string
}

// parseKnown reads lines "KIND | OBJECT | PROGRAM | KERNEL | REASON".
func parseKnown(text string) ([]known, error) {
	var all []known
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		if len(f) != 5 || f[4] == "" || f[0] != wrongOK && f[0] != wrongFails && f[0] != differ {
			return nil, fmt.Errorf("known.txt:%d: want KIND | OBJECT | PROGRAM | KERNEL | REASON", n)
		}
		for _, p := range f[1:4] {
			if _, err := path.Match(p, ""); err != nil {
				return nil, fmt.Errorf("known.txt:%d: %q: %w", n, p, err)
			}
		}
		all = append(all, known{f[0], f[1], f[2], f[3], f[4]})
	}
	return all, nil
}

func (k *known) matches(kind, object, program, kernel string) bool {
	match := func(pattern, name string) bool { ok, _ := path.Match(pattern, name); return ok }
	return k.kind == kind && match(k.object, object) && match(k.program, program) && match(k.kernel, kernel)
}

// comparison is what three judges say of the programs of a kernel: check, --boot and libbpf.
type comparison struct {
	counts  map[string][2]int // keyed by verdict: how many load with libbpf, and how many do not
	agree   int               // programs of which libbpf and --boot say the same
	untried []string          // programs that this libbpf does not load, or without a result
	new     map[string][]string
	listed  map[string]int
}

// compare compares the verdicts on a kernel and the results of --boot with those of libbpf.
func compare(kernel string, programs []program, results map[key]result, list []known) *comparison {
	c := &comparison{counts: make(map[string][2]int), new: make(map[string][]string), listed: make(map[string]int)}
	for _, p := range programs {
		r, ok := results[p.key]
		if !ok {
			r, ok = results[key{p.object, "-"}]
		}
		name := p.object + ": " + p.program
		if !ok {
			c.untried = append(c.untried, name+": no result")
			continue
		}
		if !r.opened() {
			c.untried = append(c.untried, name+": "+r.why())
			continue
		}
		loads := r.errno == "0"
		n := c.counts[p.load]
		why := ""
		if loads {
			n[0]++
		} else {
			n[1]++
			why = ": libbpf: " + r.why()
		}
		c.counts[p.load] = n
		add := func(kind, text string) {
			for i := range list {
				if list[i].matches(kind, p.object, p.program, kernel) {
					c.listed[kind]++
					return
				}
			}
			c.new[kind] = append(c.new[kind], text)
		}
		switch {
		case !loads && (p.load == "ok" || p.load == "guarded" || p.load == boot.Unjudged):
			add(wrongOK, name+why)
		case loads && p.load == "fails":
			add(wrongFails, name)
		}
		switch {
		case p.outcome == boot.NotTried:
		case (p.outcome == boot.Loads) == loads:
			c.agree++
		default:
			text := name + why + "; --boot: " + p.outcome
			if p.reason != "" {
				text += ": " + p.reason
			}
			add(differ, text)
		}
	}
	return c
}

// bad reports whether a disagreement is not on the list, or nothing was compared.
func (c *comparison) bad() bool { return len(c.new) > 0 || c.agree == 0 }

func (c *comparison) print(w io.Writer, kernel string) {
	row := "|" + kernel + "|real libbpf loads|"
	for _, v := range verdicts {
		row += fmt.Sprintf("%d/%d|", c.counts[v][0], c.counts[v][1])
	}
	fmt.Fprintln(w, row)
	fmt.Fprintf(w, "libbpf and --boot agree on %d programs; libbpf did not try %d\n", c.agree, len(c.untried))
	for _, kind := range kinds {
		if n := c.listed[kind]; n > 0 {
			fmt.Fprintf(w, "%s, with a known reason: %d\n", kind, n)
		}
		for _, text := range c.new[kind] {
			fmt.Fprintf(w, "%s: %s\n", strings.ToUpper(kind), text)
		}
	}
	for _, text := range c.untried {
		fmt.Fprintf(w, "not tried: %s\n", text)
	}
}
