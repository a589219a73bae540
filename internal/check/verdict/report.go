// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"slices"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ReportVersion is the version of the report's JSON form. Within one version
// fields are only added.
const ReportVersion = 1

// Report says of each program and kernel whether it works, and why not. What people look at is a matrix: a row of [Cell] for each object,
// in the columns of Lines, and Causes. One goroutine makes it when all workers have ended.
type Report struct {
	Version     int             `json:"version"`
	Kernels     []Column        `json:"kernels"`               // kernels in order
	Lines       []Line          `json:"lines"`                 // sorted by machine, then by release
	Objects     []ObjectRow     `json:"objects,omitempty"`     // objects in the order of the arguments
	Executables []ObjectRow     `json:"executables,omitempty"` // files with several objects
	Variants    []ObjectRow     `json:"variants,omitempty"`    // groups of objects from which the loader takes one
	Programs    []ProgramRow    `json:"programs"`              // sorted by object, then by section
	Causes      []Cause         `json:"causes"`                // why objects do not work or may not
	Warnings    []Cause         `json:"warnings,omitempty"`    // programs read or return something else on some kernels
	Proposals   []Proposal      `json:"-"`
	Skipped     []*corpus.Error `json:"-"`
}

// Column is a column of the report.
type Column struct {
	Name    string   `json:"name"` // ID/VERSION_ID/ARCH/RELEASE, or a path
	Modules []string `json:"-"`    // modules with types that relocations resolve to, sorted

	key  kernel.Key
	arch string // the kernel's arch, if the key has none
}

// NewColumn returns a column with a name, for a kernel with a key and a machine, which the key may lack.
func NewColumn(name string, key kernel.Key, arch string, modules []string) Column {
	return Column{Name: name, Modules: modules, key: key, arch: arch}
}

// machine returns the kernel's machine, "" if it is not known.
func (k *Column) machine() string {
	return cmp.Or(k.Key().Canonical().Arch, kernel.CanonicalArch(k.arch))
}

// Key returns what is known of the kernel's identity.
func (k *Column) Key() kernel.Key {
	if k.key == (kernel.Key{}) {
		k.key, _ = kernel.ParseKey(k.Name)
	}
	return k.key
}

// Family is what kernels that are alike have in common, distribution and machine: "debian x86_64".
// It is "" if the name does not show it.
func (k *Column) Family() string {
	c := k.Key().Canonical()
	if !c.Known() {
		return ""
	}
	return c.ID + " " + c.Arch
}

func (k *Column) release() rule.Release { return rule.ReleaseOf(k.Key()) }

// Release is the kernel's release of Linux without its patch level, "6.1", or "" if the name does not show it.
func (k *Column) Release() string {
	if v := k.release(); v != 0 {
		return v.String()
	}
	return ""
}

// ProgramRow is a row of the report.
type ProgramRow struct {
	Object   string          `json:"object"`
	Name     string          `json:"program"`
	Section  string          `json:"section"`
	AutoLoad bool            `json:"autoload"`              // loaded by default
	Tail     bool            `json:"tail_called,omitempty"` // only tail calls reach it, so it is not attached
	Status   []rule.Status   `json:"status"`                // one per kernel
	Load     []rule.Status   `json:"load,omitempty"`        // verdict on loading alone, one per kernel
	Findings []KernelFinding `json:"findings,omitempty"`
	Notes    []rule.Finding  `json:"notes,omitempty"` // findings that hold on every kernel
}

// Unjudged reports whether kernels differ in something of the program that is not judged, so that its verdict may be wrong.
func (p *ProgramRow) Unjudged() bool {
	return slices.ContainsFunc(p.Notes, func(n rule.Finding) bool { return rule.FamilyOf(n.Code) == rule.FamilyUnjudged })
}

// KernelFinding is a finding and the indices of its kernels, ascending.
type KernelFinding struct {
	rule.Finding
	Kernels []int `json:"kernels"`
}

// SortFindings sorts the findings on a program: the worst first, of these the ones that most
// kernels have.
func SortFindings(l []KernelFinding) {
	slices.SortStableFunc(l, func(a, b KernelFinding) int {
		if c := cmp.Or(-cmp.Compare(a.Status, b.Status), -cmp.Compare(len(a.Kernels), len(b.Kernels))); c != 0 {
			return c
		}
		return cmp.Or(a.Finding.Compare(&b.Finding), slices.Compare(a.Kernels, b.Kernels))
	})
}

// Sum makes the verdicts on each of so many kernels of the findings.
func (p *ProgramRow) Sum(kernels int) { p.sumWith("", kernels) }

// sumWith makes the verdicts with one loader, or the worst if it is "".
func (p *ProgramRow) sumWith(l rule.Loader, kernels int) {
	p.Status, p.Load = p.verdicts(kernels, func(f *rule.Finding) bool { return l == "" || f.Concerns(l) })
}

// verdicts returns the worst status of the findings that count, by kernel.
func (p *ProgramRow) verdicts(kernels int, counts func(*rule.Finding) bool) (status, load []rule.Status) {
	status, load = make([]rule.Status, kernels), make([]rule.Status, kernels)
	for i := range p.Findings {
		f := &p.Findings[i]
		if !counts(&f.Finding) {
			continue
		}
		for _, k := range f.Kernels {
			status[k] = max(status[k], f.Status)
			if !f.Attach {
				load[k] = max(load[k], f.Status)
			}
		}
	}
	return status, load
}
