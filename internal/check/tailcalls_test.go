// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestTailCalls checks the verdicts on programs in the initial values of program arrays, which are loaded and not attached.
func TestTailCalls(t *testing.T) {
	older := expected{status: rule.Fails, before: "6.6", attach: true}
	unlisted := expected{status: rule.MayFail, attach: true}
	expectVerdicts(t, "tailcalls", map[string]expected{
		"probe": {}, "probe_tail": {}, "probe_placeholder": {}, "probe_elsewhere": unlisted, "probe_by_loader": unlisted,
		"multi": older, "multi_tail": {}, "multi_itself": older,
		"traced": {}, "traced_tail": {status: rule.Unknown},
	})
}
