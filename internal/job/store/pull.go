// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/suggest"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// PullConfig configures Pull.
type PullConfig struct {
	Path      string   // the .btfc or .btfa file
	Reference string   // reference of the artifact
	Series    []string // names of series, ID/VERSION_ID or ID/VERSION_ID/ARCH; none for all
	Client    artifact.Client
	Cache     string // a folder for layers
	Jobs      int
	DryRun    bool              // change nothing
	Before    func(res *Pulled) // is called before layers are downloaded; may be nil
	Waiting   func(path string) // see FetchConfig
}

// Pulled describes what Pull did.
type Pulled struct {
	Digest   string  `json:"digest"` // digest of the manifest
	Layers   []Layer `json:"layers"` // layers of the selected series
	Moved    int64   `json:"bytes_downloaded"`
	Added    int     `json:"kernels_added"`
	Replaced int     `json:"kernels_replaced"` // their content was another before
	Kept     int     `json:"kernels_kept"`     // no layer has them
	Encoded  int     `json:"kernels_encoded"`  // kept kernels encoded anew, since what they were encoded against was replaced
	Kernels  int     `json:"file_kernels"`
	Size     int64   `json:"file_bytes"`

	Skipped []*corpus.Error `json:"-"` // kernels of the file that could not be read
}

// Missing returns how many layers have to be downloaded, and their bytes.
func (p *Pulled) Missing() (n int, bytes int64) {
	n, bytes = Count(p.Layers, LayerNew)
	m, more := Count(p.Layers, LayerChanged)
	return n + m, bytes + more
}

// Pull adds the kernels of an artifact to a .btfc file, or writes its archive to a .btfa file. Layers whose kernels the file has are not
// downloaded. A kernel of a layer takes the place of one with the same key; all others stay. The file is replaced at once, when all layers are
// complete and valid. An interrupted run is continued by the next one.
func Pull(ctx context.Context, cfg PullConfig) (*Pulled, error) {
	if !cfg.DryRun {
		unlock, err := hold(ctx, cfg.Path, false, cfg.Waiting)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	text, digest, err := cfg.Client.Manifest(ctx, cfg.Reference)
	if err != nil {
		return nil, err
	}
	a, err := artifact.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Reference, err)
	}
	p := &puller{PullConfig: cfg, res: &Pulled{Digest: digest}}
	if err := p.fits(a); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Reference, err)
	}
	if a.Archive {
		err = p.archive(ctx, a.Layers[0])
	} else {
		err = p.corpus(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(cfg.Path); err == nil {
		p.res.Size = fi.Size()
	}
	return p.res, nil
}

// puller is a run of Pull.
type puller struct {
	PullConfig
	res *Pulled
	dir string // folder of the layers
}

// fits returns an error if the artifact is not for such a file.
func (p *puller) fits(a *artifact.Artifact) error {
	want := ".btfc"
	if a.Archive {
		want = ".btfa"
	}
	switch ext := filepath.Ext(p.Path); {
	case p.Path == "" && p.DryRun:
	case a.Archive && ext != want:
		return fmt.Errorf("is an archive, which 'btfgen archive pull' pulls")
	case ext != want:
		return fmt.Errorf("is a corpus, which 'btfgen corpus pull' pulls")
	}
	if a.Archive && len(p.Series) > 0 {
		return errors.New("is an archive, which has no series")
	}
	return nil
}

// archive pulls an archive.
func (p *puller) archive(ctx context.Context, l artifact.Layer) (err error) {
	state := LayerNew
	if data, err := os.Open(p.Path); err == nil {
		state = LayerChanged
		have, err := artifact.DigestOf(data)
		data.Close()
		if err == nil && have == l.Digest {
			state = LayerThere
		}
	}
	p.res.Layers, p.res.Kernels = []Layer{describe(l, state)}, l.Kernels
	done, err := p.download(ctx)
	if done == nil || err != nil {
		return err
	}
	defer func() { done(err == nil) }()
	path := p.file(l.Digest)
	if p.res.Kernels, err = kernelsOf(path); err != nil {
		return p.refuse(l, err)
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	err = output.WriteFile(p.Path, func(out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	})
	if err == nil {
		p.res.Added = p.res.Kernels
	}
	return err
}

// corpus pulls layers of a corpus.
func (p *puller) corpus(ctx context.Context, a *artifact.Artifact) (err error) {
	chosen, err := choose(a, p.Series)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Reference, err)
	}
	var old *btfc.File
	if p.Path != "" {
		in, f, _, err := openPacked(p.Path)
		if err != nil {
			return err
		}
		defer in.Close()
		old = f
	}
	have := seriesOf(old)
	for _, l := range chosen {
		p.res.Layers = append(p.res.Layers, describe(l, stateOf(ctx, old, l, have[l.Series])))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if old != nil {
		p.res.Kernels = len(old.Entries())
		p.res.Kept = p.res.Kernels
	}
	done, err := p.download(ctx)
	if done == nil || err != nil {
		return err
	}
	defer func() { done(err == nil) }()
	return ofOutput(p.Path, p.merge(ctx, old, chosen))
}

// ofOutput returns an error of writing the file at path, with this path instead of that of a temporary file next to it.
func ofOutput(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && at.Path != path && filepath.Dir(at.Path) == filepath.Dir(path) {
		return fmt.Errorf("%s: %w", path, at.Err)
	}
	return err
}

// stateOf returns the state of a layer for a file that has these kernels of its series. It counts as present if they have its contents and no chunk is
// damaged.
func stateOf(ctx context.Context, old *btfc.File, l artifact.Layer, have []int) LayerState {
	if len(have) == 0 {
		return LayerNew
	}
	if l.Contents == "" || len(have) < l.Kernels {
		return LayerChanged
	}
	have = have[:l.Kernels] // a pull puts the kernels of a layer before all others
	if got, err := contentsOf(ctx, old, have); err != nil || got != l.Contents || old.Check(ctx, have) != nil {
		return LayerChanged
	}
	return LayerThere
}

// choose returns the layers of series with these names, or all.
func choose(a *artifact.Artifact, names []string) (chosen []artifact.Layer, err error) {
	if len(names) == 0 {
		return a.Layers, nil
	}
	wanted := make(map[kernel.Key]bool)
	for _, name := range names {
		key, err := ParseSeries(name)
		if err != nil {
			return nil, err
		}
		found := false
		var all []string
		for _, l := range a.Layers {
			if s := l.Series; s == key || key.Arch == "" && s.ID == key.ID && s.VersionID == key.VersionID {
				wanted[s], found = true, true
			}
			all = append(all, artifact.SeriesName(l.Series))
		}
		if !found {
			suggest.SortSeries(name, all)
			return nil, fmt.Errorf("has no series %s; nearest: %s", name, strings.Join(all[:min(len(all), 4)], ", "))
		}
	}
	for _, l := range a.Layers {
		if wanted[l.Series] {
			chosen = append(chosen, l)
		}
	}
	return chosen, nil
}

// ParseSeries reads the name of a series, or of all series of a distribution's version, which have no arch.
func ParseSeries(name string) (kernel.Key, error) {
	parts := strings.Split(name, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return kernel.Key{}, fmt.Errorf("%q: want ID/VERSION_ID or ID/VERSION_ID/ARCH, as in debian/12", name)
	}
	for i := range parts {
		if parts[i] == "-" {
			parts[i] = ""
		}
	}
	key := kernel.Key{ID: parts[0], VersionID: parts[1]}
	if len(parts) == 3 {
		key.Arch = parts[2]
	}
	return key.Canonical(), nil
}

// file returns the path of a layer.
func (p *puller) file(digest string) string { return filepath.Join(p.dir, artifact.File(digest)) }

// download downloads what is missing. It returns nil if nothing is, or in a dry run. Else done is called at the end. It removes the layers if they
// are in the file, and else leaves them to the next run.
func (p *puller) download(ctx context.Context) (done func(used bool), err error) {
	n, bytes := p.res.Missing()
	if p.Before != nil {
		p.Before(p.res)
	}
	if n == 0 || p.DryRun {
		return nil, nil
	}
	dir, unlock, err := lockCache(ctx, p.Cache, p.Reference, "pull", p.Waiting)
	if err != nil {
		return nil, err
	}
	p.dir = dir
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	var digests, keep []string
	for _, l := range p.res.Layers {
		if l.State != LayerThere && !slices.Contains(digests, l.Digest) {
			digests = append(digests, l.Digest)
			keep = append(keep, artifact.File(l.Digest), artifact.File(l.Digest)+".part")
		}
	}
	if err := empty(dir, keep...); err != nil { // removes layers of other versions
		return nil, err
	}
	there := folderSize(dir)
	if free, err := freeSpace(dir); err == nil && free < bytes-there+spare {
		return nil, fmt.Errorf("%s: %s free, %s needed: %w", dir, words.Bytes(free), words.Bytes(bytes-there+spare), syscall.ENOSPC)
	}
	if p.res.Moved, err = p.Client.Get(ctx, artifact.Pin(p.Reference, p.res.Digest), dir, digests); err != nil {
		return nil, err
	}
	return func(used bool) {
		if used {
			empty(dir)
		}
		unlock()
	}, nil
}

// refuse returns the error about a layer that cannot be used.
func (p *puller) refuse(l artifact.Layer, err error) error {
	return fmt.Errorf("%s: layer %s: %w", p.Reference, l.Digest, err)
}

// open opens a layer and checks that it is what the manifest says.
func (p *puller) open(ctx context.Context, l artifact.Layer) (*os.File, *btfc.File, error) {
	in, err := os.Open(p.file(l.Digest))
	if err != nil {
		return nil, nil, err
	}
	f, err := check(ctx, in, l)
	if err != nil {
		in.Close()
		return nil, nil, p.refuse(l, err)
	}
	return in, f, nil
}

// check checks a layer: all kernels belong to its series and are those in the manifest.
func check(ctx context.Context, in *os.File, l artifact.Layer) (*btfc.File, error) {
	f, err := btfc.Open(in, l.Size)
	if err != nil {
		return nil, err
	}
	all := make([]int, len(f.Entries()))
	for i, e := range f.Entries() {
		if all[i] = i; artifact.SeriesOf(e.Key) != l.Series {
			return nil, fmt.Errorf("has %s, although it is for %s", e.Key, artifact.SeriesName(l.Series))
		}
	}
	if n := len(packagesOf(f, l.Series)); n != len(f.Packages()) {
		return nil, fmt.Errorf("has packages of other series than %s", artifact.SeriesName(l.Series))
	}
	if l.Contents == "" { // pushed by another program
		return f, nil
	}
	switch got, err := contentsOf(ctx, f, all); {
	case err != nil:
		return nil, err
	case got != l.Contents || len(all) != l.Kernels:
		return nil, errors.New("has other kernels than the manifest says")
	}
	return f, nil
}

// merge writes the file: the kernels of the new layers, then the other kernels of the old file.
func (p *puller) merge(ctx context.Context, old *btfc.File, chosen []artifact.Layer) error {
	w, err := btfc.NewWriter(nil, filepath.Dir(p.Path))
	if err != nil {
		return err
	}
	defer w.Discard()
	to := &adder{w: w, jobs: p.Jobs}
	fresh := make(map[kernel.Key]*btfc.Entry) // kernels of layers
	if old != nil {
		w.Note(old.Packages()...)
	}
	for i, l := range chosen {
		if p.res.Layers[i].State == LayerThere {
			continue
		}
		in, f, err := p.open(ctx, l)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := to.add(ctx, f, seriesOf(f)[l.Series], nil); err != nil {
			return p.refuse(l, err)
		}
		w.Note(f.Packages()...)
		for _, e := range f.Entries() {
			fresh[e.Key.Canonical()] = e
		}
	}
	if err := p.keep(ctx, to, old, fresh); err != nil {
		return err
	}
	p.res.Kernels = w.Len()
	return output.WriteFile(p.Path, func(out io.Writer) error {
		_, err := w.WriteTo(out)
		return err
	})
}

// keep adds the kernels of the old file that no layer has, and counts.
func (p *puller) keep(ctx context.Context, to *adder, old *btfc.File, fresh map[kernel.Key]*btfc.Entry) error {
	before := make(map[kernel.Key]*btfc.Entry)
	var rest []int
	if old != nil {
		for i, e := range old.Entries() {
			if fresh[e.Key.Canonical()] != nil {
				before[e.Key.Canonical()] = e
			} else {
				rest = append(rest, i)
			}
		}
	}
	p.res.Kept = len(rest)
	for k, e := range fresh {
		switch o := before[k]; {
		case o == nil:
			p.res.Added++
		case o.Sum != e.Sum || o.ModulesSum != e.ModulesSum || o.Config != e.Config || o.Symbols != e.Symbols:
			p.res.Replaced++
		}
	}
	if old == nil {
		return nil
	}
	encoded := to.Encoded
	err := to.add(ctx, old, rest, func(i int, err error) {
		p.res.Kept--
		key := old.Entries()[i].Key.Canonical()
		p.res.Skipped = append(p.res.Skipped, &corpus.Error{Path: p.Path + "!" + key.String(), What: "btfc", Err: err, Shared: true})
	})
	p.res.Encoded = to.Encoded - encoded
	return err
}
