// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Column is a tree of a matrix.
type Column struct {
	Name    string // the release, with the vendor's part of it
	Release string // of Linux, "5.10.7"
	Vendor  string // "" for Linux itself
	Sum     string
}

// Mainline reports whether a tree is Linux itself, at most a few updates after its release.
func (c *Column) Mainline() bool { return c.Vendor == "" }

// Matrix says for each relation and name which trees have it.
type Matrix struct {
	Columns []Column
	Has     map[string]map[string][]bool // relation, name, column
}

// New makes a matrix. Columns are in the order of their releases.
func New(columns []Column, trees []*Tree) *Matrix {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(slices.Compare(numbers(columns[a].Name), numbers(columns[b].Name)), cmp.Compare(columns[a].Name, columns[b].Name))
	})
	m := &Matrix{Has: make(map[string]map[string][]bool)}
	for to, from := range order {
		m.Columns = append(m.Columns, columns[from])
		for relation, names := range trees[from].Relations {
			if m.Has[relation] == nil {
				m.Has[relation] = make(map[string][]bool)
			}
			for name := range names {
				if m.Has[relation][name] == nil {
					m.Has[relation][name] = make([]bool, len(columns))
				}
				m.Has[relation][name][to] = true
			}
		}
	}
	return m
}

// numbers are the numbers in a release.
func numbers(release string) (l []int) {
	for _, s := range strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(s)
		l = append(l, n)
	}
	return l
}

// Write writes a matrix: a line for each tree, then for each relation and set of trees the names that just these have.
func (m *Matrix) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, c := range m.Columns {
		fmt.Fprintf(b, "tree\t%s\t%s\t%s\t%s\n", c.Name, c.Release, cmp.Or(c.Vendor, "-"), c.Sum)
	}
	for _, relation := range slices.Sorted(maps.Keys(m.Has)) {
		groups := make(map[string][]string)
		for name, has := range m.Has[relation] {
			bits := make([]byte, len(has))
			for i, ok := range has {
				bits[i] = '.'
				if ok {
					bits[i] = '+'
				}
			}
			groups[string(bits)] = append(groups[string(bits)], name)
		}
		fmt.Fprintf(b, "\n[%s]\n", relation)
		for _, bits := range slices.Sorted(maps.Keys(groups)) {
			slices.Sort(groups[bits])
			fmt.Fprintf(b, "%s\t%s\n", bits, strings.Join(groups[bits], ", "))
		}
	}
	return b.Flush()
}

// Parse reads what Write has written. Lines that begin with # are comments.
func Parse(r io.Reader) (*Matrix, error) {
	m := &Matrix{Has: make(map[string]map[string][]bool)}
	var relation map[string][]bool
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			relation = make(map[string][]bool)
			m.Has[strings.TrimSuffix(name, "]")] = relation
			continue
		}
		c := strings.Split(line, "\t")
		if len(c) == 5 && c[0] == "tree" {
			m.Columns = append(m.Columns, Column{Name: c[1], Release: c[2], Vendor: strings.TrimPrefix(c[3], "-"), Sum: c[4]})
			continue
		}
		if len(c) != 2 || relation == nil || len(c[0]) != len(m.Columns) {
			return nil, fmt.Errorf("%.80s: want a tree, or +. for each tree and names", line)
		}
		has := make([]bool, len(c[0]))
		for i := range c[0] {
			has[i] = c[0][i] == '+'
		}
		for name := range strings.SplitSeq(c[1], ", ") {
			relation[name] = has
		}
	}
	return m, lines.Err()
}
