// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// fieldSections are sections whose programs get a struct of the kernel's interface.
var fieldSections = strings.Fields(`socket tc action xdp xdp/devmap xdp/cpumap perf_event cgroup_skb/ingress cgroup/sock_create cgroup/sock_release cgroup/post_bind4 cgroup/post_bind6
	lwt_in lwt_out lwt_xmit lwt_seg6local sockops sk_skb sk_skb/stream_parser cgroup/dev sk_msg cgroup/bind4 cgroup/bind6 cgroup/connect4 cgroup/connect6
	cgroup/connect_unix cgroup/sendmsg4 cgroup/sendmsg6 cgroup/sendmsg_unix cgroup/recvmsg4 cgroup/recvmsg6 cgroup/recvmsg_unix cgroup/getpeername4
	cgroup/getpeername6 cgroup/getpeername_unix cgroup/getsockname4 cgroup/getsockname6 cgroup/getsockname_unix sk_reuseport sk_reuseport/migrate
	flow_dissector cgroup/sysctl cgroup/getsockopt cgroup/setsockopt sk_lookup`)

// TestVerifierFields asks the running kernel which bytes of their context programs may read and write, and compares with the table. With -v it
// logs the answers, in the grammar of the table.
func TestVerifierFields(t *testing.T) {
	var names []string
	for _, section := range fieldSections {
		names = append(names, facts.ProgramType(bpfobj.SectionOf(section).ProgType).Context)
	}
	k := datedKernel(t, names...)
	compared := 0
	for _, section := range fieldSections {
		of := bpfobj.SectionOf(section)
		p := probe{section, ebpf.ProgramType(k.enums[facts.EnumProg]["BPF_PROG_TYPE_"+of.ProgType]), ebpf.AttachType(k.enums[facts.EnumAttach][of.Type]), "", 0}
		s, l := p.loader(t, k)
		if l == nil {
			t.Errorf("%s: not loaded", section)
			continue
		}
		y, ok := k.find(facts.ProgramType(s.ProgType).Context, btf.KindStruct)
		if !ok {
			t.Errorf("%s: no context", section)
			continue
		}
		size := int(y.typ().Size())
		for _, write := range []bool{false, true} {
			sizes := make(map[string]string) // digits of possible sizes, by range of offsets
			for _, n := range []int{1, 2, 4, 8} {
				first := -1
				for off := 0; off <= size; off += n {
					may := false
					if off+n <= size {
						compared++
						_, err := l.load(accessOf(off, n, write)...)
						may = err == nil
						if got := k.mayAccess(s, int64(off), n, write); got != may {
							t.Errorf("%s: write %t of %d bytes at %d: %v, but the table says %t", section, write, n, off, err, got)
						}
					}
					if may && first < 0 {
						first = off
					} else if !may && first >= 0 {
						sizes[fmt.Sprintf("%d..%d", first, off)] += fmt.Sprint(n)
						first = -1
					}
				}
			}
			t.Logf("%s/%s %t: %v", s.ProgType, s.Type, write, sizes)
		}
	}
	if compared < 10000 {
		t.Errorf("%d accesses", compared)
	}
}

// mayAccess reports whether the table lets programs access bytes of their context on a kernel whose release is known.
func (k *Inventory) mayAccess(s *bpfobj.Section, off int64, size int, write bool) bool {
	a := facts.ContextAccess(k.Arch, s.ProgType, s.Type, off, size, write)
	return a.May && k.later(a.When, ContextForbidden).Status == OK
}

// accessOf makes a program that reads or writes bytes of its context.
func accessOf(off, size int, write bool) []insn {
	op := map[int]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word, 8: asm.DWord}[size]
	if write {
		return []insn{{Op: 0xb7, Dst: 2}, {Op: asm.StoreMemOp(op), Dst: 1, Src: 2, Off: int16(off)}}
	}
	return []insn{{Op: asm.LoadMemOp(op), Dst: 2, Src: 1, Off: int16(off)}}
}
