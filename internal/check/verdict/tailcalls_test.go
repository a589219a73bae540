// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestTailCalledOption chooses programs that only tail calls reach by name, in one object.
func TestTailCalledOption(t *testing.T) {
	code := &bpfobj.Code{
		Funcs:    []bpfobj.Function{{Name: "read"}, {Name: "read_tail"}},
		Programs: []bpfobj.Program{{Fn: 0, Funcs: []int{0}}, {Fn: 1, Funcs: []int{1}}},
	}
	a, b := rule.NewObject("dir/a.o", code, nil), rule.NewObject("b.o", code, nil)
	var p Policy
	for _, value := range []string{"a.o:*_tail", "a.o:none"} {
		if err := p.Add(tailCalled, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		o       *rule.Object
		program int
		want    bool
	}{{a, 0, false}, {a, 1, true}, {b, 1, false}} {
		if got := p.TailCalled(x.o, x.program); got != x.want {
			t.Errorf("%s of %s: %v", x.o.ProgramName(x.program), x.o.Name(), got)
		}
	}
	if l := p.Unmatched([]*rule.Object{a, b}); len(l) != 1 || l[0].Value != "a.o:none" {
		t.Error(l)
	}
}
