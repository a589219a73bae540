// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"maps"
	"strings"
	"sync"
)

// callers are since when programs may call helpers: by type of programs, with the type of attachment behind a slash where that counts, and
// by number of the helper.
type callers map[string]map[int64]Period

// helperTable is helperText. A test reads it, so that there is no mistake in it.
var helperTable = sync.OnceValue(func() callers {
	c, err := readCallers(readFile("helpers.txt"))
	if err != nil {
		panic(err)
	}
	return c
})

// Helpers returns since when programs may call helpers, by number, nil where that is not known; and what the programs are called in the
// table. attach is the type of attachment, "BPF_LSM_MAC", "" for none.
func Helpers(progType, attach string) (of map[int64]Period, name string) {
	return helperTable().of(progType, attach)
}

// Callers returns the types of programs of which [Helpers] knows something.
func Callers() (l []string) {
	for name := range helperTable() {
		if strings.ToUpper(name) == name { // others are sets
			l = append(l, name)
		}
	}
	return l
}

func (c callers) of(progType, attach string) (map[int64]Period, string) {
	if t := progType + "/" + strings.TrimPrefix(attach, "BPF_"); c[t] != nil {
		return c[t], t
	}
	return c[progType], progType
}

// readCallers reads lines "TYPES: HELPERS", in which a helper may be followed by @AFTER..BY, and lines "late TYPES: HELPERS" and
// "early TYPES: HELPERS", which say more of some helpers of earlier lines: since when, or that they were allowed up to AFTER.
func readCallers(text string) (callers, error) {
	numbers := make(map[string]int64, LastHelper)
	for id := range LastHelper + 1 {
		numbers[strings.TrimPrefix(HelperName(id), "bpf_")] = id
	}
	all := make(callers)
	err := eachLine(text, func(types, helpers []string) error {
		of := make(map[int64]Period)
		for _, w := range helpers {
			name, p, err := callerPeriod(w)
			if err != nil {
				return err
			}
			id, ok := numbers[name]
			if !ok {
				return fmt.Errorf("there is no helper %s", name)
			}
			if types[0] == "early" {
				p.Since, p.Until = Change{}, p.Since
			}
			of[id] = p
		}
		late := types[0] == "late" || types[0] == "early"
		for i, t := range types {
			switch {
			case late && i == 0:
			case late && all[t] == nil, !late && all[t] != nil:
				return fmt.Errorf("%s: missing or twice", t)
			case late:
				all[t] = maps.Clone(all[t]) // which others share
				maps.Copy(all[t], of)
			default:
				all[t] = of
			}
		}
		return nil
	})
	return all, err
}

// callerPeriod cuts @AFTER..BY from a word, if it has that.
func callerPeriod(word string) (name string, p Period, err error) {
	name, when, ok := strings.Cut(word, "@")
	if ok {
		p.Since, err = parseChange(when)
	}
	return name, p, err
}

// eachLine calls f for each line "NAMES: WORDS" of a table, in which +NAME is replaced by the words of an earlier line. Lines that
// begin with two spaces continue the line before; # begins a comment.
func eachLine(text string, f func(names, words []string) error) error {
	lines := make(map[string][]string)
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		line, _, _ = strings.Cut(line, "#")
		left, right, ok := strings.Cut(line, ":")
		if strings.TrimSpace(line) == "" {
			continue
		} else if !ok {
			return fmt.Errorf("%q: no colon", line)
		}
		var words []string
		for _, w := range strings.Fields(right) {
			if set, is := strings.CutPrefix(w, "+"); !is {
				words = append(words, w)
			} else if lines[set] == nil {
				return fmt.Errorf("%s: %s does not come before it", left, set)
			} else {
				words = append(words, lines[set]...)
			}
		}
		names := strings.Fields(left)
		for _, name := range names {
			lines[name] = words
		}
		if err := f(names, words); err != nil {
			return fmt.Errorf("%s: %w", left, err)
		}
	}
	return nil
}
