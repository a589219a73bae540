// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestRanges holds verdicts on guards that compare the size of a number. The guarded field has been absent
// since Linux 5.14. Others access memory within bounds that only != shows.
func TestRanges(t *testing.T) {
	guarded := expected{from: "5.14", status: Guarded, others: OK}
	fails := expected{from: "5.14", status: Fails, others: OK}
	unequal := expected{before: "6.8", status: MayFail, others: OK} // 5.10 and 6.1 refuse them
	expectVerdicts(t, "ranges", []Family{FamilyCORE, FamilyBounds}, map[string]expected{
		"early_return":        guarded,
		"early_return_32":     guarded,
		"signed_numbers":      guarded,
		"computed":            guarded,
		"masked":              guarded,
		"shifted":             guarded,
		"loop":                guarded,
		"spilled":             guarded,
		"returned":            guarded,
		"not_enough":          fails,
		"computed_not_enough": fails,
		"not_equal":           unequal,
		"not_equal_32":        unequal,
		"not_equal_helper":    unequal,
		"compared_after":      {},
	})
}
