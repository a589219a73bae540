// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestStacks checks the verdicts on functions that have too large stacks together.
func TestStacks(t *testing.T) {
	tracing := expected{before: "6.13", status: rule.Fails}
	never := expected{status: rule.Fails}
	expectVerdicts(t, "stacks", map[string]expected{
		"kprobe_400": {}, "kprobe_464": {}, "kprobe_one": {},
		"kprobe_604": tracing, "kprobe_three": tracing, "uprobe_604": tracing, "tracepoint_604": tracing, "perf_event_604": tracing,
		"raw_tp_604": tracing, "tp_btf_604": tracing, "fentry_604": tracing,
		"iter_604": never, "lsm_604": never, "xdp_604": never, "tc_604": never,
		"kprobe_rounded": {before: "6.9", status: rule.MayFail}, // by the release alone; 5.10 and 6.1 refuse it
	})
}
