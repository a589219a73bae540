// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"strings"
	"testing"
)

// Nothing is loaded into the kernel of whoever did not ask for it, root or not.
func TestUnable(t *testing.T) {
	for _, v := range []string{"", "0", "no"} {
		t.Setenv("BTFGEN_LIVE", v)
		if why := Unable(); !strings.Contains(why, "needs BTFGEN_LIVE=1") {
			t.Errorf("BTFGEN_LIVE=%s: %q", v, why)
		}
	}
}
