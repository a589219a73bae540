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
		"kprobe_rounded": {before: "6.9", status: rule.MayFail}, // judged by the release alone; 5.10 and 6.1 refuse it
	})
}

// TestLateStacks checks the verdicts on timers whose functions have too large stacks with what they call. Linux 5.10 has no timers.
func TestLateStacks(t *testing.T) {
	expectVerdicts(t, "cornerlate", map[string]expected{"small": {before: "6.1", status: rule.Fails}, "large": {status: rule.Fails}})
}

// TestFresh checks the verdicts on reads of bytes of the stack that nothing wrote, as booted kernels load them: updates of 5.10 and 6.1 take
// some of them.
func TestFresh(t *testing.T) {
	below := expected{before: "6.8", status: rule.Fails, on: map[string]rule.Status{"6.1": rule.MayFail}}
	expectVerdicts(t, "fresh", map[string]expected{
		"reads_slot": below, "reads_half": {before: "6.3", status: rule.MayFail}, "reads_copy": below, "reads_written": {}, "adds_to": below,
		"written_by_function": {},
		"masked":              below, "masked_zeroed": {}, "compared": below, "constant": {}, "only_0": {}, "only_0_or_8": below,
		"outputs": below, "outputs_part": below, "outputs_zeroed": {}, "looks_up": below, "looks_up_zeroed": {},
		"kprobe_stack": {}, "raw_tp_stack": below, "raw_tp_stack_zeroed": {}, "fentry_stack": below,
	})
}
