// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"
)

// TestAyaSections has names of sections that aya knows, and others.
func TestAyaSections(t *testing.T) {
	for section, want := range map[string]bool{
		"kprobe": true, "kprobe/vfs_read": true, "?kprobe/vfs_read": false, "kprobe.multi/vfs_*": false, "ksyscall/open": false,
		"tc": false, "classifier": true, "classifier/x/y": true, "xdp": true, "xdp/cpumap": true, "xdp.frags/devmap/x": true, "xdp/x": false,
		"cgroup/connect4": true, "cgroup/connect_unix": false, "cgroup_skb/ingress": true, "cgroup_skb": false,
		"sk_reuseport": true, "sk_reuseport/migrate": true, "sk_reuseport/x": false, "struct_ops/x": false, "iter.s/task": true,
		".text": true, ".text.unlikely": true, "usdt": false, "fmod_ret/x": false,
	} {
		if got := ayaReads(section); got != want {
			t.Errorf("%s: %t", section, got)
		}
	}
}
