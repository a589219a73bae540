// SPDX-License-Identifier: Apache-2.0

// Image writes an OCI image of btfgen from layers that scripts/release.sh has packed, without a container engine:
//
//	image DIR VERSION REVISION CREATED OS/ARCH=LAYER.tar.gz...
//
// DIR gets an OCI image layout, with an index that has an image for each OS/ARCH. The same arguments and layers give the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	_ "crypto/sha256" // for go-digest
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func main() {
	if len(os.Args) < 6 {
		fmt.Fprintln(os.Stderr, "usage: image DIR VERSION REVISION CREATED OS/ARCH=LAYER.tar.gz...")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// write writes the image. created is as in RFC 3339.
func write(dir, version, revision, created string, layers []string) error {
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		return err
	}
	labels := map[string]string{
		v1.AnnotationTitle:         "btfgen",
		v1.AnnotationDescription:   "minimized BTF for BPF CO-RE objects and many kernels",
		v1.AnnotationURL:           "https://github.com/btfgen/btfgen",
		v1.AnnotationSource:        "https://github.com/btfgen/btfgen",
		v1.AnnotationDocumentation: "https://github.com/btfgen/btfgen/blob/main/docs/howto-packaging.md",
		v1.AnnotationLicenses:      "Apache-2.0",
		v1.AnnotationVersion:       strings.TrimPrefix(version, "v"),
		v1.AnnotationRevision:      revision,
		v1.AnnotationCreated:       created,
	}
	l := layout{dir}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Annotations: labels}
	for _, arg := range layers {
		on, file, ok := strings.Cut(arg, "=")
		platform, err := platformOf(on)
		if !ok || err != nil {
			return fmt.Errorf("%s: want OS/ARCH=LAYER.tar.gz", arg)
		}
		packed, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		diff, err := digest.FromReader(unpacked)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		layer, err := l.blob(v1.MediaTypeImageLayerGzip, packed)
		if err != nil {
			return err
		}
		config, err := l.document(v1.MediaTypeImageConfig, v1.Image{
			Created: &at, Platform: platform,
			Config: v1.ImageConfig{
				User: "65532:65532", WorkingDir: "/work", Env: []string{"PATH=/usr/bin"}, Entrypoint: []string{"btfgen"}, Labels: labels,
			},
			RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{diff}},
			History: []v1.History{{Created: &at, CreatedBy: "scripts/release.sh"}},
		})
		if err != nil {
			return err
		}
		manifest, err := l.document(v1.MediaTypeImageManifest, v1.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
			Config: config, Layers: []v1.Descriptor{layer}, Annotations: labels,
		})
		if err != nil {
			return err
		}
		manifest.Platform = &platform
		index.Manifests = append(index.Manifests, manifest)
	}
	image, err := l.document(v1.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	image.Annotations = map[string]string{v1.AnnotationRefName: strings.TrimPrefix(version, "v")}
	top := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{image}}
	for name, v := range map[string]any{v1.ImageIndexFile: top, v1.ImageLayoutFile: v1.ImageLayout{Version: v1.ImageLayoutVersion}} {
		data, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// platformOf reads a target of scripts/release.sh, such as linux/armv7.
func platformOf(target string) (v1.Platform, error) {
	system, arch, ok := strings.Cut(target, "/")
	if !ok || system == "" || arch == "" {
		return v1.Platform{}, fmt.Errorf("%q: want OS/ARCH", target)
	}
	p := v1.Platform{OS: system, Architecture: arch}
	if arch == "armv7" {
		p.Architecture, p.Variant = "arm", "v7"
	}
	return p, nil
}

// layout is a folder with an OCI image layout.
type layout struct{ dir string }

// blob writes a blob and returns its descriptor.
func (l layout) blob(mediaType string, data []byte) (v1.Descriptor, error) {
	d := digest.FromBytes(data)
	path := filepath.Join(l.dir, v1.ImageBlobsDir, d.Algorithm().String(), d.Encoded())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(data))}, os.WriteFile(path, data, 0o644)
}

// document writes a blob of JSON.
func (l layout) document(mediaType string, v any) (v1.Descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return l.blob(mediaType, data)
}
