// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
)

// TestImage writes an image for two machines and copies it with oras, which follows and checks all descriptors.
func TestImage(t *testing.T) {
	layer := filepath.Join(t.TempDir(), "layer.tar.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "usr/bin/btfgen", Mode: 0o755, Size: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{w, z} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(layer, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(dir, "v1.2.3", "0123", "2026-01-02T03:04:05Z", []string{"linux/amd64=" + layer, "linux/armv7=" + layer}); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	from, err := oci.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	to := memory.New()
	_, err = oras.Copy(ctx, from, "1.2.3", to, "copy", oras.DefaultCopyOptions)
	if err != nil {
		t.Fatal(err)
	}
	for arch, variant := range map[string]string{"amd64": "", "arm": "v7"} {
		options := oras.DefaultFetchBytesOptions
		options.TargetPlatform = &v1.Platform{OS: "linux", Architecture: arch, Variant: variant}
		_, data, err := oras.FetchBytes(ctx, to, "copy", options)
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		var m v1.Manifest
		var image v1.Image
		if err := json.Unmarshal(data, &m); err != nil || len(m.Layers) != 1 {
			t.Fatalf("%s: %v, %s", arch, err, data)
		}
		r, err := to.Fetch(ctx, m.Config)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewDecoder(r).Decode(&image); err != nil {
			t.Fatal(err)
		}
		if image.Architecture != arch || image.Variant != variant || image.Config.Entrypoint[0] != "btfgen" || len(image.RootFS.DiffIDs) != 1 ||
			image.Config.Labels[v1.AnnotationVersion] != "1.2.3" || image.Config.Labels[v1.AnnotationRevision] != "0123" {
			t.Errorf("%s: %+v", arch, image)
		}
	}
	for _, bad := range [][]string{{"linux=" + layer}, {"linux/amd64"}, {"linux/amd64=" + dir + "/oci-layout"}} {
		if err := write(t.TempDir(), "v1.2.3", "", "2026-01-02T03:04:05Z", bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
