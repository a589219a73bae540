// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestMasks checks the verdicts on indices into a map's value that are masked with more than its size.
func TestMasks(t *testing.T) {
	fails := expected{status: Fails}
	expectVerdicts(t, "masks", []Family{FamilyBounds}, map[string]expected{
		"too_wide": fails, "too_wide_behind": fails, "too_wide_for_helper": fails, "too_wide_guarded": {status: Guarded},
		"narrow": {}, "compared": {}, "compared_before": {},
	})
}
