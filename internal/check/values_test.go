// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestSpecialValues checks the verdicts on structs in values of maps that not all programs may use, as kernels from 5.10 to 7.3 load them.
func TestSpecialValues(t *testing.T) {
	never := expected{status: rule.Fails}
	timer := expected{status: rule.Fails, from: "6.1", on: map[string]rule.Status{"7.3": rule.OK}}
	expectVerdicts(t, "values", map[string]expected{
		"kprobe_lock": never, "tracepoint_lock": never, "socket_lock": never, "tc_lock": {}, "tp_btf_lock": {},
		"sleepable_lock": {on: map[string]rule.Status{"6.1": rule.MayFail, "s390x/6.12": rule.Fails}}, // s390x has no hooks of LSM
		"kprobe_timer":   timer, "perf_event_timer": timer, "raw_tp_timer": timer, "tc_timer": {}, "tp_btf_timer": {},
		"kprobe_queue": {status: rule.Fails, from: "6.12", on: map[string]rule.Status{"7.3": rule.OK}}, "tc_queue": {},
		"kprobe_res_lock": {on: map[string]rule.Status{"6.18": rule.MayFail}},
		"socket_res_lock": {status: rule.Fails, from: "6.18"}, "tc_res_lock": {},
	})
	expectVerdicts(t, "innerlock", map[string]expected{"lookup": {status: rule.Fails, before: "6.2"}})
}
