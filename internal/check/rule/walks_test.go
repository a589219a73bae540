// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestWalks gives helpers pointers that programs load from the current task: task->group_leader is on a list of kernels since 6.4, which
// counts in an RCU section.
func TestWalks(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		section string
		member  string
		helper  asm.BuiltinFunc
		want    Status // since 6.4
	}{
		{"kprobe/f", "group_leader", asm.FnTaskPtRegs, OK},
		{"uprobe.s", "group_leader", asm.FnTaskPtRegs, Fails},
		{"kprobe/f", "mm", 0, OK},
		{"uprobe.s", "mm", 0, OK}, // programs can read through it
	} {
		named := programOf(tt.section, ending(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetCurrentTaskBtf)}, insn{Op: 0x79, Dst: 7}, insn{Op: 0x79, Src: 7}))
		if err := named.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := NewWanted([]*Object{named})
		testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
			k := inspectItem(t, it, want)
			y, ok := k.find("task_struct", btf.KindStruct)
			if !ok || it.Key.ID != "debian" || k.pointer != 8 {
				return
			}
			of, off := y.typ(), int16(-1)
			for i := range of.Vlen() {
				if m := of.Member(i); y.view.NameIs(m.NameOff, tt.member) {
					off = int16(m.BitOffset / 8)
				}
			}
			code := []insn{{Op: bpfobj.OpCall, Imm: int64(asm.FnGetCurrentTaskBtf)}, {Op: 0x79, Dst: 1, Off: off}}
			if tt.helper != 0 {
				code = append(code, insn{Op: bpfobj.OpCall, Imm: int64(tt.helper)})
			} else {
				code = append(code, insn{Op: 0x79, Dst: 2, Src: 1})
			}
			o := programOf(tt.section, ending(code...))
			if err := o.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := &Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
			status := OK
			if l := e.walks(0); len(l) > 0 {
				status = l[0].f.Status
			}
			want := tt.want
			if kernel.CompareVersions(it.Key.Release, "6.4") < 0 {
				want = OK
			}
			if status != want {
				t.Errorf("%s: task->%s on %s: %s, want %s", tt.section, tt.member, it.Name, status, want)
			}
		})
	}
}

// TestNullSocket gives a helper the socket of a struct socket, which may be null for verifiers since 6.10 to 6.12: those of LSM and of fentry
// have other prototypes of it.
func TestNullSocket(t *testing.T) {
	raceflag.SkipSerial(t)
	for section, want := range map[string]Status{"lsm/socket_bind": Fails, "fentry/security_socket_bind": OK} {
		named := programOf(section, ending(insn{Op: 0x79, Dst: 2, Src: 1}, insn{Op: 0x79, Dst: 2, Src: 2}, insn{Op: 0x79, Dst: 3, Src: 2}))
		if err := named.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
			w := NewWanted([]*Object{named})
			w.add("socket")
			k := inspectItem(t, it, w)
			_, lists := k.safe["socket"+safeTrustedOrNull]
			y, ok := k.find("socket", btf.KindStruct)
			if !ok || !lists || k.pointer != 8 {
				return
			}
			member, _ := memberNamed(y.typ(), "sk")
			code := []insn{
				{Op: 0x79, Dst: 2, Src: 1}, {Op: 0x79, Dst: 2, Src: 2, Off: int16(member.BitOffset / 8)},
				{Op: bpfobj.OpCall, Imm: int64(asm.FnSkStorageGet)},
			}
			o := programOf(section, ending(code...))
			if err := o.follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := &Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
			if e.attachment(); e.hook == nil {
				return
			}
			got := OK
			if l := e.walks(0); len(l) > 0 {
				got = l[0].f.Status
			}
			if got != want {
				t.Errorf("%s on %s: %s, want %s", section, it.Name, got, want)
			}
			n++
		})
		if n == 0 {
			t.Skip("needs BTFGEN_CORPUS, with a kernel that lists the sockets that may be null")
		}
	}
}

// TestStructLicense reads a struct of the kernel in a program without a license compatible with the GPL.
func TestStructLicense(t *testing.T) {
	raceflag.SkipSerial(t)
	o := programOf("tp_btf/task_newtask", ending(insn{Op: 0x79, Dst: 2, Src: 1}, insn{Op: 0x79, Dst: 3, Src: 2}))
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, others := 0, 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		k := inspectItem(t, it, NewWanted([]*Object{o}))
		if it.Key.ID != "debian" || k.pointer != 8 {
			return
		}
		for license, want := range map[string]Status{"GPL": OK, "Dual BSD/GPL": OK, "MIT": Fails, "": Fails} {
			if kernel.CompareVersions(it.Key.Release, "6.2") < 0 {
				want, old = OK, old+1
			} else {
				others++
			}
			one := *o
			one.Code = new(bpfobj.Code)
			*one.Code = *o.Code
			one.License = license
			got := Finding{}
			for _, f := range sceneOn(&one, k).evaluate(0).onCode(t.Context()) {
				if f.Status >= got.Status {
					got = f
				}
			}
			if got.Status != want || want == Fails && got.Code != ContextLicense {
				t.Errorf("license %q on %s: %+v, want %s", license, it.Name, got, want)
			}
		}
	})
	if old == 0 || others == 0 {
		t.Errorf("%d older than 6.2, %d others", old, others)
	}
}
