// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestWitnessesAreOneFunction checks that the running kernel has no witness twice: newer pahole leaves functions with
// one name out of BTF, because the name is ambiguous.
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
