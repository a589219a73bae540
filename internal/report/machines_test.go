// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestOtherMachines accounts for all kernels and programs where objects are for one machine.
func TestOtherMachines(t *testing.T) {
	for _, tt := range []struct {
		kernels []string
		status  []rule.Status
		want    string
	}{
		{[]string{"debian/12/x86_64/6.1", "debian/12/arm64/6.1"}, []rule.Status{rule.OK, rule.Other}, `1 program of 1 object on 2 kernels: 1 ok

objects:
  a.o: 1 of 1 kernel.
1 program ok on every kernel
1 of 2 kernels for machines that no object is for
`},
		{[]string{"debian/12/arm64/6.1"}, []rule.Status{rule.Other}, `1 program of 1 object on 1 kernel: 1 n/a

objects:
  a.o: No kernel here is one that it is for.
1 program for other machines
1 of 1 kernel for machines that no object is for
`},
	} {
		r := &verdict.Report{
			Programs: []verdict.ProgramRow{{Object: "a.o", Name: "p", Section: "xdp", Status: tt.status}},
			Objects:  []verdict.ObjectRow{{Object: "a.o", Programs: []int{0}, Status: tt.status}},
		}
		for i, name := range tt.kernels {
			r.Kernels = append(r.Kernels, verdict.Column{Name: name})
			if tt.status[i] == rule.OK {
				r.Objects[0].Headline.Works++
				r.Objects[0].Headline.Total++
			}
		}
		var b bytes.Buffer
		if err := Formats["text"](&b, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if b.String() != tt.want {
			t.Errorf("got\n%s\nwant\n%s", &b, tt.want)
		}
	}
}
