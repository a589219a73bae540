// SPDX-License-Identifier: Apache-2.0

package rule

import "testing"

// TestKernelVersion judges programs of objects with a number in a section "version". Kernels before 5.0 want their own number of a kprobe.
func TestKernelVersion(t *testing.T) {
	for _, tt := range []struct {
		section string
		version uint32
		loader  Loader
		kernel  Release
		want    Status
	}{
		{"kprobe/x", anyVersion, Libbpf, Linux(4, 19), MayFail},
		{"uprobe", anyVersion, Libbpf, Linux(4, 19), MayFail},
		{"kprobe/x", anyVersion, EbpfGo, Linux(4, 19), OK},
		{"kprobe/x", uint32(Linux(4, 18)), EbpfGo, Linux(4, 19), MayFail},
		{"kprobe/x", uint32(Linux(4, 19)), Libbpf, Linux(4, 19), OK},
		{"kprobe/x", 0, Libbpf, Linux(4, 19), OK},
		{"kprobe/x", anyVersion, Libbpf, Linux(5, 0), OK},
		{"socket", anyVersion, Libbpf, Linux(4, 19), OK},
	} {
		o := programOf(tt.section, ending())
		o.Version = tt.version
		k := released(uint64(tt.kernel), "x86_64")
		e := Evaluation{Scene: sceneOn(o, k, tt.loader), pr: &o.Programs[0]}
		e.interfaces()
		got := OK
		for _, f := range e.Findings {
			if f.Code == FeatureMissing {
				got = max(got, f.Status)
			}
		}
		if got != tt.want {
			t.Errorf("%s, %#x, %s on %s: %s, want %s: %v", tt.section, tt.version, tt.loader, tt.kernel, got, tt.want, e.Findings)
		}
	}
}
