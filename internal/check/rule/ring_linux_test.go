// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// TestRingArguments gives a helper memory of a ring buffer as key, as value and as both, and compares with the running kernel.
func TestRingArguments(t *testing.T) {
	k := datedKernel(t)
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	hash, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer hash.Close()
	for _, tt := range []struct{ key, value asm.Register }{{asm.R6, asm.RFP}, {asm.RFP, asm.R6}, {asm.R6, asm.R6}} {
		argument := func(to, from asm.Register) asm.Instructions {
			if from == asm.RFP {
				return asm.Instructions{asm.Mov.Reg(to, from), asm.Add.Imm(to, -8)}
			}
			return asm.Instructions{asm.Mov.Reg(to, from)}
		}
		code := asm.Instructions{
			asm.Mov.Imm(asm.R7, 0), asm.StoreMem(asm.RFP, -8, asm.R7, asm.DWord),
			asm.LoadMapPtr(asm.R1, ring.FD()), asm.Mov.Imm(asm.R2, 8), asm.Mov.Imm(asm.R3, 0), asm.FnRingbufReserve.Call(),
			asm.JEq.Imm(asm.R0, 0, "end"),
			asm.Mov.Reg(asm.R6, asm.R0), asm.StoreMem(asm.R6, 0, asm.R7, asm.DWord), asm.LoadMapPtr(asm.R1, hash.FD()),
		}
		code = append(append(code, argument(asm.R2, tt.key)...), argument(asm.R3, tt.value)...)
		code = append(code, asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call(), asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 0),
			asm.FnRingbufDiscard.Call(), asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL", Instructions: code})
		var ve *ebpf.VerifierError
		if err == nil {
			p.Close()
		} else if !errors.As(err, &ve) || !strings.Contains(strings.Join(ve.Log, " "), "more than one arg") {
			t.Fatal(err)
		}
		copied := func(to, from asm.Register) insn { return insn{Op: 0xbf, Dst: to, Src: from} }
		o := programOf("raw_tp", ending(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnRingbufReserve)}, copied(6, 0), copied(2, tt.key), copied(3, tt.value),
			insn{Op: bpfobj.OpCall, Imm: int64(asm.FnMapUpdateElem)}))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
		status := OK
		if l := e.withMaps(0); len(l) > 0 {
			status = l[0].f.Status
		}
		if (status == Fails) != (err != nil) || status == MayFail && !k.has(facts.MemoryOfRingBuffers) {
			t.Errorf("key %s, value %s: %s, but the kernel says %v", tt.key, tt.value, status, err)
		}
	}
}
