// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestDisabledHooks holds verdicts on hooks that kernels keep programs from.
func TestDisabledHooks(t *testing.T) {
	rep := runOn(t, "lsmhooks.bpfel")
	for k := range rep.Kernels {
		name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
		for program, since := range map[string]string{
			"open": "", "getprocattr": "6.12", "listsecurity": "6.12", "alloc_security": "7.0", "decode_session": "7.3",
		} {
			p, _ := find(t, rep, program, name)
			if p.Status[k] == Other {
				continue
			}
			want := MayFail
			if since == "" {
				want = OK
			} else if kernel.CompareVersions(release, since) >= 0 {
				want = Fails
			}
			// Not every kernel has each hook.
			found := findingsOn(p, k, TopicTarget)
			missing := slices.ContainsFunc(found, func(f Finding) bool {
				return strings.HasPrefix(f.Reason, "not in") || strings.Contains(f.Reason, "no functions")
			})
			if got := worst(found); got != want && !missing {
				t.Errorf("%s on %s: %s, want %s: %v", program, name, got, want, found)
			}
		}
	}
}
