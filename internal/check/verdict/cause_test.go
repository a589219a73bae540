// SPDX-License-Identifier: Apache-2.0

package verdict

import (
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
