// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
)

type insn = bpfobj.Insn

// TestCallbackVerdicts holds verdicts on what callbacks do where a guard on the stack of their caller lets them.
func TestCallbackVerdicts(t *testing.T) {
	expectVerdicts(t, "loops", map[string]expected{
		"loop_guarded":     {before: "5.17", status: rule.Fails, others: rule.Guarded},
		"loop_reached":     {status: rule.Fails},
		"loop_second_turn": {before: "5.17", status: rule.Fails, others: rule.MayFail},
		"elements_guarded": {before: "5.13", status: rule.Fails, others: rule.Guarded},
		"elements_reached": {status: rule.Fails},
	})
}
