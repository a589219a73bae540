// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestWitnessesAreOneFunction wants no function as a witness of which the running kernel has several: newer pahole leaves those out of BTF, as
// their names do not tell which one is meant.
func TestWitnessesAreOneFunction(t *testing.T) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Skipf("needs the symbols of the running kernel: %v", err)
	}
	defer f.Close()
	count := make(map[string]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if parts := strings.Fields(lines.Text()); len(parts) == 3 && strings.EqualFold(parts[1], "t") {
			count[parts[2]]++
		}
	}
	if len(count) == 0 {
		t.Skip("the running kernel shows no symbols")
	}
	for _, name := range featureNames() {
		if count[name] > 1 {
			t.Errorf("the running kernel has %d functions %s", count[name], name)
		}
	}
}
