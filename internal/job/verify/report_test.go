// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestText prints the first of many kernels without counterpart and the number of the others, and all with verbose.
func TestText(t *testing.T) {
	r := new(Report)
	for i := range maxShown + 2 {
		r.NoKernel = append(r.NoKernel, fmt.Sprintf("k%02d", i))
	}
	r.NotMinimized = r.NoKernel[:maxShown]
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		r.Text(&out, verbose)
		text, n := out.String(), maxShown
		if verbose {
			n = len(r.NoKernel)
		}
		rest := "\nand 2 more: minimized, but not among the kernels (--verbose lists them)\n"
		if strings.Count(text, ": minimized, but not among the kernels\n") != n || strings.HasSuffix(text, rest) == verbose ||
			strings.Count(text, ": no minimized BTF\n") != maxShown || strings.Count(text, "more") > 1 {
			t.Errorf("verbose %v:\n%s", verbose, text)
		}
	}
}
