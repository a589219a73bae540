// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// Minimum says from which release of Linux on an object works on one machine: on every kernel here of these lines.
type Minimum struct {
	Machine string `json:"machine"`
	Since   string `json:"since,omitempty"` // "5.8"; "" if the object works on every kernel of no line
	Until   string `json:"until,omitempty"` // last line; "" if no newer kernel loads the object or leaves it out
	// Perhaps is a release before Since, or without Since, from which on no kernel certainly fails; "" for none.
	Perhaps string `json:"perhaps,omitempty"`
	Oldest  bool   `json:"oldest,omitempty"` // older kernels may do as well: the corpus has none of the machine
	// Others are indices of Lines: newer ones than Until, older ones on which the object works somewhere, and older
	// ones beside a gap in the corpus.
	Others []int `json:"others,omitempty"`
	Tried  []int `json:"tried"` // indices of the lines on which the object is loaded
}

// minima returns a minimum for each machine on which the object is loaded. Kernels without a release have none.
func (r *Report) minima(row *ObjectRow) (all []Minimum) {
	for i := 0; i < len(r.Lines); {
		m := Minimum{Machine: r.Lines[i].Machine}
		ends := false // the newest lines leave the object out
		for ; i < len(r.Lines) && r.Lines[i].Machine == m.Machine; i++ {
			switch c := row.Cells[i]; {
			case c.Judged() > 0 && m.Machine != Unknown:
				m.Tried = append(m.Tried, i)
				ends = false
			case c.NeverLoaded():
				ends = true
			}
		}
		if len(m.Tried) > 0 {
			r.setMinimum(&m, row)
			if m.Until == "" && ends && m.Since+m.Perhaps != "" {
				m.Until = r.Lines[m.Tried[len(m.Tried)-1]].Name
			}
			all = append(all, m)
		}
	}
	return all
}

// setMinimum sets the minimum of the machine whose lines are in Tried. It covers the newest lines on which the object works on every kernel or,
// if there are none, the newest on which it fails on no kernel.
func (r *Report) setMinimum(m *Minimum, row *ObjectRow) {
	cell := func(i int) Cell { return row.Cells[m.Tried[i]] }
	works, spared := func(i int) bool { return cell(i).AllWork() }, func(i int) bool { return cell(i).Fails == 0 }
	known := true // the release that brought what the line before lacks is known
	begin := 0    // first of the lines that the minimum covers, up to last
	last := lastOf(len(m.Tried), works)
	if last >= 0 {
		first := firstOf(last, works)
		m.Since, known = r.arrived(m, row, first)
		if begin = firstOf(first-1, spared); begin < first {
			m.Perhaps, known = r.arrived(m, row, begin)
		}
	} else if last = lastOf(len(m.Tried), spared); last >= 0 {
		begin = firstOf(last, spared)
		m.Perhaps, known = r.arrived(m, row, begin)
	}
	m.Oldest = last >= 0 && begin == 0
	if last >= 0 && last < len(m.Tried)-1 {
		m.Until = r.Lines[m.Tried[last]].Name
	}
	for i, line := range m.Tried {
		gap := i == begin-1 && !known && !r.Lines[line].release.IsNext(r.Lines[m.Tried[begin]].release)
		if last >= 0 && i > last || (i < begin || last < 0) && (gap || cell(i).Fails < cell(i).Judged()) {
			m.Others = append(m.Others, line)
		}
	}
}

// lastOf returns the last of n lines that is good, or -1.
func lastOf(n int, good func(int) bool) int {
	for n--; n >= 0 && !good(n); {
		n--
	}
	return n
}

// firstOf returns the first of the lines up to last that all are good, or last+1.
func firstOf(last int, good func(int) bool) int {
	for last >= 0 && good(last) {
		last--
	}
	return last + 1
}

// arrived returns the release from which on the object has what it lacks on the line before the i-th of Tried, if it is known and the
// report has no kernel of it; else the line itself. A feature that came between the two is known to be absent before.
func (r *Report) arrived(m *Minimum, row *ObjectRow, i int) (release string, known bool) {
	line := &r.Lines[m.Tried[i]]
	if i == 0 {
		return line.Name, true
	}
	before := &r.Lines[m.Tried[i-1]]
	since := r.arrival(row, before.Kernels)
	if since > before.release && since <= line.release {
		return since.String(), true
	}
	return line.Name, false
}

// never is a release that is later than all others.
const never = ^rule.Release(0)

// arrival returns the first release that has everything that an object lacks, or may lack, on some kernels. It is never if the
// release of something that fails is not known, and 0 if nothing is missing.
func (r *Report) arrival(row *ObjectRow, kernels []int) (all rule.Release) {
	for _, d := range row.Decides {
		for _, k := range kernels {
			if has(d.Kernels, k) {
				all = max(all, r.Programs[d.Program].arrival(k, row.excused))
			}
		}
	}
	return all
}

// arrival is the same for a program on a kernel, without the findings that are excused.
func (p *ProgramRow) arrival(k int, excused func(*rule.Finding) bool) (all rule.Release) {
	var lacks []*rule.Finding
	doubt := false            // something may be missing whose release is unknown
	var progType rule.Release // first release with the program's type, if the kernel lacks it
	for i := range p.Findings {
		f := &p.Findings[i]
		if f.Status <= rule.Other || !has(f.Kernels, k) || excused != nil && excused(&f.Finding) {
			continue
		}
		if lacks = append(lacks, &f.Finding); f.Code == rule.ProgTypeMissing {
			progType = f.CameWith()
		}
	}
	for _, f := range lacks {
		with := f.CameWith()
		if progType != 0 && f.Code != rule.ProgTypeMissing && (with != 0 && with <= progType || ofProgType(f)) {
			continue
		}
		if with == 0 && f.Status == rule.Fails {
			return never
		}
		all, doubt = max(all, with), doubt || with == 0
	}
	if all == 0 && doubt {
		return never
	}
	return all
}

// ofProgType reports whether the finding follows from the lack of a type of programs: on what only such programs are attached to, and
// on BTF that the kernel has for them.
func ofProgType(f *rule.Finding) bool {
	if rule.FamilyOf(f.Code) == rule.FamilyRunning {
		return true
	}
	of := []string{"function bpf_lsm_", "function bpf_iter_", "tracepoint ", "hook "}
	return rule.FamilyOf(f.Code) == rule.FamilyTarget &&
		slices.ContainsFunc(of, func(prefix string) bool { return strings.HasPrefix(f.Subject, prefix) })
}
