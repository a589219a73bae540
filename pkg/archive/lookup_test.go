// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// lookupArchive has kernels with three different BTFs: a, b and c.
func lookupArchive(t *testing.T) *archive.Archive {
	t.Helper()
	real := testminimized.Kernels(t)
	var kernels []archive.Kernel
	for _, k := range []struct {
		key string
		btf int
	}{
		{"centos/8/x86_64/4.18.0-348.el8.x86_64", 0},
		{"debian/12/x86_64/6.1.0-9-amd64", 0},
		{"debian/12/x86_64/6.1.0-10-amd64", 0},
		{"debian/12/x86_64/6.1.0-13-amd64", 1},
		{"debian/13/amd64/6.12.1-amd64", 1},
		{"ubuntu/22.04/x86_64/5.15.0-1-generic", 0},
		{"linuxmint/21/x86_64/5.15.0-1-generic", 0},
		{"ubuntu/22.04/x86_64/5.15.0-2-generic", 0},
		{"linuxmint/21/x86_64/5.15.0-2-generic", 2},
		{"debian/12/arm64/6.1.0-9-arm64", 2},
	} {
		kernels = append(kernels, archive.Kernel{Key: mustKey(t, k.key), BTF: real[k.btf].BTF})
	}
	return mustOpen(t, mustWrite(t, kernels))
}

func TestLookup(t *testing.T) {
	a := lookupArchive(t)
	for _, tt := range []struct {
		want         string
		rule         archive.Rule
		key          string
		reason       string
		below, above string
		same         bool
	}{
		{"debian/12/amd64/6.1.0-9-amd64", archive.ExactMatch, "debian/12/x86_64/6.1.0-9-amd64", "", "", "", false},
		{"debian/13/x86_64/6.12.1-amd64", archive.ExactMatch, "debian/13/amd64/6.12.1-amd64", "", "", "", false},
		{"rhel/8.5/x86_64/4.18.0-348.el8.x86_64", archive.ReleaseMatch, "centos/8/x86_64/4.18.0-348.el8.x86_64", "not under rhel 8.5", "", "", false},
		{"-/-/x86_64/4.18.0-348.el8.x86_64", archive.ReleaseMatch, "centos/8/x86_64/4.18.0-348.el8.x86_64", "not under an unknown distribution", "", "", false},
		{"debian/11/arm64/6.1.0-9-arm64", archive.ReleaseMatch, "debian/12/arm64/6.1.0-9-arm64", "not under debian 11", "", "", false},
		{"pop/22.04/x86_64/5.15.0-1-generic", archive.ReleaseMatch, "linuxmint/21/x86_64/5.15.0-1-generic", "", "", "", false},
		{"pop/22.04/x86_64/5.15.0-2-generic", archive.NoMatch, "", "pop 22.04: linuxmint 21 and ubuntu 22.04 have this release and arch, and their BTFs differ", "", "", false},
		{"debian/12/x86_64/6.1.0-9-arm64", archive.NoMatch, "", "no kernel 6.1.0-9-arm64 for x86_64", "debian/12/x86_64/6.1.0-9-amd64", "debian/12/x86_64/6.1.0-10-amd64", true},
		{"debian/12/x86_64/6.1.0-9.5-amd64", archive.NoMatch, "", "", "debian/12/x86_64/6.1.0-9-amd64", "debian/12/x86_64/6.1.0-10-amd64", true},
		{"debian/12/x86_64/6.1.0-11-amd64", archive.NoMatch, "", "", "debian/12/x86_64/6.1.0-10-amd64", "debian/12/x86_64/6.1.0-13-amd64", false},
		{"debian/12/x86_64/4.9-amd64", archive.NoMatch, "", "", "", "debian/12/x86_64/6.1.0-9-amd64", false},
		{"debian/12/x86_64/7.9-amd64", archive.NoMatch, "", "", "debian/13/amd64/6.12.1-amd64", "", false},
		{"debian/12/s390x/6.1.0-9-amd64", archive.NoMatch, "", "no kernels for s390x", "", "", false},
		{"ubuntu/22.04/arm64/5.15", archive.NoMatch, "", "no kernel 5.15 for arm64, and none of ubuntu for that arch", "", "", false},
		{"arch/-/x86_64/6.9", archive.NoMatch, "", "no kernel 6.9 for x86_64, and none of arch at all", "", "", false},
		{"debian/12/x86_64/-", archive.NoMatch, "", "the release of the kernel is unknown", "", "debian/12/x86_64/6.1.0-9-amd64", false},
		{"debian/12/-/6.1.0-9-amd64", archive.NoMatch, "", "the arch of the kernel is unknown", "", "", false},
	} {
		m := a.Lookup(mustKey(t, tt.want), 0)
		text := func(k kernel.Key) string {
			if k == (kernel.Key{}) {
				return ""
			}
			return k.String()
		}
		if m.Rule != tt.rule || text(m.Key) != tt.key || m.Found() != (tt.rule != archive.NoMatch) {
			t.Errorf("%s: got %s %s, want %s %s", tt.want, m.Rule, m.Key, tt.rule, tt.key)
		}
		if m.Want != mustKey(t, tt.want).Canonical() {
			t.Errorf("%s: looked for %s", tt.want, m.Want)
		}
		if m.Reason == "" || !strings.Contains(m.Reason, tt.reason) {
			t.Errorf("%s: reason %q, want %q", tt.want, m.Reason, tt.reason)
		}
		if text(m.Below) != tt.below || text(m.Above) != tt.above || m.SameLayout != tt.same {
			t.Errorf("%s: neighbours %s and %s, same %v; want %s, %s, %v", tt.want, m.Below, m.Above, m.SameLayout, tt.below, tt.above, tt.same)
		}
		if m.Found() {
			if _, err := a.BTF(m.Key); err != nil {
				t.Errorf("%s: %v", tt.want, err)
			}
		}
	}
}
