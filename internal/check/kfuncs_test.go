// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestCallers checks verdicts on programs that call kfuncs. What no kernel lets programs of kprobes call is not judged.
func TestCallers(t *testing.T) {
	absent := map[string]rule.Status{"5.10": rule.Guarded, "6.1": rule.Guarded}
	late := map[string]rule.Status{"5.10": rule.Fails, "6.1": rule.Guarded, "6.12": rule.MayFail, "6.18": rule.MayFail, "7.0": rule.MayFail}
	expectVerdicts(t, "callers", map[string]expected{
		"traced": {on: absent}, "probed": {on: map[string]rule.Status{"5.10": rule.Fails, "6.1": rule.Guarded}}, "raw": {on: late}, "allowed": {on: absent},
	})
}
