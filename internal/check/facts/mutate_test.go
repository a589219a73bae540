// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/kerneltree"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// mutation is a table with a mistake.
type mutation struct {
	what  string
	text  string // the text of the table
	entry int
}

// mutations returns a table with one property of each entry changed: a witness, setting or release left out, replaced or turned round. It also
// has each entry changed to what every kernel has.
func mutations(t *testing.T, file string) (all []mutation) {
	t.Helper()
	text := readFile(file)
	lines := strings.SplitAfter(text, "\n")
	l, err := entries(file, text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l {
		e := &l[i]
		change := func(what string, line int, to ...string) {
			out := slices.Concat(lines[:line-1], to, lines[line:])
			all = append(all, mutation{fmt.Sprintf("%s: %s", e.name, what), strings.Join(out, ""), i})
		}
		var examples []string
		for _, p := range e.properties {
			if slices.Contains([]string{"yes", "no", "perhaps", "programs", "names"}, p.key) {
				examples = append(examples, "\t"+p.key+": "+p.value+"\n")
			}
		}
		end := len(lines)
		if i+1 < len(l) {
			end = l[i+1].line - 1
		}
		every := slices.Concat(lines[:e.line], []string{"\tsince: always\n"}, examples, lines[end:])
		only := slices.ContainsFunc(e.properties, func(p property) bool { return p.key == "only" }) // TestKfuncMutations changes it
		if !only && !slices.Contains(e.properties, property{"since", "always", e.line + 1}) {
			all = append(all, mutation{e.name + ": every kernel has it", strings.Join(every, ""), i})
		}
		isWitness := func(p property) bool { return p.key == "witness" }
		i := slices.IndexFunc(e.properties, isWitness)
		several := i >= 0 && slices.ContainsFunc(e.properties[i+1:], isWitness)
		for _, p := range e.properties {
			set := func(key, value string) {
				change(fmt.Sprintf("%s: %s instead of %s: %s", key, value, p.key, p.value), p.line, "\t"+key+": "+value+"\n")
			}
			drop := func() { change("without "+p.key+": "+p.value, p.line) }
			switch p.key {
			case "since", "until":
				c, err := ParseChange(p.value)
				if err != nil {
					t.Fatal(err)
				}
				if c.By == 0 {
					set(p.key, "7.2")
					continue
				}
				c.By -= Linux(0, 1)
				if c.After == 0 && c.By&0xff00 != 0xff00 {
					set(p.key, c.String())
				}
				c.By += Linux(0, 2)
				set(p.key, c.String())
				set("since", "always")
			case "witness", "hint", "against", "needs":
				drop()
				set(p.key, replacement(p.value))
				for _, key := range []string{"witness", "hint", "against", "needs"} {
					if key != p.key && !(key == "hint" && several) { // of several witnesses, one is enough to show that all are missing
						set(key, p.value)
					}
				}
			case "names":
				for name := range strings.FieldsSeq(p.value) {
					if others := slices.DeleteFunc(strings.Fields(p.value), func(s string) bool { return s == name }); file == "hooks.txt" && len(others) > 0 {
						change("without "+name, p.line, "\tnames: "+strings.Join(others, " ")+"\n")
					}
				}
			case "setting":
				drop()
				set(p.key, "CONFIG_NO_SUCH_SETTING")
			}
		}
	}
	return all
}

// replacement returns another witness of the same kind.
func replacement(witness string) string {
	w, err := parseWitness(witness, certain)
	if err != nil {
		panic(err)
	}
	switch w.kind {
	case enumerator:
		return "bpf_func_id:BPF_FUNC_map_lookup_elem"
	case function, static:
		return "bpf_check()"
	}
	return "bpf_prog"
}

// TestMutations changes one property after the other, and checks that an example fails.
func TestMutations(t *testing.T) {
	slow.Skip(t)
	debians, matrix := readDebians(t), trees(t)
	tried, missed := 0, 0
	for _, file := range []string{"facts.txt", "maps.txt", "hooks.txt", "kfuncs.txt"} {
		for _, m := range mutations(t, file) {
			tried++
			table, err := readTables(func(name string) string {
				if name == file {
					return m.text
				}
				return readFile(name)
			})
			if err != nil {
				continue // the mistake is noticed
			}
			at := m.entry
			for _, before := range []string{"facts.txt", "maps.txt", "hooks.txt", "kfuncs.txt"} {
				if before == file {
					break
				}
				l, _ := entries(before, readFile(before))
				at += len(l)
			}
			if len(table.wrong(table.rows[at], debians)) > 0 {
				continue
			}
			if file == "hooks.txt" {
				if wrong, _ := hooksDisagree(t, matrix, table); len(wrong) > 0 {
					continue
				}
			}
			t.Errorf("%s: %s: no example fails", file, m.what)
			missed++
		}
	}
	t.Logf("%d of %d changes noticed", tried-missed, tried)
}

// TestHelperMutations changes one property of a helper after the other, and checks that TestPrototypes fails.
func TestHelperMutations(t *testing.T) {
	slow.Skip(t)
	const file = "helpers.txt"
	text, types, protos := readFile(file), groups(programTable()), readPrototypes(t)
	lines := strings.SplitAfter(text, "\n")
	l, err := entries(file, text)
	if err != nil {
		t.Fatal(err)
	}
	tried, missed := 0, 0
	for i := range l {
		for _, p := range l[i].properties {
			if p.key == "since" || p.key == "vendors" || strings.HasPrefix(p.key, "callers") {
				continue // TestCallerMutations changes them
			}
			if p.key == "filled" || p.key == "compare" {
				continue // no prototype shows it: TestFresh of package check and TestNullSocket of package rule have programs for it
			}
			for _, line := range helperMutants(p) {
				tried++
				out := slices.Concat(lines[:p.line-1], []string{line}, lines[p.line:])
				all, err := readHelpers(strings.Join(out, ""), types)
				if err == nil && len(protos.disagree(all)) == 0 {
					t.Errorf("%s: %q instead of %s: %s is not noticed", l[i].name, line, p.key, p.value)
					missed++
				}
			}
		}
	}
	t.Logf("%d of %d changes noticed", tried-missed, tried)
}

// helperMutants returns lines that differ from a property of a helper: none, with another argument, and with other words.
func helperMutants(p property) (lines []string) {
	lines = append(lines, "")
	for _, r := range []string{"r1", "r2", "r3", "r4", "r5"} {
		if n := "r" + string(r[1]%5+1); strings.Contains(p.value, r) && !(p.key == "calls back" && strings.HasSuffix(p.value, r)) {
			lines = append(lines, "\t"+p.key+": "+strings.Replace(p.value, r, n, 1)+"\n")
		}
	}
	for _, words := range [][2]string{{"reads", "writes"}, {"writes", "reads"}, {" or 0", ""}, {"key", "value"}, {"value", "key"}, {"struct ", "struct sk_"}, {"probe_read", "probe_read_user"}} {
		if strings.Contains(p.value, words[0]) {
			lines = append(lines, "\t"+p.key+": "+strings.Replace(p.value, words[0], words[1], 1)+"\n")
		}
	}
	return lines
}

// otherChanges returns changes that differ from one in a way that trees show: too late, too early, and never.
func otherChanges(t *testing.T, m *kerneltree.Matrix, c Change) (l []string) {
	if c.By != 0 {
		l = append(l, "always")
	}
	var before, seen, later Release // the last tree before the change, the first with it, and the first after that
	for j := range m.Columns {
		r := treeRelease(t, &m.Columns[j])
		switch {
		case !m.Columns[j].Mainline():
		case r < c.By:
			before = r
		case seen == 0:
			seen = r
		case r > seen && later == 0:
			later = r
		}
	}
	if later != 0 {
		l = append(l, Change{c.After, later}.String())
	}
	if early := cmp.Or(c.After, before); early != 0 {
		l = append(l, Change{By: early}.String())
	}
	return l
}

// TestKfuncMutations changes one name, type of programs or release of kfuncs.txt after the other, and checks that TestTreesKfuncs fails.
func TestKfuncMutations(t *testing.T) {
	slow.Skip(t)
	const file = "kfuncs.txt"
	text, m := readFile(file), trees(t)
	lines := strings.SplitAfter(text, "\n")
	l, err := entries(file, text)
	if err != nil {
		t.Fatal(err)
	}
	const noKfunc = "no_such_kfunc"
	tried, missed := 0, 0
	for i := range l {
		e, end := &l[i], len(lines)
		if i+1 < len(l) {
			end = l[i+1].line - 1
		}
		try := func(key, value, what string) {
			tried++
			var entry strings.Builder
			entry.WriteString(e.name + "\n")
			var names []string
			for _, p := range e.properties {
				if p.key == "names" {
					names = strings.Fields(p.value)
				}
				if p.key == key {
					p.value = value
				}
				if p.value != "" {
					fmt.Fprintf(&entry, "\t%s: %s\n", p.key, p.value)
				}
			}
			out := slices.Concat(lines[:e.line-1], []string{entry.String()}, lines[end:])
			table, err := readTables(func(name string) string {
				if name == file {
					return strings.Join(out, "")
				}
				return readFile(name)
			})
			if err != nil {
				return
			}
			if table.kfuncs[noKfunc] != nil || table.only[noKfunc] != nil {
				return // no tree has it
			}
			for _, name := range names {
				if wrong, _ := kfuncDisagrees(t, m, name, table); len(wrong) > 0 {
					return
				}
			}
			t.Errorf("%s: %s: not noticed", e.name, what)
			missed++
		}
		for _, p := range e.properties {
			switch p.key {
			case "names", "programs", "only":
				words := strings.Fields(p.value)
				for j, word := range words {
					without := strings.Join(slices.Delete(slices.Clone(words), j, j+1), " ")
					try(p.key, without, "without "+word)
					try(p.key, without+" "+map[string]string{"names": noKfunc, "programs": "SOCKET_FILTER", "only": "SK_LOOKUP"}[p.key], "another for "+word)
				}
			case "since":
				c, err := ParseChange(p.value)
				if err != nil {
					t.Fatal(err)
				}
				for _, other := range otherChanges(t, m, c) {
					try(p.key, other, other+" instead of "+p.value)
				}
			}
		}
	}
	t.Logf("%d of %d changes noticed", tried-missed, tried)
}

// TestCallerMutations changes one type of programs or release of a helper after the other, and checks that TestTreesHelpers fails.
func TestCallerMutations(t *testing.T) {
	slow.Skip(t)
	const file = "helpers.txt"
	types, m, vendor := groups(programTable()), trees(t), rhel(t)
	l, err := entries(file, readFile(file))
	if err != nil {
		t.Fatal(err)
	}
	tried, missed := 0, 0
	for i := range l {
		e, id := &l[i], HelperNamed(l[i].name)
		try := func(at int, key, value string) {
			tried++
			changed := *e
			changed.properties = slices.Clone(e.properties)
			if changed.properties[at].key, changed.properties[at].value = key, value; value == "" {
				changed.properties = slices.Delete(changed.properties, at, at+1)
			}
			var h Helper
			if err := h.read(&changed, types); err != nil {
				return
			}
			wrong, _ := helperDisagrees(t, m, id, &h)
			of, _ := vendorDisagrees(t, vendor, id, &h)
			if len(wrong)+len(of)+len(bootedDisagree(id, &h)) == 0 {
				t.Errorf("%s: %s: %s instead of %s: %s: not noticed", e.name, key, value, e.properties[at].key, e.properties[at].value)
				missed++
			}
		}
		for at, p := range e.properties {
			if p.key == "vendors" {
				words := strings.Fields(p.value)
				for j := range words {
					try(at, p.key, strings.Join(slices.Delete(slices.Clone(words), j, j+1), " "))
				}
			}
			when, callers := strings.CutPrefix(p.key, "callers")
			if p.key != "since" && !callers {
				continue
			}
			word := ""
			if callers {
				words := strings.Fields(p.value)
				for j := range words {
					try(at, p.key, strings.Join(slices.Delete(slices.Clone(words), j, j+1), " "))
				}
				if word, when, _ = strings.Cut(strings.TrimSpace(when), " "); word == "" {
					continue
				}
			} else {
				when = p.value
			}
			c, err := ParseChange(when)
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range otherChanges(t, m, c) {
				switch {
				case !callers:
					try(at, p.key, other)
				case other == "always":
					try(at, "callers", p.value)
				default:
					try(at, "callers "+word+" "+other, p.value)
				}
			}
		}
	}
	t.Logf("%d of %d changes noticed", tried-missed, tried)
}
