// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestOutputs(t *testing.T) {
	var b bytes.Buffer
	o := &outputs{g: &guest{w: &b}, left: 5000}
	fmt.Fprint(o, strings.Repeat("x", 6000))
	fmt.Fprint(o, "more")
	var got string
	for line := range strings.Lines(b.String()) {
		if e, ok := parse([]byte(strings.TrimSpace(line))); ok {
			got += e.Output
		}
	}
	if want := strings.Repeat("x", 5000) + "\n[the rest of the output is cut off]\n"; got != want {
		t.Errorf("%d bytes: …%q", len(got), end(got, 50))
	}
}
