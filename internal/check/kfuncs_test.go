// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestCallers checks verdicts on programs that call kfuncs. What no kernel lets programs of kprobes call is not judged.
func TestCallers(t *testing.T) {
	const arm = "arm/6.12" // has no calls of kfuncs
	absent := map[string]rule.Status{"5.10": rule.Guarded, "6.1": rule.Guarded, arm: rule.Fails}
	late := map[string]rule.Status{"5.10": rule.Fails, "6.1": rule.Guarded, "6.12": rule.MayFail, "6.18": rule.MayFail, arm: rule.Fails}
	expectVerdicts(t, "callers", map[string]expected{
		"traced": {on: absent}, "probed": {on: map[string]rule.Status{"5.10": rule.Fails, "6.1": rule.Guarded, arm: rule.Fails}}, "raw": {on: late}, "allowed": {on: absent},
	})
}
