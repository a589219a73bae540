// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/output/jsonfile"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Manifest is what pipelines want to know of a run, but tracers need not ship.
// With the archive of the same run it lets a later one take over what did not
// change. Fields are only ever added.
type Manifest struct {
	Tool        string           `json:"tool"`
	Padding     minimize.Padding `json:"padding,omitempty"`
	Relocations map[string]Sum   `json:"relocations"`    // by machine of the kernels, of the objects used there
	Keep        []string         `json:"keep,omitempty"` // patterns
	Objects     []ManifestObject `json:"objects"`
	Kernels     []ManifestKernel `json:"kernels"`
	Issues      []ManifestIssue  `json:"issues"`
	NoObject    []ManifestSkip   `json:"no_object"` // kernels that no object is for
}

// ManifestSkip is a kernel that is not in the archive, because no object is for
// its machine.
type ManifestSkip struct {
	Kernel  string `json:"kernel"`
	Machine string `json:"machine,omitempty"`
	File    string `json:"file,omitempty"`
	Sources []Sum  `json:"source_sha256"`
}

// ManifestObject is an object of the run.
type ManifestObject struct {
	Name   string `json:"name"`
	SHA256 Sum    `json:"sha256"`
}

// ManifestKernel is a kernel of the run. Counts are of relocations, each once
// per object.
type ManifestKernel struct {
	Kernel     string   `json:"kernel"`
	Machine    string   `json:"machine,omitempty"` // as the BTF shows, where the key does not tell
	File       string   `json:"file,omitempty"`    // name of its file, where the path does not tell the key
	Sources    []Sum    `json:"source_sha256"`     // of the kernel's file, then of those with its modules
	SourceSize int64    `json:"source_size"`       // bytes on disk
	RawSize    int64    `json:"raw_size"`          // of the kernel's BTF and its modules', bytes
	SHA256     Sum      `json:"sha256"`            // of the minimized BTF
	Size       int      `json:"size"`              // bytes
	Resolved   int      `json:"resolved"`
	Unresolved int      `json:"unresolved"`
	Ambiguous  int      `json:"ambiguous"`
	Errors     int      `json:"errors"`
	Issues     []uint32 `json:"issues"`              // which of the manifest's
	Unmatched  []string `json:"unmatched,omitempty"` // patterns of Keep that name nothing in it
}

// ManifestIssue is a relocation that some kernels do not resolve.
type ManifestIssue struct {
	Object string      `json:"object"`
	Relo   string      `json:"relocation"`
	Result relo.Result `json:"result"`
}

// Sum is a SHA-256, in JSON as hexadecimal text.
type Sum [sha256.Size]byte

// MarshalText and UnmarshalText are for encoding/json.
func (s Sum) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return errors.New("not a SHA-256")
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// NewManifest describes a run. objects has the name and hash of each object.
func NewManifest(tool string, cfg *Config, objects []ManifestObject, rep *Report) *Manifest {
	m := &Manifest{Tool: tool, Padding: cfg.Options.Padding, Keep: cfg.Options.Keep.Patterns(), Objects: objects, Kernels: []ManifestKernel{}, Issues: []ManifestIssue{}, NoObject: []ManifestSkip{}}
	hashes := make(hashes)
	at := make(map[issue]int)
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		e := ManifestKernel{
			Kernel: k.OutputKey().String(), Machine: k.machine(), File: k.file(), Sources: []Sum{}, SourceSize: k.SourceSize, RawSize: k.RawSize,
			SHA256: sha256.Sum256(k.BTF), Size: len(k.BTF), Resolved: k.Resolved, Unresolved: k.Count(relo.Poisoned),
			Ambiguous: k.Count(relo.Ambiguous), Errors: k.Count(relo.Error), Issues: []uint32{}, Unmatched: k.unmatched,
		}
		e.Sources = append(e.Sources, toSums(k.Sources)...)
		for _, is := range k.issues {
			n, ok := at[is]
			if !ok {
				n = len(m.Issues)
				at[is] = n
				m.Issues = append(m.Issues, ManifestIssue{is.object, is.relo, is.result})
			}
			e.Issues = append(e.Issues, uint32(n))
		}
		hashes.of(k.Machine, cfg.Objects, cfg.Options.Keep)
		m.Kernels = append(m.Kernels, e)
	}
	for _, k := range rep.noObject {
		hashes.of(k.Machine, cfg.Objects, cfg.Options.Keep)
		m.NoObject = append(m.NoObject, ManifestSkip{k.OutputKey().String(), k.machine(), k.file(), toSums(k.Sources)})
	}
	m.Relocations = hashes
	slices.SortFunc(m.NoObject, func(a, b ManifestSkip) int { return strings.Compare(a.Kernel, b.Kernel) })
	return m
}

// hashes are the hashes of the relocations of the objects that are used on machines, by their names; "" stands for a
// machine that nothing tells.
type hashes map[string]Sum

// of returns the hash for a machine.
func (h hashes) of(machine string, objects []*core.Object, keep *core.Keep) Sum {
	sum, ok := h[machine]
	if !ok {
		sum = keep.Hash(core.OnMachine(machine, objects...)...)
		h[machine] = sum
	}
	return sum
}

// Relocations returns the hashes of the relocations of objects, and of what is kept, for each arch that there are kernels of.
func (r *Report) Relocations(objects []*core.Object, keep *core.Keep) (all []archive.Relocations) {
	hashes := make(hashes)
	seen := make(map[string]bool)
	for i := range r.Kernels {
		k := &r.Kernels[i]
		if arch := kernel.CanonicalArch(k.OutputKey().Arch); !seen[arch] {
			seen[arch] = true
			sum := hashes.of(k.Machine, objects, keep)
			all = append(all, archive.Relocations{Arch: arch, Sum: sum[:]})
		}
	}
	slices.SortFunc(all, func(a, b archive.Relocations) int { return strings.Compare(a.Arch, b.Arch) })
	return all
}

// machine is the kernel's machine where the key does not tell it, else empty.
func (k *Kernel) machine() string {
	if k.OutputKey().Arch != "" {
		return ""
	}
	return k.Machine
}

func toSums(in [][sha256.Size]byte) []Sum {
	out := make([]Sum, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}

// Encode returns the manifest as JSON.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := escape.JSON(&b)
	enc.SetIndent("", " ")
	err := enc.Encode(m)
	return b.Bytes(), err
}

// readManifest reads what of a manifest ReadOld uses.
func readManifest(ctx context.Context, path string) (*Manifest, error) {
	m := new(Manifest)
	err := jsonfile.Read(ctx, path, limits.ManifestBytes, "a manifest", func(d *jsonfile.Decoder) error {
		return cmp.Or(d.Object(func(name string) error { return m.field(d, name) }), d.End())
	})
	return m, err
}

// field reads a field of a manifest.
func (m *Manifest) field(d *jsonfile.Decoder, name string) error {
	switch name {
	case "tool":
		return d.Value(&m.Tool)
	case "padding":
		return d.Value(&m.Padding)
	case "relocations":
		return d.Value(&m.Relocations)
	case "keep":
		return list(d, limits.ManifestIssues, name, &m.Keep, func(p *string) string { return *p })
	case "kernels":
		return list(d, limits.EarlierKernels, name, &m.Kernels, func(e *ManifestKernel) string { return e.Kernel })
	case "issues":
		return list(d, limits.ManifestIssues, name, &m.Issues, func(e *ManifestIssue) string { return e.Relo })
	case "no_object":
		return list(d, limits.EarlierKernels, name, &m.NoObject, func(e *ManifestSkip) string { return e.Kernel })
	}
	return d.Skip()
}

// list reads up to most things that have a name. One without would take more memory than it has bytes.
func list[T any](d *jsonfile.Decoder, most int, what string, into *[]T, name func(*T) string) error {
	return d.Array(most, what, func() error {
		var e T
		if err := d.Value(&e); err != nil {
			return err
		}
		if name(&e) == "" {
			return errors.New("has no name")
		}
		*into = append(*into, e)
		return nil
	})
}

// Old is what an earlier run made of kernels that may not have changed. It is
// immutable. A nil Old has nothing.
type Old struct {
	kernels map[string]oldKernel
	issues  []issue
}

// oldKernel is a kernel whose issues are among those of the run.
type oldKernel struct {
	*Kernel
	at []uint32
}

// ReadOld reads the archive of an earlier run and its manifest. Where the run
// was one of another version or other options, or of other relocations on all machines, nothing of it can be
// used, and why says so. tool is what this build calls itself in a manifest, empty if
// other builds may do so too.
func ReadOld(ctx context.Context, archivePath, manifestPath, tool string, cfg *Config) (old *Old, why string, err error) {
	a, err := archive.OpenFile(archivePath)
	if err != nil {
		return nil, "", err
	}
	m, err := readManifest(ctx, manifestPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w: the run that makes %s has to write its manifest, too", err, archivePath)
	}
	if err != nil {
		return nil, "", err
	}
	switch {
	case tool == "":
		return nil, "this build of btfgen has no version, so it may not be the one that made it", nil
	case m.Tool != tool:
		return nil, fmt.Sprintf("it was made by %.100s", m.Tool), nil
	case !slices.Equal(m.Keep, cfg.Options.Keep.Patterns()):
		return nil, "it keeps other types", nil
	case m.Padding != cfg.Options.Padding:
		return nil, "it has another padding", nil
	}
	kernels, err := a.Kernels()
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", archivePath, err)
	}
	btfs := make(map[kernel.Key][]byte)
	for _, k := range kernels {
		btfs[k.Key] = k.BTF
	}
	old = &Old{kernels: make(map[string]oldKernel)}
	for _, is := range m.Issues {
		old.issues = append(old.issues, issue{is.Object, is.Relo, is.Result})
	}
	now, some := make(hashes), false
	usable := func(k *Kernel) bool {
		sum, ok := m.Relocations[k.Machine]
		return ok && sum == now.of(k.Machine, cfg.Objects, cfg.Options.Keep)
	}
	for i := range m.Kernels {
		e := &m.Kernels[i]
		key, err := kernel.ParseKey(e.Kernel)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", manifestPath, err)
		}
		btf, ok := btfs[key]
		if !ok || sha256.Sum256(btf) != e.SHA256 {
			// Whoever is killed between the two leaves a manifest with an older archive.
			return nil, fmt.Sprintf("%s is not its manifest: %s differs", manifestPath, e.Kernel), nil
		}
		k := &Kernel{Key: key, Name: key.String(), SourceSize: e.SourceSize, RawSize: e.RawSize, Machine: machineOf(key, e.Machine), BTF: btf, Resolved: e.Resolved, Reused: true, unmatched: e.Unmatched}
		k.Sources = fromSums(e.Sources)
		for _, n := range e.Issues {
			if int64(n) >= int64(len(m.Issues)) {
				return nil, "", fmt.Errorf("%s: %s has an issue %d of %d", manifestPath, e.Kernel, n, len(m.Issues))
			}
		}
		if usable(k) {
			some = true
			old.add(e.File, oldKernel{k, e.Issues})
		}
	}
	for _, e := range m.NoObject {
		key, err := kernel.ParseKey(e.Kernel)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", manifestPath, err)
		}
		if k := (&Kernel{Key: key, Name: key.String(), Machine: machineOf(key, e.Machine), Sources: fromSums(e.Sources)}); usable(k) {
			old.add(e.File, oldKernel{Kernel: k})
		}
	}
	if !some && len(m.Kernels) > 0 {
		return nil, "it is of other relocations", nil
	}
	return old, "", nil
}

// machineOf is the inverse of Kernel.machine.
func machineOf(key kernel.Key, machine string) string {
	return cmp.Or(kernel.CanonicalArch(key.Arch), machine)
}

// add files a kernel under its key or, where that is not known, under the name
// of its file.
func (o *Old) add(file string, k oldKernel) {
	if len(k.Sources) == 0 {
		return
	}
	if file != "" {
		o.kernels["file "+file] = k
		return
	}
	o.kernels[k.Name] = k
}

// file is the name of a kernel's file where the path does not tell the key, else empty.
func (k *Kernel) file() string {
	if !k.byFile {
		return ""
	}
	name, _, _ := strings.Cut(k.Path, "!")
	return filepath.Base(name)
}

func fromSums(in []Sum) (out [][sha256.Size]byte) {
	for _, s := range in {
		out = append(out, s)
	}
	return out
}

// find returns the kernel that an earlier run made of files of the same names,
// or none. Only files that held a single kernel are known.
func (o *Old) find(f *corpus.File) oldKernel {
	if o == nil {
		return oldKernel{}
	}
	if f.Key.Known() {
		return o.kernels[f.Key.String()]
	}
	return o.kernels["file "+filepath.Base(f.Path)]
}

// take returns the kernel that an earlier run made of the same files, or nil.
func (o *Old) take(f *corpus.File, sums [][sha256.Size]byte) *Kernel {
	k := o.find(f)
	if k.Kernel == nil || !slices.Equal(k.Sources, sums) {
		return nil
	}
	out := *k.Kernel
	for _, n := range k.at {
		out.issues = append(out.issues, o.issues[n])
	}
	out.Path, out.from = f.Path, f
	if out.byFile = !f.Key.Known(); !out.Key.Known() {
		out.Name = f.Path
	}
	return &out
}
