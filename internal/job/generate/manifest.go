// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output/jsonfile"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Manifest describes a run for pipelines; tracers do not need it. A later run can reuse results from the archive and the
// manifest of an earlier one. Fields are only added.
type Manifest struct {
	Tool        string           `json:"tool"`
	Relocations map[string]Sum   `json:"relocations"`       // hashes, by machine, of --keep and the relocations of objects used on it
	Keep        []string         `json:"keep,omitempty"`    // patterns
	Modules     []string         `json:"modules,omitempty"` // names of those that were used, or "none"; absent for all
	Kernels     []ManifestKernel `json:"kernels"`
	Issues      []Issue          `json:"issues"`
}

// ManifestKernel is a kernel of the run.
type ManifestKernel struct {
	Kernel     string   `json:"kernel"`
	Machine    string   `json:"machine,omitempty"`   // set from the BTF if the key has none
	File       string   `json:"file,omitempty"`      // name of its file, if the path does not contain the key
	Sources    []Sum    `json:"source_sha256"`       // sums of the kernel's file, then of its modules' files; see corpus.File.Sums
	SourceSize int64    `json:"source_size"`         // bytes on disk
	RawSize    int64    `json:"raw_size"`            // bytes of BTF, including modules
	SHA256     Sum      `json:"sha256"`              // sum of the minimized BTF
	Resolved   int      `json:"resolved"`            // relocations, counted once per object
	Issues     []uint32 `json:"issues"`              // the others, as indices into Manifest.Issues
	Unmatched  []string `json:"unmatched,omitempty"` // patterns of Keep that match none of its types
}

// Sum is a SHA-256.
type Sum = btfc.Sum

// NewManifest returns the manifest of a run.
func NewManifest(tool string, cfg *Config, rep *Report) *Manifest {
	m := &Manifest{Tool: tool, Keep: cfg.Options.Keep.Patterns(), Modules: cfg.Corpus.Modules(), Kernels: []ManifestKernel{}, Issues: []Issue{}}
	hashes := make(hashes)
	at := make(map[Issue]uint32) // sorted, so that the order of the objects does not matter
	for i := range rep.Kernels {
		for _, is := range rep.Kernels[i].issues {
			at[*is] = 0
		}
	}
	for n, is := range slices.SortedFunc(maps.Keys(at), Issue.compare) {
		at[is], m.Issues = uint32(n), append(m.Issues, is)
	}
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		key := k.OutputKey()
		e := ManifestKernel{
			Kernel: key.String(), Sources: append([]Sum{}, k.Sources...), SourceSize: k.SourceSize, RawSize: k.RawSize, SHA256: sha256.Sum256(k.BTF),
			Resolved: k.Resolved, Issues: []uint32{}, Unmatched: k.unmatched,
		}
		if key.Arch == "" {
			e.Machine = k.Machine
		}
		if k.byFile {
			name, _, _ := strings.Cut(k.Path, "!")
			e.File = filepath.Base(name)
		}
		for _, is := range k.issues {
			e.Issues = append(e.Issues, at[*is])
		}
		hashes.of(k.Machine, cfg.Objects, cfg.Options.Keep)
		m.Kernels = append(m.Kernels, e)
	}
	m.Relocations = hashes
	return m
}

// hashes has, by machine, the hash of the relocations of all objects used on it. The machine "" is an unknown one.
type hashes map[string]Sum

// of returns the hash for a machine.
func (h hashes) of(machine string, objects []*core.Object, keep *core.KeepPatterns) Sum {
	sum, ok := h[machine]
	if !ok {
		sum = keep.Hash(core.OnMachine(machine, objects...)...)
		h[machine] = sum
	}
	return sum
}

// Relocations returns, for each arch of the kernels, the hash of the relocations and of the patterns of --keep.
func (r *Report) Relocations(objects []*core.Object, keep *core.KeepPatterns) (all []archive.Relocations) {
	hashes := make(hashes)
	for i := range r.Kernels {
		k := &r.Kernels[i]
		sum := hashes.of(k.Machine, objects, keep)
		all = append(all, archive.Relocations{Arch: kernel.CanonicalArch(k.OutputKey().Arch), Sum: sum[:]})
	}
	slices.SortStableFunc(all, func(a, b archive.Relocations) int { return strings.Compare(a.Arch, b.Arch) })
	return slices.CompactFunc(all, func(a, b archive.Relocations) bool { return a.Arch == b.Arch })
}

// Encode returns the manifest as JSON.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := escape.JSON(&b)
	enc.SetIndent("", " ")
	err := enc.Encode(m)
	return b.Bytes(), err
}

// ReadManifest reads a manifest.
func ReadManifest(ctx context.Context, path string) (*Manifest, error) {
	m := new(Manifest)
	return m, jsonfile.Read(ctx, path, limits.ManifestBytes, "a manifest", m)
}

// Old has results of an earlier run. The key is the kernel's or, if it has none, "file " and the name of the file.
type Old map[string]*Kernel

// ReadOld reads the archive and the manifest of an earlier run. If no result can be reused, because there is no archive yet, or the
// version, the options or all relocations differ, or one of the two is damaged, it returns the reason. tool is the name of this build in a manifest, empty if other builds may
// have the same name.
func ReadOld(ctx context.Context, archivePath, manifestPath, tool string, cfg *Config) (old Old, why string, err error) {
	a, err := archive.OpenFile(archivePath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "it does not exist yet", nil
	}
	if err != nil {
		return nil, unusable(archivePath, err), unreadable(err)
	}
	m, err := ReadManifest(ctx, manifestPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w: the run that makes %s has to write its manifest, too", err, archivePath)
	}
	if err != nil {
		return nil, unusable(archivePath, err), cmp.Or(ctx.Err(), unreadable(err))
	}
	switch {
	case tool == "":
		return nil, "this build of btfgen has no version, so it may not be the one that made it", nil
	case m.Tool != tool:
		return nil, fmt.Sprintf("it was made by %.100s, this is %s", m.Tool, tool), nil
	case !slices.Equal(m.Keep, cfg.Options.Keep.Patterns()):
		return nil, "it keeps other types", nil
	case !slices.Equal(m.Modules, cfg.Corpus.Modules()):
		return nil, "it was made with other modules", nil
	}
	kernels, err := a.Kernels()
	if err != nil {
		return nil, err.Error(), ctx.Err()
	}
	btfs := make(map[kernel.Key][]byte)
	for _, k := range kernels {
		btfs[k.Key] = k.BTF
	}
	old = make(Old)
	now, some := make(hashes), false
	for _, e := range m.Kernels {
		key, err := kernel.ParseKey(e.Kernel)
		if err != nil {
			return nil, fmt.Sprintf("%s: %v", manifestPath, err), nil
		}
		btf := btfs[key]
		if btf == nil || sha256.Sum256(btf) != e.SHA256 {
			// A run that was killed between writing the manifest and the archive leaves an older archive.
			return nil, fmt.Sprintf("%s is not its manifest: %s differs", manifestPath, e.Kernel), nil
		}
		issues := make([]*Issue, len(e.Issues))
		for i, n := range e.Issues {
			if int64(n) >= int64(len(m.Issues)) {
				return nil, fmt.Sprintf("%s: %s has an issue %d of %d", manifestPath, e.Kernel, n, len(m.Issues)), nil
			}
			issues[i] = &m.Issues[n]
		}
		machine := cmp.Or(kernel.CanonicalArch(key.Arch), e.Machine)
		if sum, ok := m.Relocations[machine]; !ok || sum != now.of(machine, cfg.Objects, cfg.Options.Keep) {
			continue
		}
		some = true
		name := key.String()
		if e.File != "" {
			name = "file " + e.File
		}
		if len(e.Sources) > 0 {
			old[name] = &Kernel{
				Key: key, Name: key.String(), SourceSize: e.SourceSize, RawSize: e.RawSize, Machine: machine, BTF: btf, Resolved: e.Resolved,
				Reused: true, Sources: e.Sources, issues: issues, unmatched: e.Unmatched,
			}
		}
	}
	if !some && len(m.Kernels) > 0 {
		return nil, "it was made for other relocations", nil
	}
	return old, "", nil
}

// unreadable returns the error of a file that the system does not let read or that is no archive, and nil for a damaged one.
func unreadable(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) || errors.Is(err, archive.ErrNotArchive) {
		return err
	}
	return nil
}

// unusable says why a damaged archive, or its manifest, is not reused.
func unusable(name string, err error) string {
	if unreadable(err) != nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), name+": ")
}

// take returns the result for files with the same names and hashes, or nil. Only files with a single kernel have one.
func (o Old) take(f *corpus.File, sums []Sum) *Kernel {
	name := f.Key.String()
	if !f.Key.Known() {
		name = "file " + filepath.Base(f.Path)
	}
	k := o[name]
	if k == nil || !slices.Equal(k.Sources, sums) {
		return nil
	}
	out := *k
	out.Path, out.from = f.Path, f
	if out.byFile = !f.Key.Known(); !out.Key.Known() {
		out.Name = f.Path
	}
	return &out
}
