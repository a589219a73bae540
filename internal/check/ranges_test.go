// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestRanges holds verdicts on guards that go by the size of a number. What they guard has been absent
// since Linux 5.14.
func TestRanges(t *testing.T) {
	guarded := expected{from: "5.14", status: Guarded, others: OK}
	fails := expected{from: "5.14", status: Fails, others: OK}
	expectVerdicts(t, "ranges", []Topic{TopicCORE}, map[string]expected{
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
	})
}
