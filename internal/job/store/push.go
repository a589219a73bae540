// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// PushConfig configures Push.
type PushConfig struct {
	Path      string // a .btfc or .btfa file
	Reference string // reference of the artifact
	Tool      string // name and version of this program
	Created   string // time of the artifact, as RFC 3339 has it
	Client    artifact.Client
	Cache     string // a folder for layers
	Jobs      int
	// WithoutBTF pushes only the kernels of a .btfc that have, or may have, no BTF of their own.
	WithoutBTF bool
	DryRun     bool              // push nothing
	Waiting    func(path string) // see FetchConfig
}

// LayerState is what happened to a layer.
type LayerState string

const (
	LayerNew     LayerState = "new"     // not on the other side before
	LayerChanged LayerState = "changed" // another one was there for its series
	LayerThere   LayerState = "there"   // already
)

// Layer is a layer that was pushed or pulled.
type Layer struct {
	Series  string     `json:"series,omitempty"` // empty for an archive
	Kernels int        `json:"kernels"`
	Newest  string     `json:"newest,omitempty"`
	Digest  string     `json:"digest"`
	Bytes   int64      `json:"bytes"`
	State   LayerState `json:"state"`

	series kernel.Key
}

// Pushed describes what Push did.
type Pushed struct {
	Digest string  `json:"digest"` // digest of the manifest; empty in a dry run that would push
	Layers []Layer `json:"layers"`
	Moved  int64   `json:"bytes_uploaded"`
	There  bool    `json:"there"` // the tag names such an artifact already

	OwnBTF corpus.OwnBTFCounts `json:"-"`
}

// Count returns the number of layers in a state, and their bytes.
func Count(layers []Layer, s LayerState) (n int, bytes int64) {
	for _, l := range layers {
		if l.State == s {
			n, bytes = n+1, bytes+l.Bytes
		}
	}
	return n, bytes
}

// Push pushes a file as an artifact, a .btfc with a layer for each series. If the tag names an artifact with the same layers, it pushes nothing.
func Push(ctx context.Context, cfg PushConfig) (*Pushed, error) {
	dir, unlock, err := lockCache(ctx, cfg.Cache, cfg.Reference, "push", cfg.Waiting)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := empty(dir); err != nil { // removes what a killed run left
		return nil, err
	}
	defer os.RemoveAll(dir)
	in, err := os.Open(cfg.Path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var a *artifact.Artifact
	var own corpus.OwnBTFCounts
	if filepath.Ext(cfg.Path) == ".btfa" {
		a, err = archiveLayer(in, dir)
	} else {
		a, own, err = corpusLayers(ctx, in, dir, &cfg)
	}
	if err != nil {
		return nil, err
	}
	old, digest, err := remote(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	res := &Pushed{OwnBTF: own, There: old != nil && old.Archive == a.Archive && len(old.Layers) == len(a.Layers)}
	for _, l := range a.Layers {
		state := stateIn(old, l)
		res.There = res.There && state == LayerThere
		res.Layers = append(res.Layers, describe(l, state))
	}
	if res.There {
		res.Digest = digest
		return res, nil
	}
	if cfg.DryRun {
		return res, nil
	}
	text, err := a.Encode(cfg.Tool, cfg.Created)
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{artifact.ManifestFile: text, artifact.File(artifact.Digest(artifact.Empty)): artifact.Empty} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	res.Digest, res.Moved, err = cfg.Client.Put(ctx, cfg.Reference, dir)
	return res, err
}

// describe returns what is said of a layer.
func describe(l artifact.Layer, state LayerState) Layer {
	d := Layer{Kernels: l.Kernels, Newest: l.Newest, Digest: l.Digest, Bytes: l.Size, State: state, series: l.Series}
	if l.Series != (kernel.Key{}) {
		d.Series = artifact.SeriesName(l.Series)
	}
	return d
}

// stateIn returns the state of a layer with regard to an artifact, which may be nil.
func stateIn(old *artifact.Artifact, l artifact.Layer) LayerState {
	if old == nil {
		return LayerNew
	}
	i := slices.IndexFunc(old.Layers, func(o artifact.Layer) bool { return o.Series == l.Series })
	switch {
	case i < 0:
		return LayerNew
	case old.Layers[i].Digest != l.Digest:
		return LayerChanged
	}
	return LayerThere
}

// remote returns the artifact that the tag names, or nil. A registry may deny that there is no such artifact; whether it denies to push, it
// says then.
func remote(ctx context.Context, cfg *PushConfig) (*artifact.Artifact, string, error) {
	text, digest, err := cfg.Client.Manifest(ctx, cfg.Reference)
	var e *artifact.Error
	if errors.As(err, &e) && (e.Kind == artifact.Unknown || e.Kind == artifact.Denied) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	a, err := artifact.Parse(text)
	if err != nil {
		return nil, "", nil // it is replaced
	}
	return a, digest, nil
}

// corpusLayers splits a corpus into files in dir.
func corpusLayers(ctx context.Context, in *os.File, dir string, cfg *PushConfig) (*artifact.Artifact, corpus.OwnBTFCounts, error) {
	var own corpus.OwnBTFCounts
	fi, err := in.Stat()
	if err != nil {
		return nil, own, err
	}
	f, err := btfc.Open(in, fi.Size())
	if err != nil {
		return nil, own, skip.Wrap(in.Name(), "", err)
	}
	all := seriesOf(f)
	if cfg.WithoutBTF {
		if own, err = withoutBTF(ctx, in.Name(), all, f, cfg.Jobs); err != nil {
			return nil, own, err
		}
	}
	if len(all) == 0 {
		return nil, own, fmt.Errorf("%s: no kernel", in.Name())
	}
	a := new(artifact.Artifact)
	for series, kernels := range all {
		l := artifact.Layer{
			Series: series, Title: artifact.SeriesName(series) + ".btfc", Kernels: len(kernels), Newest: newestOf(f, kernels),
		}
		if l.Contents, err = contentsOf(ctx, f, kernels); err != nil {
			return nil, own, fmt.Errorf("%s: %w", in.Name(), err)
		}
		a.Layers = append(a.Layers, l)
	}
	sort.Slice(a.Layers, func(i, j int) bool {
		x, y := &a.Layers[i], &a.Layers[j]
		return cmp.Or(x.Series.Compare(y.Series), cmp.Compare(x.Title, y.Title)) < 0
	})
	for i := range a.Layers {
		l := &a.Layers[i]
		err := writeBlob(l, dir, func(out io.Writer) error { return split(ctx, f, l.Series, all[l.Series], dir, cfg.Jobs, out) })
		if err != nil {
			return nil, own, fmt.Errorf("%s: %w", in.Name(), err)
		}
	}
	return a, own, nil
}

// withoutBTF removes the kernels with BTF of their own from all, the kernels of a file by series.
func withoutBTF(ctx context.Context, path string, all map[kernel.Key][]int, f *btfc.File, jobs int) (corpus.OwnBTFCounts, error) {
	c, err := corpus.Open(ctx, []string{path}, corpus.Options{})
	if err != nil {
		return corpus.OwnBTFCounts{}, err
	}
	n, err := c.WithoutBTF(ctx, jobs)
	if err != nil {
		return n, err
	}
	for series, kernels := range all {
		all[series] = slices.DeleteFunc(kernels, func(i int) bool { return !c.Selects(f.Entries()[i].Key) })
		if len(all[series]) == 0 {
			delete(all, series)
		}
	}
	return n, nil
}

// archiveLayer copies an archive to dir.
func archiveLayer(in *os.File, dir string) (*artifact.Artifact, error) {
	l := artifact.Layer{Title: filepath.Base(in.Name())}
	if err := writeBlob(&l, dir, func(out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	}); err != nil {
		return nil, err
	}
	n, err := kernelsOf(filepath.Join(dir, artifact.File(l.Digest)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name(), err)
	}
	l.Kernels = n
	return &artifact.Artifact{Archive: true, Layers: []artifact.Layer{l}}, nil
}

// kernelsOf returns how many kernels an archive has.
func kernelsOf(path string) (int, error) {
	a, err := archive.OpenFile(path)
	if err != nil {
		// Unwrap removes the path, which is that of a copy.
		return 0, cmp.Or(errors.Unwrap(err), err)
	}
	return a.Len(), nil
}

// writeBlob writes a blob to dir, with the name of its digest.
func writeBlob(l *artifact.Layer, dir string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(dir, "blob")
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if err := write(io.MultiWriter(f, h)); err != nil {
		return err
	}
	if l.Size, err = f.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	l.Digest = artifact.DigestSum(h.Sum(nil))
	return os.Rename(f.Name(), filepath.Join(dir, artifact.File(l.Digest)))
}

// lockCache returns a folder for the blobs of a repository, which is locked.
func lockCache(ctx context.Context, cache, ref, what string, waiting func(string)) (dir string, unlock func(), err error) {
	sum := sha256.Sum256([]byte(artifact.Repository(ref)))
	dir = filepath.Join(cache, hex.EncodeToString(sum[:8])+"-"+what)
	unlock, err = hold(ctx, dir, true, waiting)
	return dir, unlock, err
}

// empty removes the files in a folder except those with these names.
func empty(dir string, keep ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
