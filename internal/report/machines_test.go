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
		{[]string{"debian/12/x86_64/6.1", "debian/12/arm64/6.1"}, []rule.Status{rule.OK, rule.Other}, `1 object on 2 kernels: it works on all that it is for
1 program: 1 ok

    x86_64
    6.1
a.o ok
no object is for the kernels of arm64
`},
		{[]string{"debian/12/arm64/6.1"}, []rule.Status{rule.Other}, `No object is loaded on any of 1 kernel; 1 for machines without a kernel here
1 program: 1 n/a

no object is for the kernels of arm64
`},
	} {
		r := &verdict.Report{
			Programs: []verdict.ProgramRow{{Object: "a.o", Name: "p", Section: "xdp", Status: tt.status}},
			Objects:  []verdict.ObjectRow{{Object: "a.o", Programs: []int{0}, Status: tt.status}},
		}
		for _, name := range tt.kernels {
			r.Kernels = append(r.Kernels, verdict.Column{Name: name})
		}
		r.Summarize()
		var b bytes.Buffer
		if err := Formats["text"](&b, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if b.String() != tt.want {
			t.Errorf("got\n%s\nwant\n%s", &b, tt.want)
		}
	}
}
