// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"math"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestOldReturns checks the verdicts on values that programs of cgroups could not return at first.
func TestOldReturns(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 12), Linux(5, 10), Linux(5, 3), Linux(5, 2), Linux(4, 19)} {
		Age(k, to)
		for _, tt := range []struct {
			section string
			value   int64
			since   Release // 0 for what no kernel takes, or all
		}{
			{"cgroup_skb/egress", 1, 0}, {"cgroup_skb/egress", 3, Linux(5, 3)}, {"cgroup_skb/egress", 4, 0}, {"cgroup_skb/egress", -1, 0},
			{"cgroup_skb/ingress", 3, 0}, {"cgroup/bind4", 2, Linux(5, 12)}, {"cgroup/bind6", 3, Linux(5, 12)}, {"cgroup/bind6", 4, 0},
			{"cgroup/connect4", 2, 0}, {"xdp", 9, 0},
		} {
			want := OK
			if to < tt.since {
				want = MayFail // without a witness
				if tt.section == "cgroup_skb/egress" {
					want = Fails
				}
			}
			o := programOf(tt.section, []insn{{Op: 0xb7, Imm: tt.value}, {Op: 0x95}})
			if got, l := verdictOn(t, o, k); got != want {
				t.Errorf("%s that returns %d on %s: %s, want %s: %v", tt.section, tt.value, to, got, want, l)
			}
		}
	}
}

func TestExtents(t *testing.T) {
	for _, c := range []struct {
		may      extent
		lo, hi   uint64
		excludes bool
		text     string
	}{
		{extent{0, 0}, 0, 0, false, "0"},
		{extent{0, 0}, 1, 1, true, "1"},
		{extent{0, 0}, 3, 8, true, "3 to 8"},
		{extent{0, 1}, 1, 2, false, "1 or 2"},
		{extent{0, 1}, 1 << 32, 1 << 32, false, "4294967296"}, // half of them 0
		{extent{0, 1}, math.MaxUint32, math.MaxUint32, true, "-1"},
		{extent{-4095, 0}, math.MaxUint32, math.MaxUint32, false, "-1"},
		{extent{-4095, 0}, math.MaxUint64, math.MaxUint64, false, "-1"},
		{extent{-4095, 0}, math.MaxUint64 - 4095, math.MaxUint64 - 4095, true, "-4096"},
		{extent{-4095, 0}, math.MaxUint32 - 4095, math.MaxUint32 - 4095, true, "-4096"},
		{extent{0, 1}, math.MaxInt32 - 1, math.MaxInt32 + 2, false, "2147483646 to 2147483649"}, // whose halves change sign
	} {
		if got := c.may.excludes(c.lo, c.hi); got != c.excludes {
			t.Errorf("%v excludes %#x to %#x: %t", c.may, c.lo, c.hi, got)
		}
		if got := numbers(c.lo, c.hi).String(); got != c.text {
			t.Errorf("%#x to %#x: %s, want %s", c.lo, c.hi, got, c.text)
		}
	}
}
