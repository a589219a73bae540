// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestSizes checks the verdicts on sizes whose bounds kernels before 6.8 do not see.
func TestSizes(t *testing.T) {
	notZero := expected{before: "6.8", status: rule.Fails}
	expectVerdicts(t, "sizes", map[string]expected{
		"half": {}, "half_of_field": {}, "whole": {}, "half_masked": {}, "greater": {}, "not_zero": notZero, "not_zero_masked": notZero,
	})
}
