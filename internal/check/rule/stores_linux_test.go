// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// stored are members of struct_ops whose arguments are pointers to structs with fields that programs may write, or to others.
var stored = []struct{ ops, member string }{
	{"tcp_congestion_ops", "ssthresh"}, {"tcp_congestion_ops", "pkts_acked"}, {"sched_ext_ops", "enqueue"}, {"sched_ext_ops", "dump_task"}, {"sched_ext_ops", "dispatch"},
	{"sched_ext_ops", "yield"}, {"hid_bpf_ops", "hid_device_event"},
	{"Qdisc_ops", "enqueue"}, {"Qdisc_ops", "reset"}, {"bpf_dummy_ops", "test_1"},
}

// TestVerifierStores compares verdicts with the running kernel: programs for a struct_ops write to each byte around fields of the structs to which
// their arguments lead, and to others, after a test, and read without one.
func TestVerifierStores(t *testing.T) {
	var names []string
	for _, s := range stored {
		names = append(names, s.ops, stubOf(s.ops, s.member))
		names = append(names, facts.OpsNamed(s.ops).Structs()...)
	}
	k := datedKernel(t, names...)
	rnd := rand.New(rand.NewPCG(1, 1))
	counts := make(map[string]int)
	for _, s := range stored {
		y, ok := k.find(s.ops, btf.KindStruct)
		if !ok {
			continue
		}
		l := &loader{kind: uint32(k.enums[facts.EnumProg]["BPF_PROG_TYPE_STRUCT_OPS"]), btfID: uint32(y.id)}
		for i := range y.typ().Vlen() {
			if m := y.typ().Member(i); y.view.NameIs(m.NameOff, s.member) {
				l.attach = i
			}
		}
		// The program does not release a packet that it is given, which the verifier only sees at its end.
		load := func(code ...insn) (string, error) {
			log, err := l.load(code...)
			if strings.Contains(log, "Unreleased reference") {
				err = nil
			}
			return log, err
		}
		if log, err := load(); err != nil {
			t.Logf("%s.%s: not probed: %v %s", s.ops, s.member, err, log)
			continue
		}
		program := func(code ...insn) *Object {
			o := programOf("struct_ops/"+s.member, ending(code...))
			o.StructOps = []bpfobj.StructOpsMap{{Name: "ops", Type: s.ops, Members: []string{s.member}, Funcs: []int{0}}}
			return o
		}
		one := program()
		e := &Evaluation{Scene: sceneOn(one, k), pr: &one.Programs[0]}
		h := e.opsHook(0, one.Programs[0].Attach)
		for n := range h.params() {
			at, f := h.slot(n)
			if f.Status != OK || at.Kind() != btf.KindPtr {
				continue
			}
			to, ok := h.view.SkipMods(at.Ref())
			if !ok || to.Kind() != btf.KindStruct {
				continue
			}
			to = e.promoted(to)
			counts["arguments"]++
			read := []insn{{Op: asm.LoadMemOp(asm.DWord), Dst: 1, Src: 1, Off: int16(8 * n)}, {Op: asm.LoadMemOp(asm.Byte), Dst: 2, Src: 1}}
			if _, err := load(read...); err == nil && onContext(t, program(read...), k).Status != OK {
				t.Errorf("%s.%s: a read through argument %d: %v", s.ops, s.member, n, err)
			}
			for _, off := range e.tried(to, rnd) {
				for _, size := range []asm.Size{asm.Byte, asm.Half, asm.Word, asm.DWord} {
					if off%int64(size.Sizeof()) != 0 {
						continue
					}
					for _, in := range []insn{{Op: asm.StoreImmOp(size), Dst: 1, Off: int16(off)}, {Op: asm.LoadMemOp(size), Dst: 2, Src: 1, Off: int16(off)}} {
						code := []insn{
							{Op: asm.LoadMemOp(asm.DWord), Dst: 1, Src: 1, Off: int16(8 * n)},
							{Op: 0x55, Dst: 1, Off: 2}, {Op: 0xb7}, {Op: bpfobj.OpExit}, in,
						}
						found := onContext(t, program(code...), k)
						log, err := load(code...)
						switch {
						// Reads that begin with a struct, and those of a union, are not judged.
						case found.Status == OK && err != nil && in.Op.Class() == asm.LdXClass:
							counts["reads not judged"]++
						case (err == nil) != (found.Status == OK):
							t.Errorf("%s.%s: %s: %d bytes at %d of %s: %v, but %+v: %s", s.ops, s.member, in.Op, size.Sizeof(), off, to.Name(), err, found, log)
						case err == nil:
							counts[in.Op.Class().String()+" loads"]++
						default:
							counts[in.Op.Class().String()+" is refused"]++
						}
					}
				}
			}
		}
	}
	t.Log(counts)
	if counts["arguments"] > 0 && (counts["StClass loads"] < 20 || counts["StClass is refused"] < 100 || counts["LdXClass loads"] < 100) {
		t.Error("the programs are too much alike")
	}
}

// tried returns the offsets of a struct that are tried: all around fields that programs may write, and some others.
func (e *Evaluation) tried(t btf.Type, rnd *rand.Rand) (l []int64) {
	m, _ := e.opsMember(0)
	near := make(map[int64]bool)
	for i := range facts.OpsNamed(m.Type).Fields {
		x := &facts.OpsNamed(m.Type).Fields[i]
		if lo, hi, known := e.bytesOf(t, x); known && x.Of == string(t.Name()) {
			for off := lo - 8; off < min(hi+8, lo+64); off++ {
				near[off] = true
			}
			for off := hi - 16; off < hi+8; off++ {
				near[off] = true
			}
		}
	}
	for range 100 {
		near[rnd.Int64N(int64(t.Size()))] = true
	}
	for off := range near {
		if off >= 0 && off < int64(min(t.Size(), 1<<15-8)) {
			l = append(l, off)
		}
	}
	slices.Sort(l)
	return l
}
