// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Media types of layers and types of artifacts.
const (
	CorpusLayer  = "application/vnd.btfgen.btfc.v1"
	CorpusType   = "application/vnd.btfgen.corpus.v1"
	ArchiveLayer = "application/vnd.btfgen.btfa.v1"
	ArchiveType  = "application/vnd.btfgen.archive.v1"

	manifestType = "application/vnd.oci.image.manifest.v1+json"
	emptyType    = "application/vnd.oci.empty.v1+json"
)

// Annotations.
const (
	seriesKey   = "io.github.btfgen.series"
	kernelsKey  = "io.github.btfgen.kernels"
	newestKey   = "io.github.btfgen.newest"
	contentsKey = "io.github.btfgen.contents"
	toolKey     = "io.github.btfgen.tool"
	titleKey    = "org.opencontainers.image.title"
	createdKey  = "org.opencontainers.image.created"
)

// descriptor refers to a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest is an OCI image manifest.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// Layer is a file of an artifact.
type Layer struct {
	Digest string // sha256:… of the file
	Size   int64  // bytes
	Title  string // a relative path for other tools, which btfgen does not use

	Series   kernel.Key // series of a .btfc, a key without release
	Kernels  int
	Newest   string // release of the newest kernel, or ""
	Contents string // hexadecimal sum of the kernels of a .btfc, or ""
}

// Artifact is a corpus or an archive.
type Artifact struct {
	Archive bool // one layer is a .btfa; else each is a .btfc
	Layers  []Layer
}

// SeriesName returns the name of a series: ID/VERSION_ID/ARCH.
func SeriesName(k kernel.Key) string {
	return strings.TrimSuffix(kernel.Key{ID: k.ID, VersionID: k.VersionID, Arch: k.Arch}.String(), "/-")
}

// SeriesOf returns the series of a kernel, with the usual spelling and without a release.
func SeriesOf(k kernel.Key) kernel.Key {
	k = k.Canonical()
	k.Release = ""
	return k
}

// Digest returns the digest of a blob.
func Digest(blob []byte) string {
	sum := sha256.Sum256(blob)
	return DigestSum(sum[:])
}

// DigestSum returns the digest of a blob with a SHA-256.
func DigestSum(sum []byte) string { return digestPrefix + hex.EncodeToString(sum) }

// DigestOf is Digest of what a reader reads.
func DigestOf(r io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, r)
	return DigestSum(h.Sum(nil)), err
}

const digestPrefix = "sha256:"

// Empty is the configuration of every artifact.
var Empty = []byte("{}")

// File returns the name of the file of a blob in a folder.
func File(digest string) string { return strings.Replace(digest, ":", "-", 1) }

// checkDigest returns an error if a digest is not a SHA-256. A valid one is a safe name for a file.
func checkDigest(digest string) error {
	sum, ok := strings.CutPrefix(digest, digestPrefix)
	if !ok || len(sum) != 2*sha256.Size || strings.Trim(sum, "0123456789abcdef") != "" {
		return fmt.Errorf("digest %.100q: want sha256: and 64 hexadecimal digits", digest)
	}
	return nil
}

// Encode returns the manifest of an artifact. created is a time as RFC 3339 has it.
func (a *Artifact) Encode(tool, created string) ([]byte, error) {
	m := manifest{
		SchemaVersion: 2, MediaType: manifestType, ArtifactType: CorpusType,
		Config:      descriptor{MediaType: emptyType, Digest: Digest(Empty), Size: int64(len(Empty))},
		Annotations: map[string]string{createdKey: created, toolKey: tool},
	}
	media := CorpusLayer
	if a.Archive {
		m.ArtifactType, media = ArchiveType, ArchiveLayer
	}
	for _, l := range a.Layers {
		d := descriptor{media, l.Digest, l.Size, map[string]string{titleKey: l.Title, kernelsKey: strconv.Itoa(l.Kernels)}}
		if !a.Archive {
			d.Annotations[seriesKey], d.Annotations[contentsKey] = SeriesName(l.Series), l.Contents
		}
		if l.Newest != "" {
			d.Annotations[newestKey] = l.Newest
		}
		m.Layers = append(m.Layers, d)
	}
	return json.Marshal(m)
}

// Blob is a blob that a manifest refers to.
type Blob struct {
	MediaType string
	Digest    string
	Size      int64
}

// Blobs returns the configuration and the layers of a manifest, each digest once.
func Blobs(text []byte) (all []Blob, err error) {
	m, err := decode(text)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, d := range append([]descriptor{m.Config}, m.Layers...) {
		if !seen[d.Digest] {
			all = append(all, Blob{d.MediaType, d.Digest, d.Size})
		}
		seen[d.Digest] = true
	}
	return all, nil
}

// decode reads a manifest and checks its descriptors.
func decode(text []byte) (*manifest, error) {
	if len(text) > limits.ArtifactManifest {
		return nil, &limits.Exceeded{Max: limits.ArtifactManifest, What: "bytes of a manifest"}
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	switch {
	case m.SchemaVersion != 2 || m.MediaType != "" && m.MediaType != manifestType:
		return nil, fmt.Errorf("manifest: media type %.100q, want %s", m.MediaType, manifestType)
	case len(m.Layers) > limits.ArtifactLayers:
		return nil, &limits.Exceeded{Max: limits.ArtifactLayers, What: "layers"}
	}
	for _, d := range append([]descriptor{m.Config}, m.Layers...) {
		if err := checkDigest(d.Digest); err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		if d.Size < 0 || d.Size > limits.ArtifactLayer {
			return nil, fmt.Errorf("manifest: layer of %d bytes, want 0 to %d", d.Size, int64(limits.ArtifactLayer))
		}
	}
	return &m, nil
}

// Parse checks a manifest. It ignores layers with other media types, unless all have one.
func Parse(text []byte) (*Artifact, error) {
	m, err := decode(text)
	if err != nil {
		return nil, err
	}
	a, seen := new(Artifact), make(map[kernel.Key]bool)
	other := ""
	for _, d := range m.Layers {
		l := Layer{
			Digest: d.Digest, Size: d.Size,
			Title: d.Annotations[titleKey], Newest: d.Annotations[newestKey], Contents: d.Annotations[contentsKey],
		}
		switch d.MediaType {
		case ArchiveLayer:
			a.Archive = true
		case CorpusLayer:
			if l.Series, err = parseSeries(d.Annotations[seriesKey]); err != nil {
				return nil, fmt.Errorf("manifest: layer %s: %w", d.Digest, err)
			}
			if seen[l.Series] {
				return nil, fmt.Errorf("manifest: two layers of %s", SeriesName(l.Series))
			}
			seen[l.Series] = true
		default:
			other = d.MediaType
			continue
		}
		if n := d.Annotations[kernelsKey]; n != "" {
			if l.Kernels, err = strconv.Atoi(n); err != nil || l.Kernels < 0 || l.Kernels > limits.CorpusKernels {
				return nil, fmt.Errorf("manifest: layer %s: %.100q kernels", d.Digest, n)
			}
		}
		if l.Newest != "" && kernel.CheckName(l.Newest) != nil {
			return nil, fmt.Errorf("manifest: layer %s: %.100q is not a release", d.Digest, l.Newest)
		}
		a.Layers = append(a.Layers, l)
	}
	switch {
	case len(a.Layers) == 0 && other != "":
		return nil, fmt.Errorf("is neither a corpus nor an archive: its layers have the media type %.100q, want %s or %s", other, CorpusLayer, ArchiveLayer)
	case len(a.Layers) == 0:
		return nil, errors.New("is neither a corpus nor an archive: it has no layers")
	case a.Archive && len(a.Layers) > 1:
		return nil, fmt.Errorf("manifest: an archive and %d other layers", len(a.Layers)-1)
	}
	return a, nil
}

// parseSeries is the inverse of SeriesName, for the usual spelling.
func parseSeries(name string) (k kernel.Key, err error) {
	if name == "" {
		return k, fmt.Errorf("has no annotation %s", seriesKey)
	}
	k, err = kernel.ParseKey(name + "/-")
	if err == nil && (k.Arch == "" || SeriesOf(k) != k) {
		err = errors.New("not the usual spelling of ID/VERSION_ID/ARCH")
	}
	if err != nil {
		return k, fmt.Errorf("series %.100q: %w", name, err)
	}
	return k, nil
}

// CheckReference returns an error if a text cannot be REGISTRY/NAME:TAG, or REGISTRY/NAME@sha256:… if pinned is set. btfgen-registry checks
// the rest.
func CheckReference(text string, pinned bool) error {
	want := "REGISTRY/NAME:TAG"
	if pinned {
		want += " or REGISTRY/NAME@sha256:…"
	}
	registry, name, ok := strings.Cut(text, "/")
	name, digest, at := strings.Cut(name, "@")
	name, tag, tagged := strings.Cut(name, ":")
	switch {
	case strings.Contains(text, "://"):
		return fmt.Errorf("%q: want %s without a scheme", text, want)
	case !ok || registry == "" || strings.HasPrefix(name, "/") || name == "" || strings.HasPrefix(text, "-"):
		return fmt.Errorf("%q: want %s", text, want)
	case at && !pinned, at && checkDigest(digest) != nil, !at && (!tagged || tag == ""):
		return fmt.Errorf("%q: want %s", text, want)
	case name != strings.ToLower(name):
		return fmt.Errorf("%q: want NAME in small letters", text)
	case !strings.ContainsAny(registry, ".:") && registry != "localhost":
		return fmt.Errorf("%q: %s is not the address of a registry: want %s, such as ghcr.io/%s", text, registry, want, text)
	}
	return nil
}

// Pin returns the reference of the manifest with a digest in the repository of a reference.
func Pin(ref, digest string) string { return Repository(ref) + "@" + digest }

// Repository returns the REGISTRY/NAME of a reference.
func Repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	registry, name, _ := strings.Cut(ref, "/")
	name, _, _ = strings.Cut(name, ":")
	return registry + "/" + name
}
