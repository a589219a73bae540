// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestHelpers holds verdicts on the helpers that programs call.
func TestHelpers(t *testing.T) {
	expectVerdicts(t, "helpers", map[string]expected{
		"cookie":               {},
		"cookie_of_tracepoint": {status: rule.Fails},
		"cookie_guarded":       {status: rule.Guarded},
		"user":                 {before: "6.18", status: rule.MayFail},
		"sleeps":               {status: rule.Fails},
		"options_of_tcp":       {before: "5.15", status: rule.Fails},
		"options_of_udp":       {status: rule.Fails},
	})
}
