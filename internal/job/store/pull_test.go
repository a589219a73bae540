// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testregistry"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// registry is a folder that a script in place of btfgen-registry serves. TestRegistry of cmd/btfgen uses the program and real registries.
type registry struct {
	t     *testing.T
	dir   string
	cache string
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	return &registry{t, testregistry.Folder(t), t.TempDir()}
}

const reference = "registry.example.org/some/corpus:v1"

func (r *registry) push(path string) *Pushed {
	r.t.Helper()
	res, err := Push(background, PushConfig{Path: path, Reference: reference, Tool: "test", Created: "2026-01-01T00:00:00Z", Cache: r.cache, Jobs: 2})
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func (r *registry) pull(path string, series ...string) (*Pulled, error) {
	res, err := Pull(background, PullConfig{Path: path, Reference: reference, Series: series, Cache: r.cache, Jobs: 2})
	if left, _ := filepath.Glob(filepath.Join(r.cache, "*/*")); err == nil && len(left) > 0 {
		r.t.Errorf("left in the cache: %q", left)
	}
	return res, err
}

// pulled is pull, which must succeed, and returns the series that were not there.
func (r *registry) pulled(path string, series ...string) (*Pulled, map[string]LayerState) {
	r.t.Helper()
	res, err := r.pull(path, series...)
	if err != nil {
		r.t.Fatal(err)
	}
	all := make(map[string]LayerState)
	for _, l := range res.Layers {
		if l.State != LayerThere {
			all[l.Series] = l.State
		}
	}
	return res, all
}

// change changes the manifest of the tag.
func (r *registry) change(do func(m map[string]any)) {
	r.t.Helper()
	path := filepath.Join(r.dir, "v1")
	data, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	m := make(map[string]any)
	if err := json.Unmarshal(data, &m); err != nil {
		r.t.Fatal(err)
	}
	do(m)
	if data, err = json.Marshal(m); err == nil {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// layer returns the file of layer i of the tag, and its entry in the manifest. set replaces the file, with the right digest and size.
func (r *registry) layer(i int) (data []byte, entry map[string]any, set func([]byte)) {
	r.t.Helper()
	r.change(func(m map[string]any) { entry = m["layers"].([]any)[i].(map[string]any) })
	data, err := os.ReadFile(filepath.Join(r.dir, artifact.File(entry["digest"].(string))))
	if err != nil {
		r.t.Fatal(err)
	}
	return data, entry, func(data []byte) {
		digest := artifact.Digest(data)
		write(r.t, r.dir, map[string][]byte{artifact.File(digest): data})
		r.change(func(m map[string]any) {
			e := m["layers"].([]any)[i].(map[string]any)
			e["digest"], e["size"] = digest, len(data)
		})
	}
}

// alike is the BTF of a kernel that is like others.
func alike(t *testing.T, n int) []byte {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "struct s%d %d: next *s%d 0, count u32 8, data%d u8[%d] 12\n", i, 64+n/3*i%5, (i+1)%60, i%4, 4+i%(7+n))
	}
	return testbtf.Types(t, binary.LittleEndian, b.String())
}

// kernelFiles returns files of three series.
func kernelFiles(t *testing.T) map[string][]byte {
	files := map[string][]byte{"debian/12/arm64/6.1.0-1-arm64.btf": alike(t, 1)}
	for n := range 5 {
		files[fmt.Sprintf("debian/12/x86_64/6.1.0-%d-amd64.btf", n)] = alike(t, n)
		files[fmt.Sprintf("ubuntu/22.04/x86_64/5.15.0-%d-generic.btf", n)] = alike(t, n+3)
		files[fmt.Sprintf("ubuntu/22.04/x86_64/5.15.0-%d-generic.config", n)] = fmt.Appendf(nil, "CONFIG_VERSION=\"%d\"\nCONFIG_BPF=y\n", n)
	}
	return files
}

// packed writes files to a .btfc file.
func packed(t *testing.T, path string, files map[string][]byte) string {
	t.Helper()
	if _, err := Pack(background, config(t, 2, write(t, t.TempDir(), files)), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPushPull pushes a file whose series are encoded against each other, pulls it in one and in several steps, and then with changes on both
// sides.
func TestPushPull(t *testing.T) {
	r := newRegistry(t)
	files, dir := kernelFiles(t), t.TempDir()
	source := packed(t, filepath.Join(dir, "source.btfc"), files)
	first := r.push(source)
	var got []string
	for _, l := range first.Layers {
		got = append(got, fmt.Sprint(l.Series, " ", l.Kernels, " ", l.Newest, " ", l.State))
	}
	if d := cmp.Diff([]string{
		"debian/12/arm64 1 6.1.0-1-arm64 new", "debian/12/x86_64 5 6.1.0-4-amd64 new", "ubuntu/22.04/x86_64 5 5.15.0-4-generic new",
	}, got); d != "" || first.There {
		t.Errorf("%v, %s", first, d)
	}
	if again := r.push(source); !again.There || again.Digest != first.Digest {
		t.Errorf("%+v", again)
	}

	pulled := filepath.Join(dir, "pulled.btfc")
	res, states := r.pulled(pulled)
	if len(states) != 3 || res.Added != 11 || res.Kernels != 11 || res.Encoded != 0 || res.Digest != first.Digest {
		t.Errorf("%+v", res)
	}
	if d := cmp.Diff(kernels(t, source), kernels(t, pulled)); d != "" {
		t.Error(d)
	}
	for _, path := range []string{pulled, source} { // however it is encoded
		if res, states := r.pulled(path); len(states) > 0 || res.Moved > 0 || res.Kept != 11 {
			t.Errorf("%s: again: %+v", path, res)
		}
	}
	if again := r.push(pulled); !again.There {
		t.Errorf("pushed after it was pulled: %+v", again)
	}

	steps := filepath.Join(dir, "steps.btfc")
	if _, states := r.pulled(steps, "debian/12/amd64"); !maps.Equal(states, map[string]LayerState{"debian/12/x86_64": LayerNew}) {
		t.Errorf("%v", states)
	}
	if res, states := r.pulled(steps, "debian/12"); !maps.Equal(states, map[string]LayerState{"debian/12/arm64": LayerNew}) || res.Kept != 5 {
		t.Errorf("%v, %+v", states, res)
	}
	// Local kernels: of a series that was pulled, of one that is pulled next, and of another.
	packed(t, steps, map[string][]byte{
		"debian/12/x86_64/6.1.0-9-amd64.btf":         alike(t, 9),
		"ubuntu/22.04/x86_64/5.15.0-0-generic.btf":   alike(t, 8), // the layer replaces it
		"ubuntu/22.04/x86_64/5.15.0-9-generic.btf":   alike(t, 9),
		"fedora/40/x86_64/6.8.5-301.fc40.x86_64.btf": alike(t, 7),
	})
	if res, states := r.pulled(steps, "debian/12"); len(states) > 0 {
		t.Errorf("%+v", res)
	}
	res, states = r.pulled(steps)
	if !maps.Equal(states, map[string]LayerState{"ubuntu/22.04/x86_64": LayerChanged}) || res.Added != 4 || res.Replaced != 1 || res.Kept != 9 {
		t.Errorf("%v, %+v", states, res)
	}
	want := kernels(t, source)
	for name, data := range kernels(t, packed(t, filepath.Join(dir, "more.btfc"), map[string][]byte{
		"debian/12/x86_64/6.1.0-9-amd64.btf": alike(t, 9), "ubuntu/22.04/x86_64/5.15.0-9-generic.btf": alike(t, 9),
		"fedora/40/x86_64/6.8.5-301.fc40.x86_64.btf": alike(t, 7),
	})) {
		want[name] = data
	}
	if d := cmp.Diff(want, kernels(t, steps)); d != "" {
		t.Error(d)
	}

	// One more kernel changes one layer.
	packed(t, source, map[string][]byte{"debian/12/x86_64/6.1.0-5-amd64.btf": alike(t, 5)})
	second := r.push(source)
	for i, l := range second.Layers {
		if changed := l.Series == "debian/12/x86_64"; changed == (l.Digest == first.Layers[i].Digest) || (l.State == LayerThere) == changed {
			t.Errorf("%+v", l)
		}
	}
	if res, states := r.pulled(steps); !maps.Equal(states, map[string]LayerState{"debian/12/x86_64": LayerChanged}) || res.Added != 1 || res.Replaced != 0 {
		t.Errorf("%v, %+v", states, res)
	}

	before, err := os.ReadFile(steps)
	if err != nil {
		t.Fatal(err)
	}
	for series, want := range map[string]string{
		"debian/13":         "has no series debian/13; nearest: debian/12/",
		"debian/12/x86":     "",
		"debian/12/riscv64": "has no series debian/12/riscv64; nearest: debian/12/",
		"debian":            `"debian": want ID/VERSION_ID`,
		"debian//x86_64":    "want ID/VERSION_ID",
	} {
		if _, err := r.pull(steps, series); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", series, err, want)
		}
	}
	if after, err := os.ReadFile(steps); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed, %v", err)
	}
}

// TestPushWithoutBTF pushes only kernels that have, or may have, no BTF of their own. Their layers are those of a file with only
// these kernels.
func TestPushWithoutBTF(t *testing.T) {
	r := newRegistry(t)
	dir, files := t.TempDir(), kernelFiles(t)
	few := maps.Clone(files)
	for n := range 5 {
		own := fmt.Sprintf("debian/12/x86_64/6.1.0-%d-amd64", n)
		if n == 2 {
			own = "debian/12/arm64/6.1.0-1-arm64"
		}
		files[own+".config"] = []byte("CONFIG_BPF=y\nCONFIG_DEBUG_INFO_BTF=y\n")
		delete(few, own+".btf")
	}
	push := func(name string, files map[string][]byte) *Pushed {
		t.Helper()
		res, err := Push(background, PushConfig{Path: packed(t, filepath.Join(dir, name), files), Reference: reference, Cache: r.cache, Jobs: 2, WithoutBTF: true, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	all, want := push("all.btfc", files), push("few.btfc", few)
	if all.OwnBTF != (corpus.OwnBTFCounts{Left: 5, Unknown: 1}) || want.OwnBTF != (corpus.OwnBTFCounts{Unknown: 1}) {
		t.Errorf("%+v, %+v", all.OwnBTF, want.OwnBTF)
	}
	if d := cmp.Diff(want.Layers, all.Layers, cmp.AllowUnexported(Layer{})); d != "" || len(all.Layers) != 2 {
		t.Error(d)
	}
}

// TestPushPackages keeps the packages of a series with its layer.
func TestPushPackages(t *testing.T) {
	r := newRegistry(t)
	files, path := kernelFiles(t), filepath.Join(t.TempDir(), "x.btfc")
	note := []btfc.Package{
		{Series: "debian/12/x86_64", Name: "a", Version: "1", Kernel: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "6.1.0-1-amd64"}},
		{Series: "ubuntu/22.04/x86_64", Name: "b", Version: "1", Reason: "no kernel"},
	}
	if _, err := Pack(background, config(t, 2, write(t, t.TempDir(), files)), path, func(*Packed) []btfc.Package { return note }); err != nil {
		t.Fatal(err)
	}
	r.push(path)
	for _, series := range []string{"debian/12", "ubuntu/22.04"} {
		to := filepath.Join(t.TempDir(), "y.btfc")
		r.pulled(to, series)
		f, file, _, err := openPacked(to)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if got := file.Packages(); len(got) != 1 || !slices.Contains(note, got[0]) || !strings.HasPrefix(got[0].Series, series) {
			t.Errorf("%s: %+v", series, got)
		}
	}
}

// TestPullHostile pulls layers and manifests that lie. The file does not change.
func TestPullHostile(t *testing.T) {
	pushed := newRegistry(t)
	pushed.push(packed(t, filepath.Join(t.TempDir(), "x.btfc"), kernelFiles(t)))
	before, err := os.ReadFile(packed(t, filepath.Join(t.TempDir(), "y.btfc"), map[string][]byte{"fedora/40/x86_64/6.8.btf": alike(t, 7)}))
	if err != nil {
		t.Fatal(err)
	}
	annotate := func(key, value string) func(r *registry) {
		return func(r *registry) {
			r.change(func(m map[string]any) {
				m["layers"].([]any)[1].(map[string]any)["annotations"].(map[string]any)["io.github.btfgen."+key] = value
			})
		}
	}
	replace := func(do func(data []byte) []byte) func(r *registry) {
		return func(r *registry) {
			data, _, set := r.layer(1)
			set(do(data))
		}
	}
	for _, test := range []struct {
		name   string
		change func(r *registry)
		want   string
	}{
		{"cut", replace(func(b []byte) []byte { return b[:len(b)-1] }), "does not end as a corpus does"},
		{"index", replace(func(b []byte) []byte {
			b[len(b)-40] ^= 1
			return b
		}), "index: "},
		{"text", replace(func([]byte) []byte { return []byte(strings.Repeat("text", 100)) }), "does not end as a corpus does"},
		{"empty", replace(func([]byte) []byte { return nil }), "does not end as a corpus does"},
		{"other series", annotate("series", "ubuntu/24.04/x86_64"), "although it is for ubuntu/24.04/x86_64"},
		{"series twice", annotate("series", "ubuntu/22.04/x86_64"), "two layers of ubuntu/22.04/x86_64"},
		{"series with a path", annotate("series", "../../x86_64"), "is not a name"},
		{"spelling", annotate("series", "Debian/12/amd64"), "not the usual spelling"},
		{"no series", annotate("series", ""), "has no annotation io.github.btfgen.series"},
		{"count", annotate("kernels", "4"), "has other kernels than the manifest says"},
		{"no count", annotate("kernels", "-1"), "-1\" kernels"},
		{"newest", annotate("newest", "a/b"), "is not a release"},
		{"contents", annotate("contents", strings.Repeat("0", 64)), "has other kernels than the manifest says"},
		{"fewer kernels", replace(func([]byte) []byte {
			path := packed(t, filepath.Join(t.TempDir(), "y.btfc"), map[string][]byte{"debian/12/x86_64/6.1.0-1-amd64.btf": alike(t, 1)})
			data, _ := os.ReadFile(path)
			return data
		}), "has other kernels than the manifest says"},
		{"packages of others", replace(func([]byte) []byte {
			path := filepath.Join(t.TempDir(), "y.btfc")
			dir := write(t, t.TempDir(), map[string][]byte{"debian/12/x86_64/6.1.0-1-amd64.btf": alike(t, 1)})
			Pack(background, config(t, 1, dir), path, func(*Packed) []btfc.Package {
				return []btfc.Package{{Series: "ubuntu/22.04/x86_64", Name: "b", Version: "1", Reason: "no kernel"}}
			})
			data, _ := os.ReadFile(path)
			return data
		}), "has packages of other series"},
		{"other media types", func(r *registry) {
			r.change(func(m map[string]any) {
				for _, l := range m["layers"].([]any) {
					l.(map[string]any)["mediaType"] = "application/vnd.oci.image.layer.v1.tar+gzip"
				}
			})
		}, "is neither a corpus nor an archive: its layers have the media type"},
		{"no layers", func(r *registry) { r.change(func(m map[string]any) { m["layers"] = []any{} }) }, "it has no layers"},
		{"digest", func(r *registry) {
			r.change(func(m map[string]any) {
				m["layers"].([]any)[0].(map[string]any)["digest"] = "sha256:../../../etc/passwd"
			})
		}, "want sha256: and 64 hexadecimal digits"},
		{"size", func(r *registry) {
			r.change(func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["size"] = 1e15 })
		}, "layer of 1000000000000000 bytes"},
		{"archive among them", func(r *registry) {
			r.change(func(m map[string]any) { m["layers"].([]any)[0].(map[string]any)["mediaType"] = artifact.ArchiveLayer })
		}, "is an archive, which 'btfgen archive pull' pulls"},
		{"manifest", func(r *registry) { write(t, r.dir, map[string][]byte{"v1": []byte("{")}) }, "manifest: unexpected end"},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			r := newRegistry(t)
			if err := os.CopyFS(r.dir, os.DirFS(pushed.dir)); err != nil {
				t.Fatal(err)
			}
			test.change(r)
			path := filepath.Join(write(t, t.TempDir(), map[string][]byte{"y.btfc": before}), "y.btfc")
			if test.name == "archive among them" {
				r.change(func(m map[string]any) { m["layers"] = m["layers"].([]any)[:1] })
			}
			if _, err := r.pull(path); err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), reference+": ") {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file changed, %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestPullDamaged pulls a layer with a damaged chunk, whose digest is right: nothing is written.
func TestPullDamaged(t *testing.T) {
	r := newRegistry(t)
	r.push(packed(t, filepath.Join(t.TempDir(), "x.btfc"), kernelFiles(t)))
	data, _, set := r.layer(0)
	data[20] ^= 1 // in the only chunk of debian/12/arm64
	set(data)
	path := filepath.Join(t.TempDir(), "y.btfc")
	if _, err := r.pull(path); err == nil || !strings.Contains(err.Error(), "kernel debian/12/arm64/6.1.0-1-arm64, at byte 5: damaged: its SHA-256") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was written")
	}
}

// TestPullNotWritten pulls when the file cannot be written in the end: the next pull has all layers.
func TestPullNotWritten(t *testing.T) {
	r := newRegistry(t)
	pushed := r.push(packed(t, filepath.Join(t.TempDir(), "x.btfc"), kernelFiles(t)))
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cfg := PullConfig{
		Path: filepath.Join(dir, "x.btfc"), Reference: reference, Cache: r.cache, Jobs: 2,
		Before: func(*Pulled) { os.RemoveAll(dir) },
	}
	if _, err := Pull(background, cfg); err == nil || !strings.HasPrefix(err.Error(), cfg.Path+": ") {
		t.Errorf("error %v, want one about %s", err, cfg.Path)
	}
	if have, _ := filepath.Glob(filepath.Join(r.cache, "*/sha256-*")); len(have) != len(pushed.Layers) {
		t.Errorf("%d layers in the cache, want %d", len(have), len(pushed.Layers))
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	r.pulled(cfg.Path)
}

// TestPullOverDamage pulls what a file has in a damaged chunk: its layer is downloaded again, and replaces it.
func TestPullOverDamage(t *testing.T) {
	r := newRegistry(t)
	files := kernelFiles(t)
	for name := range files {
		if !strings.Contains(name, "-0-") && !strings.Contains(name, "-1-") {
			delete(files, name)
		}
	}
	r.push(packed(t, filepath.Join(t.TempDir(), "x.btfc"), files))
	path := filepath.Join(t.TempDir(), "y.btfc")
	r.pulled(path)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := len(kernels(t, path))
	for _, f := range testinput.Frames(t, good) {
		bad := bytes.Clone(good)
		bad[f.Middle] ^= 1
		write(t, filepath.Dir(path), map[string][]byte{"y.btfc": bad})
		_, states := r.pulled(path)
		if name := artifact.SeriesName(artifact.SeriesOf(f.Kernel)); len(states) != 1 || states[name] != LayerChanged {
			t.Errorf("damage in %s at %d: %v", f.Kernel, f.Middle, states)
		}
		if res, states := r.pulled(path); len(states) > 0 || res.Kernels != n {
			t.Errorf("pulled again: %v, %d kernels", states, res.Kernels)
		}
	}
}

// TestPushArchive pushes and pulls an archive.
func TestPushArchive(t *testing.T) {
	r, dir := newRegistry(t), t.TempDir()
	data, err := os.ReadFile("../../../examples/go-tracer/tracer.btfa")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string][]byte{"x.btfa": data, "bad.btfa": data[:len(data)-1], "old.btfa": []byte("old")})
	if res := r.push(filepath.Join(dir, "x.btfa")); len(res.Layers) != 1 || res.Layers[0].Kernels == 0 || res.Layers[0].Digest != artifact.Digest(data) {
		t.Errorf("%+v", res)
	}
	if res := r.push(filepath.Join(dir, "x.btfa")); !res.There {
		t.Errorf("%+v", res)
	}
	for name, state := range map[string]LayerState{"new.btfa": LayerNew, "old.btfa": LayerChanged, "x.btfa": LayerThere} {
		res, _ := r.pulled(filepath.Join(dir, name))
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, data) || res.Layers[0].State != state {
			t.Errorf("%s: %+v, %d bytes, %v", name, res, len(got), err)
		}
	}
	for _, c := range []struct{ name, series, want string }{
		{"x.btfc", "", "is an archive, which 'btfgen archive pull' pulls"},
		{"x.btfa", "debian/12", "is an archive, which has no series"},
	} {
		if _, err := r.pull(filepath.Join(dir, c.name), strings.Fields(c.series)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	bad := PushConfig{Path: filepath.Join(dir, "bad.btfa"), Reference: reference, Cache: r.cache}
	if _, err := Push(background, bad); err == nil || !strings.HasPrefix(err.Error(), bad.Path+": ") {
		t.Errorf("a damaged archive: %v", err)
	}
	folder := PushConfig{Path: filepath.Join(dir, "dir.btfc"), Reference: reference, Cache: r.cache}
	if err := os.Mkdir(folder.Path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Push(background, folder); err == nil || strings.Count(err.Error(), folder.Path) != 1 {
		t.Errorf("a folder: %v", err)
	}
	_, _, set := r.layer(0)
	set(data[:len(data)-1])
	if _, err := r.pull(filepath.Join(dir, "new.btfa")); err == nil || !strings.HasPrefix(err.Error(), reference+": layer sha256:") {
		t.Errorf("a damaged layer: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "new.btfa")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	r.push(packed(t, filepath.Join(dir, "kernels.btfc"), kernelFiles(t)))
	if _, err := r.pull(filepath.Join(dir, "new.btfa")); err == nil || !strings.Contains(err.Error(), "is a corpus, which 'btfgen corpus pull' pulls") {
		t.Error(err)
	}
}
