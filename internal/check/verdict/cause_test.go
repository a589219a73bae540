// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestModules wants each module that programs need once, and the first one where any of several is enough.
func TestModules(t *testing.T) {
	needs := func(names rule.Names) KernelFinding {
		return KernelFinding{Finding: rule.Finding{Status: rule.MayFail, Code: rule.ModuleNeeded, Args: rule.Args{Names: names}}}
	}
	rep := Report{Programs: []ProgramRow{
		{Findings: []KernelFinding{needs("md_mod"), needs("md_mod,nf_nat"), {Finding: rule.Finding{Status: rule.Fails, Code: rule.HelperMissing}}}},
		{Findings: []KernelFinding{needs("btrfs")}},
	}}
	if got := rep.Modules(); !slices.Equal(got, []string{"btrfs", "md_mod"}) {
		t.Errorf("modules %q", got)
	}
}

// TestCausesOfType wants no other cause for what follows from a type of programs that the kernel lacks: there is nothing to attach.
func TestCausesOfType(t *testing.T) {
	on := func(code rule.Code, subject string, attach bool, kernels ...int) KernelFinding {
		return KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: code, Subject: subject, Attach: attach}, Kernels: kernels}
	}
	status := []rule.Status{rule.Fails, rule.Fails}
	rep := Report{
		Kernels: []Column{{Name: "a/1/x86_64/4.19.1"}, {Name: "a/1/x86_64/6.1.1"}},
		Programs: []ProgramRow{{Name: "p", Status: status, Findings: []KernelFinding{
			on(rule.ProgTypeMissing, "BPF_PROG_TYPE_LSM", false, 0), on(rule.AttachTypeMissing, "BPF_LSM_MAC", false, 0), on(rule.RunningKernelNone, "", false, 0),
			on(rule.AttachTargetMissing, "function bpf_lsm_f", false, 0, 1), on(rule.HelperMissing, "bpf_ima_file_hash", false, 0)}}},
		Objects: []ObjectRow{{Object: "a.o", Programs: []int{0}, Status: status, Decides: []Decider{{Program: 0, Kernels: []int{0, 1}}}}},
	}
	rep.Summarize()
	var got []string
	for _, c := range rep.Causes {
		got = append(got, fmt.Sprint(c.Code, c.Kernels))
	}
	slices.Sort(got)
	if want := []string{"attach-target-missing[1]", "helper-missing[0]", "prog-type-missing[0]"}; !slices.Equal(got, want) {
		t.Errorf("causes %q, want %q", got, want)
	}
}

// TestCausesStop wants nothing of what a loader gives up on that is not the object's.
func TestCausesStop(t *testing.T) {
	for _, tt := range []struct {
		loader     rule.Loader
		stops, say rule.Stops
	}{
		{rule.EbpfGo, rule.ObjectStops, ""}, {rule.Libbpf, rule.ObjectStops, rule.ObjectStops}, {"", rule.ObjectStops, rule.ObjectStops},
		{rule.Libbpf, rule.ProgramStops, ""}, {rule.EbpfGo, rule.ProgramStops, rule.ProgramStops},
	} {
		rep := Report{
			Kernels:  []Column{{Name: "a/1/x86_64/4.19.1"}},
			Programs: []ProgramRow{{Findings: []KernelFinding{{Finding: rule.Finding{Status: rule.MayFail, Code: rule.MapInner, Args: rule.Args{Stops: tt.stops}}, Kernels: []int{0}}}}},
			Objects:  []ObjectRow{{Programs: []int{0}, Loader: tt.loader, Status: []rule.Status{rule.MayFail}, Decides: []Decider{{Kernels: []int{0}}}}},
		}
		rep.Summarize()
		if got := rep.Causes[0].Subjects[0].Stops; got != tt.say {
			t.Errorf("%s, %v: the cause says %v", tt.loader, tt.stops, got)
		}
	}
}
