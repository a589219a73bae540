// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestPackJobs compares the files of one, two and eight jobs, for all kernels at once and in two steps.
func TestPackJobs(t *testing.T) {
	if !raceflag.Enabled {
		slow.Skip(t)
	}
	files := make(map[string][]byte)
	many, kernels, types := 6, 12, 80
	if raceflag.Enabled {
		many, kernels, types = 3, 6, 30 // including one of the first step
	}
	for series := range many {
		for n := range kernels {
			var b strings.Builder
			for i := range types {
				fmt.Fprintf(&b, "struct s%d %d: next *s%d 0, count u32 8, data%d u8[%d] 12\n", i, 64+(n+series)/3*i%5, (i+1)%types, i%4, 4+i%(7+series))
			}
			data := testbtf.Types(t, binary.LittleEndian, b.String())
			if n == 5 {
				data = append(data, "more"...) // an unusual form
			}
			if n == 7 {
				data = files[fmt.Sprintf("d/%d/x86_64/6.1.0-3-amd64.btf", max(series-1, 0))]
			}
			files[fmt.Sprintf("d/%d/x86_64/6.1.0-%d-amd64.btf", series, n)] = data
		}
	}
	for _, name := range slices.Collect(maps.Keys(files)) {
		if !strings.Contains(name, "-2-") {
			files[strings.TrimSuffix(name, ".btf")+".config"] = []byte("CONFIG_VERSION=" + name + "\nCONFIG_BPF=y\n")
		}
	}
	files["d/9/x86_64/6.1.0-1-amd64.btf"] = []byte("damaged")
	half := make(map[string][]byte)
	for name, data := range files {
		if strings.HasPrefix(name, "d/2/") || strings.HasPrefix(name, "d/4/") {
			half[name] = data
		}
	}
	all, some := write(t, t.TempDir(), files), write(t, t.TempDir(), half)
	pack := func(jobs int, sources ...string) []byte {
		path := filepath.Join(t.TempDir(), "x.btfc")
		for _, source := range sources {
			if _, err := Pack(background, config(t, jobs, source), path, nil); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	once, twice := pack(1, all), pack(1, some, all)
	for _, jobs := range []int{2, 8} {
		if raceflag.Enabled && jobs == 2 {
			continue
		}
		if !bytes.Equal(pack(jobs, all), once) {
			t.Errorf("%d jobs make other bytes", jobs)
		}
		if !bytes.Equal(pack(jobs, some, all), twice) {
			t.Errorf("%d jobs add other bytes", jobs)
		}
	}
}

// TestPackPackages copies the packages of a file with the kernels that are left.
func TestPackPackages(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{"debian/12/x86_64/6.1.btf": blob("a"), "debian/12/x86_64/6.2.btf": blob("b")})
	first, second := filepath.Join(t.TempDir(), "a.btfc"), filepath.Join(t.TempDir(), "b.btfc")
	want := []btfc.Package{
		{Series: "debian/12/x86_64", Name: "bad", Version: "1", Reason: "no kernel"},
		{Series: "debian/12/x86_64", Name: "two", Version: "1", Kernel: kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "6.2"}},
	}
	if _, err := Pack(background, config(t, 1, src), first, func(res *Packed) []btfc.Package {
		if len(res.Keys) != 2 {
			t.Errorf("kernels %v", res.Keys)
		}
		one := want[1]
		one.Name, one.Kernel.Release = "one", "6.1"
		return append(want, one)
	}); err != nil {
		t.Fatal(err)
	}
	c, err := corpus.Open(background, []string{first}, corpus.Options{Exclude: []selection.Selector{selector(t, "6.1")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(background, walk.Config{Corpus: c, Jobs: 1}, second, nil); err != nil {
		t.Fatal(err)
	}
	f, packed, _, err := openPacked(second)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d := cmp.Diff(want, packed.Packages()); d != "" {
		t.Error(d)
	}
}

// TestPackLarge packs kernels that have to be encoded alone, and others. One that waits for memory must not stop those that it waits for.
func TestPackLarge(t *testing.T) {
	files := make(map[string][]byte)
	for n := range 8 {
		size := 1000
		if n%3 == 0 {
			size = encodeJob/encodeRatio*9/8 + n
		}
		files[fmt.Sprintf("d/1/x86_64/6.%d.0-1-amd64.btf", n)] = blob(strings.Repeat(string(rune('a'+n)), size))
	}
	dir := write(t, t.TempDir(), files)
	var all [][]byte
	for _, jobs := range []int{1, 2} {
		path := filepath.Join(t.TempDir(), "x.btfc")
		if res, err := Pack(background, config(t, jobs, dir), path, nil); err != nil || res.Added != len(files) {
			t.Fatalf("%+v, %v", res, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("two jobs make another file")
	}
}

// TestPackOverDamage adds kernels to a file with a damaged chunk. A good copy of what is damaged takes its place; without one, the error
// names file and kernel, and the file does not change.
func TestPackOverDamage(t *testing.T) {
	files := kernelFiles(t)
	for name := range files {
		if !strings.Contains(name, "5.15.0-0-") && !strings.Contains(name, "5.15.0-1-") {
			delete(files, name)
		}
	}
	dir := t.TempDir()
	path := packed(t, filepath.Join(dir, "x.btfc"), files)
	want, good := kernels(t, path), read(t, dir)["x.btfc"]
	source := write(t, t.TempDir(), files)
	other := write(t, t.TempDir(), map[string][]byte{"ubuntu/22.04/x86_64/5.15.0-9-generic.btf": alike(t, 9)})
	for _, f := range testinput.Frames(t, []byte(good)) {
		bad := []byte(good)
		bad[f.Middle] ^= 1
		write(t, dir, map[string][]byte{"x.btfc": bad})
		_, err := Pack(background, config(t, 2, other), path, nil)
		if err == nil || !strings.Contains(err.Error(), path+": kernel ubuntu/22.04/x86_64/5.15.0-") || read(t, dir)["x.btfc"] != string(bad) {
			t.Errorf("damage in %s at %d: another kernel: %v", f.Kernel, f.Middle, err)
		}
		if res, err := Pack(background, config(t, 2, source), path, nil); err != nil || len(res.Skipped) > 0 || res.Kernels != len(want) {
			t.Errorf("damage in %s at %d: good kernels: %+v, %v", f.Kernel, f.Middle, res, err)
		} else if got := kernels(t, path); !maps.Equal(got, want) {
			t.Errorf("damage in %s at %d: good kernels: got %v", f.Kernel, f.Middle, got)
		}
	}
}

// TestPackPanic packs a kernel that causes a panic, and one that does not fit into memory beside it.
func TestPackPanic(t *testing.T) {
	files := make(map[string][]byte)
	for n := range 2 {
		files[fmt.Sprintf("d/1/x86_64/6.%d.0-1-amd64.btf", n)] = blob(strings.Repeat("a", readJob/2+n))
	}
	cfg := config(t, 1, write(t, t.TempDir(), files))
	path := filepath.Join(t.TempDir(), "x.btfc")
	// If the second kernel waits for the memory of the first, synctest ends the test.
	synctest.Test(t, func(t *testing.T) {
		var first sync.Once
		p := &packer{cfg: cfg, files: cfg.Corpus.Files, path: path}
		p.targets.New = func() any {
			first.Do(func() { panic("a defect") })
			return nil
		}
		res, err := p.pack(t.Context(), 0, nil)
		if err != nil || res.Added != 1 || len(res.Skipped) != 1 || !strings.Contains(res.Skipped[0].Error(), "a defect") {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
