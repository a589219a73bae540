// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"testing"
)

// TestModules wants each module that programs need once, and the first of several of which one is enough.
func TestModules(t *testing.T) {
	needs := func(names Names) KernelFinding {
		return KernelFinding{Finding: Finding{Status: MayFail, Code: ModuleNeeded, Args: Args{Names: names}}}
	}
	rep := Report{Programs: []Program{
		{Findings: []KernelFinding{needs("md_mod"), needs("md_mod,nf_nat"), {Finding: Finding{Status: Fails, Code: HelperMissing}}}},
		{Findings: []KernelFinding{needs("btrfs")}},
	}}
	if got := rep.Modules(); !slices.Equal(got, []string{"btrfs", "md_mod"}) {
		t.Errorf("modules %q", got)
	}
}
