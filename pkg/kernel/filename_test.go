// SPDX-License-Identifier: Apache-2.0

package kernel

import "testing"

func TestFileName(t *testing.T) {
	for _, tt := range []struct{ key, name, back string }{
		{"debian/12/x86_64/6.1", "debian/12/x86_64/6.1.btf", ""},
		{"arch/-/x86_64/6.9", "arch/x86_64/6.9.btf", ""},
		{"-/-/-/vmlinux", "vmlinux.btf", ""},
		{"debian/12/-/6.1", "6.1.btf", "-/-/-/6.1"},
	} {
		k, err := ParseKey(tt.key)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.FileName(); got != tt.name {
			t.Errorf("%s: got %s", tt.key, got)
		}
		back := tt.back
		if back == "" {
			back = tt.key
		}
		if got, err := ParseFileName(tt.name); err != nil || got.String() != back {
			t.Errorf("%s: got %s, %v", tt.name, got, err)
		}
	}
	for _, bad := range []string{"", ".btf", "a/b.btf", "a/b/c.btf", "a/b/c/d/e.btf", "../12/x86_64/6.1.btf"} {
		if k, err := ParseFileName(bad); err == nil {
			t.Errorf("%q: got %s", bad, k)
		}
	}
}
