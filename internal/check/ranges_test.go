// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestRanges holds verdicts on guards that compare the size of a number. The guarded field has been absent
// since Linux 5.14.
func TestRanges(t *testing.T) {
	guarded := expected{from: "5.14", status: Guarded, others: OK}
	fails := expected{from: "5.14", status: Fails, others: OK}
	expectVerdicts(t, "ranges", []Family{FamilyCORE}, map[string]expected{
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
		"not_equal":           {},
		"not_equal_32":        {},
		"not_equal_helper":    {},
		"compared_after":      {},
	})
}
