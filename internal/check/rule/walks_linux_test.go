// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
)

// walked are programs that TestVerifierWalks lets load pointers from structs of the kernel.
var walked = []probe{
	{"lsm/file_open", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_file_open", btf.KindFunc},
	{"lsm.s/file_open", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_file_open", btf.KindFunc},
	{"lsm/bprm_check_security", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_bprm_check_security", btf.KindFunc},
	{"lsm.s/bprm_check_security", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_bprm_check_security", btf.KindFunc},
	{"lsm/task_free", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_task_free", btf.KindFunc},
	{"lsm/task_kill", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_task_kill", btf.KindFunc},
	{"lsm/inode_unlink", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_inode_unlink", btf.KindFunc},
	{"lsm/socket_connect", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_socket_connect", btf.KindFunc},
	{"lsm.s/socket_bind", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_socket_bind", btf.KindFunc},
	{"lsm/mmap_file", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_mmap_file", btf.KindFunc},
	{"tp_btf/sched_process_exec", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_sched_process_exec", btf.KindTypedef},
	{"tp_btf/netif_receive_skb", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_netif_receive_skb", btf.KindTypedef},
	{"tp_btf/cgroup_mkdir", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_cgroup_mkdir", btf.KindTypedef},
	{"tp_btf/sched_process_fork", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_sched_process_fork", btf.KindTypedef},
	{"tp_btf/cgroup_attach_task", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_cgroup_attach_task", btf.KindTypedef},
	{"tp_btf/tcp_retransmit_skb", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_tcp_retransmit_skb", btf.KindTypedef},
	{"tp_btf/writeback_dirty_folio", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_writeback_dirty_folio", btf.KindTypedef},
	{"syscall", ebpf.Syscall, 0, "", 0},
	{"uprobe.s", ebpf.Kprobe, 0, "", 0},
	{"kprobe", ebpf.Kprobe, 0, "", 0},
	{"fentry/vfs_open", ebpf.Tracing, ebpf.AttachTraceFEntry, "vfs_open", btf.KindFunc},
	{"fentry/tcp_connect", ebpf.Tracing, ebpf.AttachTraceFEntry, "tcp_connect", btf.KindFunc},
	{"fexit/do_filp_open", ebpf.Tracing, ebpf.AttachTraceFExit, "do_filp_open", btf.KindFunc},
}

// takers are helpers that get a pointer to a struct in r1, and nothing else.
var takers = map[string]asm.BuiltinFunc{"task_struct": asm.FnTaskPtRegs, "file": asm.FnSockFromFile, "sock": asm.FnSkcToTcpSock}

// path is how a program loads a pointer from structs of the kernel.
type walkPath struct {
	arg     int
	offs    []int16
	to      btf.Type
	current bool // it begins with bpf_get_current_task_btf
}

// code makes the program: it compares pointers with 0 before it reads through them, or not, and calls the helper that takes the last one.
func (p *walkPath) code(checks bool) (l []insn) {
	check := func() {
		if checks {
			l = append(l, insn{Op: 0x55, Dst: 7, Off: 2}, insn{Op: 0xb7, Imm: 0}, insn{Op: bpfobj.OpExit})
		}
	}
	if p.current {
		l = append(l, insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetCurrentTaskBtf)}, insn{Op: 0xbf, Dst: 7})
	} else {
		l = append(l, insn{Op: 0x79, Dst: 7, Src: 1, Off: int16(8 * p.arg)})
	}
	for _, off := range p.offs {
		check()
		l = append(l, insn{Op: 0x79, Dst: 7, Src: 7, Off: off})
	}
	check()
	if h := takers[string(p.to.Name())]; h != 0 {
		l = append(l, insn{Op: 0xbf, Dst: 1, Src: 7}, insn{Op: bpfobj.OpCall, Imm: int64(h)})
	}
	return l
}

// extend returns the paths with one load more.
func (p *walkPath) extend() (l []walkPath) {
	for off := uint64(0); off+8 <= uint64(p.to.Size()) && off < 1<<14; off += 8 {
		if w, ok := walk(p.to, off, 8); ok {
			l = append(l, walkPath{p.arg, append(slices.Clone(p.offs), int16(off)), w.to, p.current})
		}
	}
	return l
}

// TestVerifierWalks compares verdicts with the running kernel: programs load pointers from structs of the kernel, read through them and
// give them to helpers. It tries all pointers one or two loads away from an argument, and random ones three loads away.
func TestVerifierWalks(t *testing.T) {
	names := []string{"task_struct"}
	for _, p := range walked {
		names = append(names, p.to)
	}
	k := datedKernel(t, names...)
	if len(k.safe) < 10 {
		t.Skip("the kernel does not list members that are trusted")
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	counts := make(map[string]int)
	for i := range walked {
		s, l := walked[i].loader(t, k)
		if l == nil {
			continue // without LSM or trampolines
		}
		counts["types"]++
		one := programOf(walked[i].section, ending())
		e := Evaluation{Scene: sceneOn(one, k), pr: &one.Programs[0]}
		e.attachment()
		var first []walkPath
		if y, ok := k.find("task_struct", btf.KindStruct); ok {
			first = append(first, walkPath{to: y.typ(), current: true})
		}
		for n := 0; e.hook != nil && n < e.hook.params(); n++ {
			if at, f := e.hook.slot(n); f.Status == OK && at.Kind() == btf.KindPtr {
				if to, ok := e.hook.view.SkipMods(at.Ref()); ok && to.Kind().IsComposite() {
					first = append(first, walkPath{arg: n, to: to})
				}
			}
		}
		var paths []walkPath
		for _, p := range first {
			for _, p := range p.extend() {
				paths = append(paths, p)
				second := p.extend()
				rnd.Shuffle(len(second), func(i, j int) { second[i], second[j] = second[j], second[i] })
				for j, p := range second {
					if takers[string(p.to.Name())] != 0 || j < 3 {
						paths = append(paths, p)
					}
					if third := p.extend(); len(third) > 0 && j < 3 {
						paths = append(paths, third[rnd.IntN(len(third))])
					}
				}
			}
		}
		rnd.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		for _, p := range paths[:min(len(paths), 250)] {
			for _, checks := range []bool{false, true} {
				code := p.code(checks)
				o := programOf(walked[i].section, ending(code...))
				if err := o.follow(t.Context()); err != nil {
					t.Fatal(err)
				}
				e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
				e.attachment()
				found := slices.Concat(e.accesses(0), e.walks(0))
				log, err := l.load(code...)
				refused := err != nil && (strings.Contains(log, "untrusted_ptr_") || strings.Contains(log, "ptr_or_null_") ||
					strings.Contains(log, "Possibly NULL") || strings.Contains(log, "access user memory") || strings.Contains(log, "access percpu memory"))
				switch {
				// Helpers that take sockets refuse pointers in RCU sections. This is not judged.
				case refused && strings.Contains(log, "=rcu_ptr_ expected=sock_common"):
				case err == nil && len(found) > 0:
					t.Errorf("%s: %+v, checks %t: loads, but %+v", s.Prefix, p, checks, found[0].f)
				case refused && len(found) == 0:
					t.Errorf("%s %s: argument %d %v to %s, checks %t: is refused: %s", walked[i].section, s.Prefix, p.arg, p.offs, p.to.Name(), checks, log)
				case refused:
					counts["refused as "+string(found[0].f.Code)]++
				case err != nil:
					counts["refused for another reason"]++
				default:
					counts["loads"]++
				}
			}
		}
	}
	t.Log(counts)
	if counts["types"] < 8 || counts["loads"] < 1000 || counts["refused as context-untrusted"] < 50 || counts["refused as context-null"] < 5 {
		t.Error("the programs are too much alike")
	}
}
