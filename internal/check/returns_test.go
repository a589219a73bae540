// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestReturns checks the verdicts on what programs return.
func TestReturns(t *testing.T) {
	ok, fails := expected{}, expected{status: rule.Fails}
	expectVerdicts(t, "returns", map[string]expected{
		"entry_0": ok, "entry_1": fails, "exit_1": fails, "exit_some": {status: rule.MayFail},
		"entry_at_times": fails, "entry_never": ok,
		"raw_1": ok, "tp_1": ok, "kprobe_2": ok, "xdp_9": ok,
		"iter_1": ok, "egress_3": ok, "connect_1": ok,
		"iter_2": fails, "egress_4": fails, "ingress_2": fails, "connect_minus_1": fails, "recvmsg_0": fails, "bind_4": fails, "lookup_2": fails,
	})
}

// TestHookReturns does so for programs of LSM, which may return errors alone since Linux 6.12.
func TestHookReturns(t *testing.T) {
	rep := runOn(t, "lsmhooks.bpfel")
	for k := range rep.Kernels {
		name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
		for program, errs := range map[string]bool{"open": true, "returns_1": false, "returns_too_little": false, "returns_nothing": true} {
			p, _ := find(t, rep, program, name)
			if p.Status[k] == rule.Other {
				continue
			}
			want := rule.OK
			if !errs && kernel.CompareVersions(release, "6.12") >= 0 {
				want = rule.Fails
			}
			if got := rule.Worst(findingsOn(p, k, rule.FamilyReturn)); got != want {
				t.Errorf("%s on %s: %s, want %s", program, name, got, want)
			}
		}
	}
}
