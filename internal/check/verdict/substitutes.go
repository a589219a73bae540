// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// substitute is programs that do the same in several ways.
type substitute struct {
	alternatives [][]int
	guess        Guess
	at           string // target of SameTarget
}

// substitutes finds programs that do the same, attached in different ways. Loaders choose
// one: libbpf-tools have a tp_btf beside a raw_tp, and a kprobe beside a fentry.
func substitutes(o *rule.Object, free map[int]bool) []substitute {
	same := groupByName(o, free, func(i int) (name, at string) { return point(o, i) })
	left := maps.Clone(free)
	for _, k := range same {
		for _, i := range slices.Concat(k.alternatives...) {
			delete(left, i)
		}
	}
	return append(same, groupByName(o, left, func(i int) (name, at string) {
		return strings.TrimSuffix(o.ProgramName(i), "_btf"), ""
	})...)
}

// point returns a name for the place that a program is attached to, if programs can be attached there in several ways; else "". at is the
// place in reports, or "" if only the programs' names are equal.
func point(o *rule.Object, i int) (name, at string) {
	pr := &o.Programs[i]
	what := attachPoints[strings.TrimSuffix(pr.Attach.Prefix, ".s")]
	if what == "" {
		return "", ""
	}
	to := path.Base(pr.Attach.Target(pr.Section))
	switch {
	case to == ".": // no target
		return what + "/" + stem(o.ProgramName(i)), ""
	case what == tracepoint:
		return what + " " + to, what + " " + to
	}
	return what + " " + stem(to), "the " + what + " of " + to
}

// groupByName puts programs of the same name together where they are attached in different ways. A way is one alternative.
func groupByName(o *rule.Object, of map[int]bool, name func(i int) (name, at string)) (out []substitute) {
	at := make(map[string]int)
	var ways [][]string // ways of attaching of the alternatives
	for i := range o.Programs {
		s := o.Programs[i].Attach
		if !of[i] || s == nil {
			continue
		}
		n, to := name(i)
		if n == "" {
			continue
		}
		k, ok := at[n]
		if !ok {
			k = len(out)
			at[n] = k
			of := substitute{guess: SameName, at: to}
			if to != "" {
				of.guess = SameTarget
			}
			out, ways = append(out, of), append(ways, nil)
		}
		way := s.ProgType + " " + s.Type
		a := slices.Index(ways[k], way)
		if a < 0 {
			a = len(ways[k])
			ways[k], out[k].alternatives = append(ways[k], way), append(out[k].alternatives, nil)
		}
		out[k].alternatives[a] = append(out[k].alternatives[a], i)
	}
	return slices.DeleteFunc(out, func(k substitute) bool { return len(k.alternatives) < 2 })
}

const tracepoint = "tracepoint"

// attachPoints are what programs are run at, by the prefixes of the sections that say it in different ways.
var attachPoints = map[string]string{
	"kprobe": "entry", "kprobe.multi": "entry", "fentry": "entry", "fentry.multi": "entry",
	"kretprobe": "exit", "kretprobe.multi": "exit", "fexit": "exit", "fexit.multi": "exit",
	"tp": tracepoint, "tracepoint": tracepoint, "raw_tp": tracepoint, "raw_tracepoint": tracepoint, "tp_btf": tracepoint,
}

// stem returns a name without the words for how a program is attached.
func stem(name string) string {
	words := strings.Split(name, "_")
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains([]string{"fentry", "fexit", "kprobe", "kretprobe"}, w)
	})
	return strings.Join(words, "_")
}
