// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"strings"
	"testing"
)

// Without BTFGEN_LIVE=1 tests load nothing, not even as root.
func TestUnable(t *testing.T) {
	for _, v := range []string{"", "0", "no"} {
		t.Setenv("BTFGEN_LIVE", v)
		if why := Unable(); !strings.Contains(why, "needs BTFGEN_LIVE=1") {
			t.Errorf("BTFGEN_LIVE=%s: %q", v, why)
		}
	}
}
