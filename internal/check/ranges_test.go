// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestRanges holds verdicts on guards that compare the size of a number. The guarded field has been absent since Linux 5.14. Verifiers
// know the bounds that comparisons give and package interp does not, so what depends on them may fail.
func TestRanges(t *testing.T) {
	mayFail := expected{from: "5.14", status: rule.MayFail, others: rule.OK}
	guarded := expected{from: "5.14", status: rule.Guarded, others: rule.OK} // bits show it
	expectVerdicts(t, "ranges", map[string]expected{
		"early_return":        mayFail,
		"early_return_32":     mayFail,
		"signed_numbers":      mayFail,
		"computed":            mayFail,
		"masked":              guarded,
		"shifted":             guarded,
		"loop":                mayFail,
		"spilled":             mayFail,
		"returned":            mayFail,
		"not_enough":          mayFail,
		"computed_not_enough": mayFail,
		"not_equal":           {},
		"not_equal_32":        {},
		"not_equal_helper":    {},
		"compared_after":      {},
	})
}
