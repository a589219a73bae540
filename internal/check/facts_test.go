// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestKptrs checks the verdicts on programs that take pointers to objects of the kernel out of maps, whose tags and types of maps changed in 6.4.
func TestKptrs(t *testing.T) {
	none := map[string]rule.Status{"5.10": rule.Fails}                     // kernels before 5.19 lack the helper and such pointers
	keeps := map[string]rule.Status{"5.10": rule.Fails, "6.1": rule.Fails} // 6.1 has no bpf_task_release
	calls := map[string]rule.Status{"arm/6.12": rule.Fails}                // 32-bit arm has no calls of kfuncs
	maps.Copy(calls, keeps)
	expectVerdicts(t, "kptrs", map[string]expected{
		"take_array":     {on: calls},
		"take_old_array": {from: "6.4", status: rule.Fails, on: keeps},
		"take_percpu":    {from: "6.4", status: rule.Fails, on: keeps},
		"read_array":     {before: "5.19", status: rule.Fails},
		"read_old_array": {from: "6.4", status: rule.Fails, others: rule.MayFail, on: none},
		"read_untrusted": {before: "6.4", status: rule.MayFail, on: none},
	})
	rep := runOn(t, "kptrs.bpfel")
	for _, program := range []string{"take_array", "take_old_array", "take_percpu"} {
		p, k := find(t, rep, program, "debian/12/x86_64/6.1.0-47-amd64")
		if got := statusOf(p, k, rule.FamilyHelper); got != rule.MayFail {
			t.Errorf("%s on 6.1: %s, want may fail: %v", program, got, p.Findings)
		}
	}
}
