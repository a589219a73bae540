// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// expected is what is expected of a program: ok, or another verdict on the kernels
// before or from a release on.
type expected struct {
	before, from string // releases of kernels with this status; all kernels if both are empty
	status       rule.Status
	others       rule.Status            // status on the other kernels
	attach       bool                   // only attaching fails
	attachFrom   string                 // first release on which only attaching fails; "" for none
	on           map[string]rule.Status // exceptions, keyed by release, "6.1", or machine and release, "x86_64/6.1"
}

// expectVerdicts compares verdicts with those expected, on the kernels of testdata/vmlinux. That a kernel has no BTF of its own
// does not count.
func expectVerdicts(t *testing.T, object string, want map[string]expected) {
	t.Helper()
	for _, order := range []string{".bpfel", ".bpfeb"} {
		rep := runOn(t, object+order)
		if len(rep.Programs) != len(want) {
			t.Errorf("%s: %d programs, of which %d are expected", object, len(rep.Programs), len(want))
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			w, ok := want[p.Name]
			if !ok {
				t.Errorf("nothing is expected of %s", p.Name)
			}
			for k := range rep.Kernels {
				if p.Status[k] == rule.Other {
					continue
				}
				name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
				status := w.status
				if w.before != "" && kernel.CompareVersions(release, w.before) >= 0 || w.from != "" && kernel.CompareVersions(release, w.from) < 0 {
					status = w.others
				}
				series := kernelSeries(release)
				if s, ok := w.on[rep.Kernels[k].Key().Arch+"/"+series]; ok {
					status = s
				} else if s, ok := w.on[series]; ok {
					status = s
				}
				found := findingsOn(p, k, judged...)
				if got := rule.Worst(found); got != status {
					t.Errorf("%s: %s on %s: %s, want %s: %v", object, p.Name, name, got, status, found)
				}
				attach := w.attach || w.attachFrom != "" && kernel.CompareVersions(release, w.attachFrom) >= 0
				for _, f := range found {
					if f.Status == status && f.Attach != attach {
						t.Errorf("%s: %s on %s: %v", object, p.Name, name, f)
					}
				}
			}
		}
	}
}

// judged are all families but those on the running kernel.
var judged = slices.DeleteFunc(rule.Families(), func(f rule.Family) bool { return f == rule.FamilyRunning })

// kernelSeries is 6.1 of 6.1.0-47-amd64.
func kernelSeries(release string) string {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r == '.' || r == '-' })
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// findingsOn returns the findings on a kernel, without that its machine has no
// trampolines.
func findingsOn(p *verdict.ProgramRow, kernel int, families ...rule.Family) (l []rule.Finding) {
	for _, f := range p.Findings {
		if slices.Contains(f.Kernels, kernel) && slices.Contains(families, rule.FamilyOf(f.Code)) && f.Code != rule.AttachTargetTrampoline {
			l = append(l, f.Finding)
		}
	}
	return l
}

// TestRelocatedContext checks the verdicts on accesses to contexts through CO-RE relocations, as programs with a vmlinux.h make them.
func TestRelocatedContext(t *testing.T) {
	for _, order := range []string{".bpfel", ".bpfeb"} {
		rep := runOn(t, "cornercore"+order)
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for k, got := range p.Status {
				want := []rule.Status{rule.OK}
				if strings.HasSuffix(p.Name, "_fails") {
					want = []rule.Status{rule.Fails, rule.MayFail} // the latter on kernels that are newer than the table
				}
				if got != rule.Other && !slices.Contains(want, got) {
					t.Errorf("%s on %s: %s, want %s: %v", p.Name, rep.Kernels[k].Name, got, want, p.Findings)
				}
			}
		}
	}
}

// TestContext holds verdicts on what programs read of their context. The same
// programs are loaded into kernels by scripts/check-kernels.sh.
func TestContext(t *testing.T) {
	fails := expected{status: rule.Fails}
	expectVerdicts(t, "context", map[string]expected{
		"both": {}, "result": {}, "through": {}, "number": {}, "to_char": {}, "modified": {}, "task": {}, "iterated": {}, "record": {},
		"part_of_member": fails, "socket": {}, "part_of_socket": fails,
		"one_too_many": fails, "behind_result": fails, "beyond": fails, "crooked": fails, "written": fails, "in_function": fails,
		"through_number": fails, "iterated_too_many": fails, "before_record": fails,
		"thirteenth_raw": fails,
		"half":           {from: "6.12", status: rule.Fails}, "to_number": {before: "6.1", status: rule.Fails}, "to_pointer": {before: "7.3", status: rule.Fails}, "with_struct": {before: "6.1", status: rule.Fails},
		"fourth":         {before: "5.18", status: rule.Fails},
		"fourth_guarded": {before: "5.18", status: rule.Guarded},
		"fourth_raw":     {before: "5.18", status: rule.Fails, attach: true},
		"beyond_record":  {status: rule.Fails, attach: true},
	})
}

// TestAddresses is TestContext for where pointers were kept, and what was added to them.
func TestAddresses(t *testing.T) {
	refused := expected{before: "7.1", status: rule.Fails}
	given := expected{on: map[string]rule.Status{"6.1": rule.MayFail, "6.12": rule.MayFail}}
	expectVerdicts(t, "addresses", map[string]expected{
		"copied": {}, "beside": {}, "read_by_helper": {}, "moved_back": {}, "moved_by_nothing": {}, "moved_by_relocation_guarded": {},
		"as_key": given, "as_value": given, "in_event": given,
		"as_key_guarded": {on: map[string]rule.Status{"6.1": rule.Guarded, "6.12": rule.Guarded}},
		"moved":          refused, "kprobe_moved": refused, "moved_by_relocation": refused,
		"moved_by_version": {before: "5.11", status: rule.Fails},
		"tc_moved":         {status: rule.Fails},
	})
}

// TestStructOpsWrites holds verdicts on writes of functions of a struct_ops to the socket that they are given. Kernels before the release of a
// member in their list perhaps have it.
func TestStructOpsWrites(t *testing.T) {
	since := map[string]string{"undo": "", "avoid": "", "window": "", "own": "", "rate": "6.0", "limit": "6.4", "stamp": "6.12", "time": "never", "task": "never"}
	for _, order := range []string{".bpfel", ".bpfeb"} {
		rep := runOn(t, "cornerops"+order)
		if len(rep.Programs) != len(since) || len(rep.Kernels) == 0 {
			t.Errorf("%d programs on %d kernels", len(rep.Programs), len(rep.Kernels))
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for k := range rep.Kernels {
				want, came := rule.OK, since[p.Name]
				switch release := rep.Kernels[k].Key().Release; {
				case p.Status[k] == rule.Other: // it is for another order of bytes
				case came == "never" && rule.ReleaseOf(rep.Kernels[k].Key()) <= facts.ContextsRead():
					want = rule.Fails
				case came == "never":
					want = rule.MayFail
				case came != "" && kernel.CompareVersions(release, came) < 0:
					want = rule.MayFail
				}
				if found := findingsOn(p, k, rule.FamilyContext); rule.Worst(found) != want {
					t.Errorf("%s on %s: %v, want %s", p.Name, rep.Kernels[k].Name, found, want)
				}
			}
		}
	}
}
