// SPDX-License-Identifier: Apache-2.0

package check

import (
	"math"
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestReturns holds verdicts on what programs return.
func TestReturns(t *testing.T) {
	ok, fails := expected{}, expected{status: Fails}
	expectVerdicts(t, "returns", []Family{FamilyReturn}, map[string]expected{
		"entry_0": ok, "entry_1": fails, "exit_1": fails, "exit_some": fails,
		"entry_at_times": {status: MayFail}, "entry_never": ok,
		"raw_1": ok, "tp_1": ok, "kprobe_2": ok, "xdp_9": ok,
		"iter_1": ok, "iter_2": fails,
		"egress_3": ok, "egress_4": fails, "ingress_2": fails,
		"connect_1": ok, "connect_minus_1": fails, "recvmsg_0": fails, "bind_4": fails,
		"lookup_2": fails,
	})
}

// TestHookReturns does so for programs of LSM, which may return errors alone since Linux 6.12.
func TestHookReturns(t *testing.T) {
	rep := runOn(t, "lsmhooks.bpfel")
	for k := range rep.Kernels {
		name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
		for program, errs := range map[string]bool{"open": true, "returns_1": false, "returns_too_little": false, "returns_nothing": true} {
			p, _ := find(t, rep, program, name)
			if p.Status[k] == Other {
				continue
			}
			want := OK
			if !errs && kernel.CompareVersions(release, "6.12") >= 0 {
				want = Fails
			}
			if got := worst(findingsOn(p, k, FamilyReturn)); got != want {
				t.Errorf("%s on %s: %s, want %s", program, name, got, want)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		may      bounds
		lo, hi   uint64
		excludes bool
		text     string
	}{
		{bounds{0, 0}, 0, 0, false, "0"},
		{bounds{0, 0}, 1, 1, true, "1"},
		{bounds{0, 0}, 3, 8, true, "3 to 8"},
		{bounds{0, 1}, 1, 2, false, "1 or 2"},
		{bounds{0, 1}, 1 << 32, 1 << 32, false, "4294967296"}, // half of them 0
		{bounds{0, 1}, 0, math.MaxUint64, false, "0 to -1"},
		{bounds{0, 1}, math.MaxUint32, math.MaxUint32, true, "-1"},
		{bounds{-4095, 0}, math.MaxUint32, math.MaxUint32, false, "-1"},
		{bounds{-4095, 0}, math.MaxUint64, math.MaxUint64, false, "-1"},
		{bounds{-4095, 0}, math.MaxUint64 - 4095, math.MaxUint64 - 4095, true, "-4096"},
		{bounds{-4095, 0}, math.MaxUint32 - 4095, math.MaxUint32 - 4095, true, "-4096"},
		{bounds{0, 1}, math.MaxInt32 - 1, math.MaxInt32 + 2, false, "2147483646 to 2147483649"}, // whose halves change sign
	} {
		if got := c.may.excludes(c.lo, c.hi); got != c.excludes {
			t.Errorf("%v excludes %#x to %#x: %t", c.may, c.lo, c.hi, got)
		}
		if got := numbers(c.lo, c.hi).String(); got != c.text {
			t.Errorf("%#x to %#x: %s, want %s", c.lo, c.hi, got, c.text)
		}
	}
}
