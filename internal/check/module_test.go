// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestModule attaches programs to a function that only a module has, and to one
// of vmlinux.
func TestModule(t *testing.T) {
	vmlinux := testbtf.Types(t, binary.LittleEndian, "proto #p int: a int\nfunc built_in #p\nfunc register_kprobe #p")
	module := funcBTF(vmlinux, "in_module", 5) // after int, u8, u32 and u64
	tg := new(target)
	if err := tg.Load(t.Context(), "k", vmlinux, relolog.Module{Name: "md_mod", BTF: module}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		section string
		want    Status
		attach  bool
	}{
		{"fentry/built_in", OK, false}, {"kprobe/built_in", OK, false},
		{"fentry/in_module", MayFail, false}, {"kprobe/in_module", MayFail, true},
	} {
		want := &wanted{names: make(map[string]int)}
		o := around(insn{Op: 0xb7}, true, tt.section)
		names, _ := attachNames(&o.Programs[0])
		want.add(featureNames...)
		want.add(names...)
		e := evaluation{pairing: &pairing{o: o, k: inspect(t.Context(), tg, want, kernel.Key{}, "x86_64")}, pr: &o.Programs[0]}
		e.attachment()
		if got := worst(e.out); got != tt.want {
			t.Errorf("%s: %s, want %s: %v", tt.section, got, tt.want, e.out)
		}
		for _, f := range e.out {
			if !strings.Contains(f.Reason, "needs module md_mod to be loaded") || f.Attach != tt.attach {
				t.Errorf("%s: %v", tt.section, f)
			}
			rep := Report{Programs: []Program{{Findings: []KernelFinding{{Finding: f}, {Finding: f}}}}}
			if got := rep.Modules(); !slices.Equal(got, []string{"md_mod"}) {
				t.Errorf("%s: modules %q", tt.section, got)
			}
		}
		if e.hook == nil && e.pr.Attach.Kind == bpfprog.AttachFunc {
			t.Errorf("%s: what it is given is not known", tt.section)
		}
	}
}

// TestKprobes attaches programs on a kernel without kprobes: they load, and
// cannot be attached.
func TestKprobes(t *testing.T) {
	tg := new(target)
	if err := tg.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, "proto #p int: a int\nfunc built_in #p")); err != nil {
		t.Fatal(err)
	}
	for section, want := range map[string]Status{"kprobe/built_in": Fails, "kretprobe/no_such": Fails, "ksyscall/open": Fails, "fentry/built_in": OK, "uprobe": OK} {
		w := &wanted{names: make(map[string]int)}
		o := around(insn{Op: 0xb7}, true, section)
		names, _ := attachNames(&o.Programs[0])
		w.add(names...)
		e := evaluation{pairing: &pairing{o: o, k: inspect(t.Context(), tg, w, kernel.Key{}, "x86_64")}, pr: &o.Programs[0]}
		e.attachment()
		if got := worst(e.out); got != want || want == Fails && (!e.out[0].Attach || len(e.out) > 1) {
			t.Errorf("%s: %v", section, e.out)
		}
	}
}

// funcBTF returns the BTF of a module that has one function, of a prototype of
// vmlinux.
func funcBTF(vmlinux []byte, name string, proto uint32) []byte {
	strs := "\x00" + name + "\x00"
	at := binary.LittleEndian.Uint32(vmlinux[20:]) // strings of a module continue those of vmlinux
	out := []byte{0x9f, 0xeb, 1, 0}
	for _, w := range []uint32{24, 0, 12, 12, uint32(len(strs)), at + 1, uint32(btfenc.KindFunc) << 24, proto} {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return append(out, strs...)
}
