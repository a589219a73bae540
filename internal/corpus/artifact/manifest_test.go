// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// corpora are artifacts that Encode and Parse agree on.
func corpora() []*Artifact {
	sum := Digest(nil)
	return []*Artifact{
		{Archive: true, Layers: []Layer{{Digest: sum, Size: 7, Title: "x.btfa", Kernels: 3}}},
		{Layers: []Layer{
			{Digest: sum, Size: 1 << 32, Title: "debian/12/x86_64.btfc", Series: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64"}, Kernels: 5, Newest: "6.1.0-47-amd64", Contents: sum[7:]},
			{Digest: sum, Size: 0, Title: "arch/-/arm64.btfc", Series: kernel.Key{ID: "arch", Arch: "arm64"}, Contents: sum[7:]},
			{Digest: sum, Size: 0, Title: "-/-/arm64.btfc", Series: kernel.Key{Arch: "arm64"}, Contents: sum[7:]},
		}},
	}
}

// TestEncode reads manifests back.
func TestEncode(t *testing.T) {
	for _, a := range corpora() {
		text, err := a.Encode("btfgen v1.2.3", "2026-01-01T00:00:00Z")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(a, got); d != "" {
			t.Error(d)
		}
		blobs, err := Blobs(text)
		if err != nil || len(blobs) != 2 || blobs[0].Digest != Digest(Empty) {
			t.Errorf("%+v, %v", blobs, err)
		}
	}
}

// TestLimits wants manifests with too many layers or bytes to be refused.
func TestLimits(t *testing.T) {
	a := corpora()[1]
	for len(a.Layers) <= limits.ArtifactLayers {
		a.Layers = append(a.Layers, a.Layers[0])
	}
	text, err := a.Encode("", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "layers") {
		t.Error(err)
	}
	if _, err := Parse(make([]byte, limits.ArtifactManifest+1)); err == nil || !strings.Contains(err.Error(), "bytes of a manifest") {
		t.Error(err)
	}
}

// TestReference checks which references are refused before btfgen-registry runs, and what others refer to.
func TestReference(t *testing.T) {
	pinned := "ghcr.io/a/b@" + Digest(nil)
	for _, test := range []struct {
		text       string
		push, pull bool
	}{
		{"ghcr.io/you/kernels:latest", true, true},
		{"localhost:5000/kernels:v1", true, true},
		{"localhost/kernels:v1", true, true},
		{"[::1]:5000/kernels:v1", true, true},
		{pinned, false, true},
		{"ghcr.io/a/b:tag@" + Digest(nil), false, true},
		{"ghcr.io/a/b@sha256:12", false, false},
		{"ghcr.io/a/b", false, false},
		{"ghcr.io/a/b:", false, false},
		{"ghcr.io:443/a/b", false, false},
		{"debian/12:x", false, false},
		{"debian/12", false, false},
		{"kernels:v1", false, false},
		{"/a/b:c", false, false},
		{"-x.io/a:b", false, false},
		{"https://ghcr.io/a/b:c", false, false},
		{"", false, false},
	} {
		if err := CheckReference(test.text, false); (err == nil) != test.push {
			t.Errorf("push %q: %v", test.text, err)
		}
		if err := CheckReference(test.text, true); (err == nil) != test.pull {
			t.Errorf("pull %q: %v", test.text, err)
		}
	}
	for ref, want := range map[string]string{
		"localhost:5000/a/b:v1": "localhost:5000/a/b", pinned: "ghcr.io/a/b", "ghcr.io/a/b:tag@" + Digest(nil): "ghcr.io/a/b",
	} {
		if got := Repository(ref); got != want || Pin(ref, "sha256:1") != want+"@sha256:1" {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
}

// FuzzParse wants an artifact or an error, and layers that are safe to use.
func FuzzParse(f *testing.F) {
	for _, a := range corpora() {
		text, err := a.Encode("btfgen v1.2.3", "2026-01-01T00:00:00Z")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse(text)
		if (a == nil) == (err == nil) {
			t.Fatalf("%v, error %v", a, err)
		}
		if err != nil {
			return
		}
		seen := make(map[kernel.Key]bool)
		for _, l := range a.Layers {
			if strings.ContainsAny(File(l.Digest), "/\\:") || len(File(l.Digest)) != 71 || l.Size < 0 || l.Kernels < 0 {
				t.Errorf("%+v", l)
			}
			if !a.Archive && (seen[l.Series] || l.Series.Validate() != nil || SeriesOf(l.Series) != l.Series) {
				t.Errorf("series %+v", l.Series)
			}
			seen[l.Series] = true
		}
		again, err := a.Encode("", "")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Parse(again); err != nil || !cmp.Equal(a, b) {
			t.Errorf("encoded again: %v, %s", err, cmp.Diff(a, b))
		}
		if !json.Valid(again) {
			t.Error("not JSON")
		}
	})
}
