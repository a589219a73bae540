// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestCallers checks verdicts on programs that call kfuncs. No kernel up to 7.1 lets programs of kprobes call bpf_task_acquire.
func TestCallers(t *testing.T) {
	const arm = "arm/6.12" // 32-bit arm has no calls of kfuncs
	absent := map[string]rule.Status{"5.10": rule.Guarded, "6.1": rule.Guarded, arm: rule.Fails}
	late := map[string]rule.Status{"5.10": rule.Fails, "6.1": rule.Guarded, "6.12": rule.MayFail, "6.18": rule.MayFail, arm: rule.Fails}
	expectVerdicts(t, "callers", map[string]expected{
		"traced": {on: absent}, "probed": {status: rule.Fails, on: map[string]rule.Status{"6.1": rule.Guarded, "7.3": rule.MayFail}}, "raw": {on: late}, "allowed": {on: absent},
	})
}
