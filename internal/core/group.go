// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf chooses (coreCalculateFixups in btf/core.go, v0.22): it takes
// the relocations of one local type in one program together and scores each
// candidate by how many of them fail on it. Of two with the best score so far
// that disagree it does not look for a better one, so that its choice can
// depend on the order of candidates. Those that agree in all values are the
// same to it, and the first counts; that includes one that does not match next
// to one that matches at 0. A program is an entry function with all
// that it calls; here it is taken function by function, and then the whole
// object at once.

// groups compares what cilium/ebpf makes of the records of a root on two
// kernels whose candidates have the same columns in another order.
func (c *comparison) groups(m *member, r *root) *Difference {
	var functions []string
	records := make(map[string][]int32)
	for _, rec := range r.records {
		p := &m.records[rec]
		name := p.Section + " " + p.Program
		if records[name] == nil {
			functions = append(functions, name)
		}
		records[name] = append(records[name], rec)
	}
	groups := [][]int32{r.records}
	rows := len(c.full.rows[r.question]) + len(c.small.rows[r.question])
	if len(functions) > 1 {
		for _, f := range functions {
			groups = append(groups, records[f])
		}
	}
	for _, g := range groups {
		var specs []int32 // a relocation asked twice does not change who is best
		seen := make(map[int32]bool)
		for _, rec := range g {
			if n := m.records[rec].spec; m.question[n] >= 0 && !seen[n] {
				seen[n] = true
				specs = append(specs, n)
			}
		}
		if len(specs) == 0 {
			continue
		}
		if !c.meter.Step(len(specs) * rows) {
			return nil
		}
		for _, strict := range []bool{false, true} {
			a, b := c.full.choose(m, r, specs, strict), c.small.choose(m, r, specs, strict)
			if (a == nil) != (b == nil) || !slices.EqualFunc(a, b, fixup.same) {
				return &Difference{
					Object: m.name, Relocation: m.specs[specs[0]].String(),
					Full: "cilium/ebpf: " + choiceText(a), Minimized: choiceText(b),
				}
			}
		}
	}
	return nil
}

// fixup is what a relocation of a group comes to on a candidate.
type fixup struct {
	ok  bool // it matches
	bad bool // the value cannot be computed
	id  bool // the value is the type ID of the candidate
	val uint64

	from, to uint64 // as cilium/ebpf has it, which compares these and not ok
}

// agrees reports whether cilium/ebpf takes two fixups for the same.
func (f fixup) agrees(o fixup) bool { return f.bad == o.bad && f.from == o.from && f.to == o.to }

// same reports whether two fixups do the same to an instruction.
func (f fixup) same(o fixup) bool { return f.ok == o.ok && f.bad == o.bad && f.val == o.val }

func (f fixup) String() string {
	switch {
	case !f.ok:
		return "no match"
	case f.bad:
		return "no value"
	case f.id:
		return "a type ID"
	}
	return strconv.FormatUint(f.val, 10)
}

// choose returns the fixups of the group on the candidate that is chosen, nil
// if it is ambiguous. What cilium/ebpf takes for a match lies between libbpf's
// rules and the loose ones; strict says which to go by.
func (tb *Table) choose(m *member, r *root, specs []int32, strict bool) []fixup {
	best, bestScore := make([]fixup, len(specs)), len(specs)
	for i := range tb.rows[r.question] {
		fixups := make([]fixup, len(specs))
		score := 0
		for n, sp := range specs {
			q, kind := m.question[sp], m.specs[sp].kind
			c := &tb.rows[q][i]
			f := &fixups[n]
			if f.ok = c.loose && !c.alone; strict {
				f.ok = c.libbpf
			}
			if !f.ok {
				if kind.IsExistence() {
					f.from = 1
				}
				score++
				continue
			}
			if f.bad = c.bad&(1<<kind) != 0; f.bad {
				continue
			}
			if f.id = kind == relo.TargetTypeID; f.id {
				f.to = uint64(i) + 1
			} else {
				f.val = tb.value(&tb.set.questions[q], c, kind).val
				f.to = f.val
			}
			if kind != relo.LShiftU64 && kind != relo.RShiftU64 {
				f.from = m.local[sp].val
			}
		}
		switch {
		case score < bestScore:
			best, bestScore = fixups, score
		case score == bestScore && score < len(specs) && !slices.EqualFunc(best, fixups, fixup.agrees):
			return nil
		}
	}
	return best
}

func choiceText(fixups []fixup) string {
	if fixups == nil {
		return "ambiguous"
	}
	text := make([]string, len(fixups))
	for i, f := range fixups {
		text[i] = f.String()
	}
	return strings.Join(text, ", ")
}
