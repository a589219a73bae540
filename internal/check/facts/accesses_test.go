// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/kerneltree"
)

// TestTreesContexts compares which bytes of their context programs may access with kernel trees.
func TestTreesContexts(t *testing.T) {
	wrong, n := contextsDisagree(t, accesses(t), contextTable())
	report(t, wrong, n, 400000)
	wrong, n = contextsDisagree(t, rhel(t), contextTable())
	report(t, wrong, n, 100000)
}

// contextsDisagree returns in what the accesses to contexts differ from kernel trees, and the number of comparisons.
func contextsDisagree(t *testing.T, m *kerneltree.Matrix, table *contexts) (wrong []string, n int) {
	for name := range table.programs {
		kind, attach, _ := strings.Cut(name, "/")
		if kind == "PERF_EVENT" {
			continue // its context is registers
		}
		if m.Has["reads "+name] == nil {
			wrong = append(wrong, name+": in no tree")
		}
		for j := range m.Columns {
			if !anyAccess(m, name, j) {
				continue // the tree lacks the type of programs or of attachment
			}
			for _, write := range []bool{false, true} {
				allowed := m.Has["reads "+name]
				if write {
					allowed = m.Has["writes "+name]
				}
				for size := 1; size <= 8; size *= 2 {
					for off := 0; off+size <= kerneltree.ContextBytes; off += size {
						has := allowed[fmt.Sprintf("%d/%d", off, size)]
						a := table.access("x86_64", kind, attach, int64(off), size, write)
						if why := accessDisagrees(m, j, &a, fieldAt(m, ProgramType(kind).Context, off, j), has != nil && has[j], treeRelease(t, &m.Columns[j])); why != "" {
							wrong = append(wrong, fmt.Sprintf("%s: write %t of %d bytes at %d in %s: %s", name, write, size, off, m.Columns[j].Name, why))
						}
						n++
					}
				}
			}
		}
	}
	for name, sizes := range table.sizes {
		for j := range m.Columns {
			if c := &m.Columns[j]; c.Mainline() || c.Vendor == "stable" {
				release, want := treeRelease(t, c), int64(0)
				for _, s := range sizes {
					if release >= s.when.Since.By {
						want = s.bytes
					}
				}
				if has := m.Has["size "+name][strconv.FormatInt(want, 10)]; want != 0 && (has == nil || !has[j]) {
					wrong = append(wrong, fmt.Sprintf("%s: not %d bytes in %s", name, want, c.Name))
				}
				n++
			}
		}
	}
	return wrong, n
}

// TestTreesFields compares which fields of structs programs for a struct_ops may write with kernel trees.
func TestTreesFields(t *testing.T) {
	m := accesses(t)
	wrong, n := fieldsDisagree(t, m, contextTable())
	report(t, wrong, n, 400)
	wrong, n = fieldsDisagree(t, rhel(t), contextTable())
	isNewer := func(why string) bool { return strings.HasSuffix(why, "in no tree") }
	report(t, slices.DeleteFunc(wrong, isNewer), n, 100)
	for relation := range m.Has {
		if name, ok := strings.CutPrefix(relation, "fields "); ok && OpsNamed(name) == nil {
			t.Errorf("nothing is said of %s", name)
		}
	}
}

// fieldsDisagree returns in what the fields that programs for a struct_ops may write differ from kernel trees, and the number of comparisons.
func fieldsDisagree(t *testing.T, m *kerneltree.Matrix, table *contexts) (wrong []string, n int) {
	for ops, o := range table.ops {
		has := m.Has["fields "+ops]
		if has == nil {
			wrong = append(wrong, ops+": in no tree")
			continue
		}
		listed := make(map[string]Period)
		for i := range o.Fields {
			listed[fieldText(&o.Fields[i])] = o.Fields[i].When
		}
		for _, field := range slices.Sorted(maps.Keys(listed)) {
			if has[field] == nil {
				wrong = append(wrong, fmt.Sprintf("%s: %s is in no tree", ops, field))
			}
		}
		for field, in := range has {
			for j := range m.Columns {
				if !has["none"][j] || field == "none" {
					continue // the tree lacks the struct_ops
				}
				when, ok := listed[field]
				if why := accessDisagrees(m, j, &Access{May: ok, When: when}, true, in[j], treeRelease(t, &m.Columns[j])); why != "" {
					wrong = append(wrong, fmt.Sprintf("%s: %s in %s: %s", ops, field, m.Columns[j].Name, why))
				}
				n++
			}
		}
	}
	return wrong, n
}

// fieldText returns a field as trees are asked about it.
func fieldText(f *Field) string {
	if f.Path == nil {
		return f.Of + " " + f.Of
	}
	var parts []string
	for _, p := range f.Path {
		parts = append(parts, strings.Join(append([]string{p.Struct}, p.Names...), "."))
	}
	text := f.Of + " " + strings.Join(parts, "+")
	if f.Within {
		text += ".."
	}
	if f.Except != 0 {
		text += fmt.Sprint(-f.Except)
	}
	return text
}

// accessDisagrees says in what a tree that allows an access, or does not, disagrees with the table. Updates of a
// release, and kernels of distributions, may allow what came later, or no longer what went later.
func accessDisagrees(m *kerneltree.Matrix, tree int, a *Access, field, has bool, release Release) string {
	c, p := &m.Columns[tree], &a.When
	switch {
	case !a.May || !field:
		if has {
			return "the table says that no kernel allows it, or none without the field"
		}
	case p.Always():
		if !has {
			return "the table says that every kernel with the field allows it"
		}
	case p.Until != (Change{}):
		// It is not known which of these bytes older kernels allowed.
		if has && release >= p.Until.By {
			return fmt.Sprintf("allowed, but until %s", p.Until)
		}
	case !c.Mainline():
		if c.Vendor == "stable" && !has && p.Since != (Change{}) && release >= p.Since.By {
			return fmt.Sprintf("not allowed, but since %s", p.Since)
		}
	case !agrees(p, true, release, has):
		return fmt.Sprintf("%t, but since %s, until %s", has, p.Since, p.Until)
	}
	return ""
}

// fieldAt reports whether a field of a struct, or an element of one, begins at an offset in a tree, or where the four
// bytes around it begin.
func fieldAt(m *kerneltree.Matrix, name string, off, tree int) bool {
	return slices.ContainsFunc([]int{off, off &^ 3}, func(at int) bool {
		has := m.Has["field "+name][strconv.Itoa(at)]
		return has != nil && has[tree]
	})
}

// anyAccess reports whether programs of a type may read anything in a tree.
func anyAccess(m *kerneltree.Matrix, name string, tree int) bool {
	return anyIn(m.Has["reads "+name], tree)
}

// TestContextMutations changes each property of contexts.txt that is about releases or fields, and expects that a tree disagrees.
func TestContextMutations(t *testing.T) {
	m, text := accesses(t), readFile("contexts.txt")
	lines := strings.SplitAfter(text, "\n")
	tried := 0
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "\t\t") || strings.HasPrefix(trimmed, "machine") || strings.Contains(line, "/8 168..184/124") {
			continue
		}
		if strings.HasPrefix(trimmed, "argument") || trimmed == "fields: none" {
			continue
		}
		key, value, _ := strings.Cut(trimmed, ": ")
		kind, when, _ := strings.Cut(key, " ")
		var others []string
		switch {
		case kind == "narrow":
			others = []string{"narrow: 4.19", "narrow: 7.0"}
		case kind == "size":
			others = []string{key + ": 8000"}
		case when == "":
			others = []string{kind + " since 8.0: " + value, ""}
		default:
			others = []string{kind + ": " + value, ""}
		}
		for _, other := range others {
			changed := slices.Clone(lines)
			changed[i] = "\t" + other + "\n"
			if other == "" {
				for end := i + 1; end < len(lines) && strings.HasPrefix(lines[end], "\t\t"); end++ {
					changed[end] = "\n"
				}
			}
			start := i // the beginning of the entry
			for start > 0 && strings.HasPrefix(lines[start], "\t") {
				start--
			}
			end := i + 1
			for end < len(lines) && strings.HasPrefix(lines[end], "\t") {
				end++
			}
			table, err := readContexts(strings.Join(changed[start:end], ""))
			if err == nil {
				wrong, _ := contextsDisagree(t, m, table)
				more, _ := fieldsDisagree(t, m, table)
				wrong = append(wrong, more...)
				tried++
				if len(wrong) == 0 {
					t.Errorf("line %d: %q instead of %q: no tree disagrees", i+1, other, trimmed)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d mutations", tried)
	}
}
