// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/flow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// TestTaggedPointers checks the verdicts on reads through arguments that the BTF tags as addresses of other memory.
func TestTaggedPointers(t *testing.T) {
	view, err := btf.New(testbtf.Types(t, binary.LittleEndian, `struct sockaddr 16: sa_family u32 0, sa_data u32 4
tag user sockaddr
tag percpu sockaddr#const
const sockaddr#const sockaddr
tag rcu sockaddr
proto #args int: *sockaddr, *user, *percpu, *rcu, *sockaddr#const
func hooked #args`), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := (*hook)(nil)
	for id := view.FirstID(); int(id) < view.NumTypes(); id++ {
		if y := view.Type(id); y.Kind() == btf.KindFunc {
			h = newHook("hooked", view, y.Ref(), bpfobj.SectionOf("fentry/hooked"))
		}
	}
	p := &Scene{o: programOf("fentry/hooked", nil), k: oldest(t, NewWanted(nil))}
	for arg, want := range []string{"", "user", "percpu", "", ""} {
		f := h.through(p, &flow.Access{Arg: arg, Size: 4}, 4, 4)
		if fails := f.Status == Fails && f.Code == ContextTagged; fails != (want != "") || f.Name != want {
			t.Errorf("argument %d: %+v, want %q", arg, f, want)
		}
	}
}
