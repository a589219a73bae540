// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
)

// TestGlobs compares patterns with names as libbpf does.
func TestGlobs(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"tcp_*", "tcp_v4_connect", true}, {"tcp_*", "tcp_", true}, {"tcp_*", "udp_v4", false}, {"*", "", true}, {"", "", true}, {"", "a", false},
		{"?", "a", true}, {"?", "", false}, {"?", "ab", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"*?", "", false}, {"?*", "a", true},
		{"*_read", "vfs_read", true}, {"*_read", "vfs_readv", false}, {"*read*", "vfs_readv", true}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false},
		{"*ab", "aab", true}, {"*aab", "aaab", true}, {"**", "x", true}, {"a**", "a", true}, {"a**b", "ab", true}, {"*a?a", "aba", true}, {"*a?a", "abaa", false},
		{"*a?a", "ababa", true}, {"a[bc]", "ab", false}, {"a[bc]", "a[bc]", true}, {`a\*`, "a*", false}, {`\*`, `\x`, true}, {"do/*", "do/x/y", true},
		{"*a*a*a*b", strings.Repeat("a", 30), false}, {"*a*a*a*b", strings.Repeat("a", 30) + "b", true},
	} {
		g := newGlob(tt.pattern)
		if got := g.matches([]byte(tt.name), limits.NewMeter(t.Context(), 1<<20, "bytes")); got != tt.want {
			t.Errorf("%s matches %s: %t", tt.pattern, tt.name, got)
		}
	}
	for target, want := range map[string]string{"tcp_*": "tcp_*", "a[bc]*": "a", "a.b?c0-9": "a.b?c0", "[": "[", "": "", "é*": "é*"} {
		if got := multiPattern(target); got != want {
			t.Errorf("%s: pattern %s, want %s", target, got, want)
		}
	}
}

// TestGlobSteps wants the steps of matching to be bounded by the bytes of the name times those between two *, however long the pattern is.
func TestGlobSteps(t *testing.T) {
	name := bytes.Repeat([]byte("a"), 64)
	for pattern, most := range map[string]int64{
		strings.Repeat("*a", 2000):           2,           // no name is so short
		strings.Repeat("*a", 60) + "*b":      3 * 64,      // each place is tried once
		strings.Repeat("*", 4000) + "b":      4000 + 3*64, // a row of * is one
		"*" + strings.Repeat("a", 30) + "b":  64 * 32,     // each place is compared with everything behind the *
		"a" + strings.Repeat("?", 20) + "b*": 2 * 64,
	} {
		m := limits.NewMeter(t.Context(), most, "bytes")
		g := newGlob(pattern)
		if g.matches(name, m) || m.Err() != nil {
			t.Errorf("%.20s… of %d bytes: matches, or more than %d steps: %v", pattern, len(pattern), most, m.Err())
		}
	}
}

// TestGlobLimits has a kernel whose functions take too long to match.
func TestGlobLimits(t *testing.T) {
	k := &Inventory{want: &Wanted{patterns: []glob{newGlob("*a*b"), newGlob("c*")}}, matches: make([]int, 2)}
	k.globs = limits.NewMeter(t.Context(), 1<<10, "bytes")
	for range 1 << 10 {
		k.count(k.matches, []byte("aaaaab"))
	}
	if k.globs.Err() == nil || k.matches[0] == 0 || k.matches[0] > 1<<10/6 {
		t.Errorf("%d matches, error %v", k.matches[0], k.globs.Err())
	}
}
