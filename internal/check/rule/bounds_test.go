// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestOldBounds has programs that give a helper a size, with the last release whose verifier refuses the bounds it sees.
func TestOldBounds(t *testing.T) {
	raceflag.SkipSerial(t)
	call := func(id asm.BuiltinFunc) insn { return insn{Op: bpfobj.OpCall, Imm: int64(id)} }
	number := []insn{call(asm.FnGetPrandomU32)}
	load := []insn{{Op: 0x79, Src: 6}}                                          // r0 = *(u64 *)(r6 + 0)
	loadHalf := []insn{{Op: 0x61, Src: 6}}                                      // r0 = *(u32 *)(r6 + 0)
	atMost32 := []insn{{Op: 0x26, Off: 6, Imm: 64}}                             // if w0 > 64
	notMore32 := []insn{{Op: 0xa6, Off: 1, Imm: 65}, {Op: bpfobj.OpJa, Off: 5}} // if w0 < 65
	atMost := []insn{{Op: 0x25, Off: 6, Imm: 64}}                               // if r0 > 64
	atMostLater := []insn{{Op: 0x25, Dst: 2, Off: 4, Imm: 64}}
	lower := []insn{{Op: 0xbc, Dst: 2}}           // w2 = w0
	whole := []insn{{Op: 0xbf, Dst: 2}}           // r2 = r0
	masked := []insn{{Op: 0x57, Dst: 2, Imm: 63}} // r2 &= 63
	read := []insn{{Op: 0xbf, Dst: 1, Src: 10}, {Op: 0x07, Dst: 1, Imm: -72}, {Op: 0xb7, Dst: 3}, call(asm.FnCsumDiff), {Op: 0xb7}, {Op: bpfobj.OpExit}}
	keep := []insn{{Op: 0xbf, Dst: 6, Src: 1}}
	not0 := []insn{{Op: 0x15, Dst: 2, Off: 4}}    // if r2 == 0
	not0Before := []insn{{Op: 0x15, Off: 6}}      // if r0 == 0
	greater := []insn{{Op: 0xb5, Dst: 2, Off: 5}} // if r2 <= 0
	greaterCopy := []insn{{Op: 0xb5, Off: 5}}     // if r0 <= 0
	load4 := []insn{{Op: 0xbf, Dst: 4, Src: 2}, {Op: 0xbf, Dst: 1, Src: 6}, {Op: 0xbf, Dst: 3, Src: 10}, call(asm.FnSkbLoadBytes), {Op: 0xb7}, {Op: bpfobj.OpExit}}
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 10), Linux(5, 7), Linux(5, 6), Linux(5, 4), Linux(5, 3), Linux(5, 1)} {
		Age(k, to)
		for _, tt := range []struct {
			name    string
			code    [][]insn
			refused Release // 0 for no kernel
		}{
			{"half", [][]insn{number, atMost32, lower, read}, Linux(5, 6)},
			{"half of memory", [][]insn{load, atMost32, lower, read}, Linux(5, 6)},
			{"half, other way", [][]insn{number, notMore32, lower, read}, Linux(5, 6)},
			{"half before", [][]insn{number, lower, {{Op: 0xbf, Src: 2}}, atMost32, whole, read}, 0},
			{"known half", [][]insn{loadHalf, atMost32, lower, read}, 0},
			{"whole", [][]insn{number, atMost, lower, read}, 0},
			{"half and whole", [][]insn{number, atMost32, lower, atMostLater, read}, 0},
			{"half and not 0", [][]insn{number, atMost32, lower, not0, read}, 0},
			{"not 0", [][]insn{number, not0Before, atMost, lower, load4}, Linux(6, 7)},
			{"not 0 after", [][]insn{number, atMost, lower, not0, load4}, Linux(6, 7)},
			{"not 0, masked", [][]insn{number, whole, masked, not0, load4}, Linux(6, 7)},
			{"not 0, 1 at most", [][]insn{number, whole, {{Op: 0x25, Dst: 2, Off: 5, Imm: 1}}, not0, load4}, Linux(6, 7)},
			{"not 0, 0 at most", [][]insn{number, whole, {{Op: 0x25, Dst: 2, Off: 5}}, not0, load4}, 0},
			{"greater than 0", [][]insn{number, atMost, lower, greater, not0, load4}, 0},
			{"greater than 0, of a copy", [][]insn{number, atMost, whole, greaterCopy, not0, load4}, 0},
			{"0 allowed", [][]insn{number, atMost, lower, not0, read}, 0},
			{"half and mask", [][]insn{number, atMost32, lower, masked, read}, 0},
		} {
			o, want := programOf("tc", slices.Concat(append([][]insn{keep}, tt.code...)...)), OK
			if tt.refused >= to {
				want = Fails
			}
			if got, l := verdictOn(t, o, k); got != want || got == Fails && l[0].Witness == "" {
				t.Errorf("%s on %s: %s, want %s: %+v", tt.name, to, got, want, l)
			}
		}
	}
}
