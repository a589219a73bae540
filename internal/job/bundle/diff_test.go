// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestDiff compares archives in every format that keep some kernels and objects, and change, gain and lose others.
func TestDiff(t *testing.T) {
	btfs := testminimized.Kernels(t)
	kernels := func(list ...string) (all []archive.Kernel) {
		for _, s := range list {
			release, which, _ := strings.Cut(s, "=")
			k := kernel.Key{ID: "d", VersionID: "1", Arch: "x86_64", Release: release}
			all = append(all, archive.Kernel{Key: k, BTF: btfs[int(which[0]-'0')].BTF})
		}
		return all
	}
	object := func(name, content, fingerprint string, arches ...string) archive.Object {
		o := archive.NewObject(name, []byte(content), arches...)
		o.Fingerprint = []byte(fingerprint)
		return o
	}
	before := archive.Info{Tool: "t", Objects: []archive.Object{
		object("code", "1", "aaaa"), object("gone", "1", "bbbb"), object("machines", "1", "cccc", "arm64"), object("relos", "1", "dddd"),
		object("same", "1", "eeee"), object("twice", "1", "ffff"), object("twice", "2", "gggg"),
	}}
	after := archive.Info{Tool: "t", Objects: []archive.Object{
		object("code", "2", "aaaa"), object("machines", "1", "cccc", "x86_64"), object("new", "1", "bbbb"), object("relos", "2", "xxxx"),
		object("same", "1", "eeee"), object("twice", "2", "gggg"), object("twice", "3", "ffff"),
	}}
	size := func(i int) int { return len(btfs[i].BTF) }
	wantKernels := fmt.Sprintf("gained 6.10:0/%d 9:0/%d lost 6.1:%d/0 changed 6.9:%d/%d same 1", size(0), size(1), size(0), size(0), size(2))
	const wantObjects = "gained new lost gone changed code:same machines:same relos:other twice:same same 2"
	for _, suffix := range []string{"", NativeSuffix, ".tar.gz"} {
		dir := t.TempDir()
		var names []string
		for i, kernels := range [][]archive.Kernel{kernels("6.1=0", "6.2=1", "6.9=0"), kernels("6.9=2", "9=1", "6.10=0", "6.2=1")} {
			names = append(names, filepath.Join(dir, []string{"old", "new"}[i]+suffix))
			o := Output{Path: names[i]}
			var err error
			if o.Format, err = FormatOf(o.Path); err == nil {
				_, err = o.Write(t.Context(), []archive.Info{before, after}[i], kernels)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d, err := Diff(t.Context(), names[0], names[1])
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for what, list := range slices.All([][]KernelChange{d.Kernels.Gained, d.Kernels.Lost, d.Kernels.Changed}) {
			got = append(got, []string{"gained", "lost", "changed"}[what])
			for _, k := range list {
				got = append(got, fmt.Sprintf("%s:%d/%d", k.Key.Release, k.OldBytes, k.NewBytes))
			}
		}
		if text := fmt.Sprintf("%s same %d", strings.Join(got, " "), d.Kernels.Same); text != wantKernels {
			t.Errorf("%s: %s, want %s", suffix, text, wantKernels)
		}
		if suffix == ".tar.gz" {
			if d.Objects != nil {
				t.Errorf("%s: %+v", suffix, d.Objects)
			}
			continue
		}
		got = nil
		for what, list := range slices.All([][]archive.Object{d.Objects.Gained, d.Objects.Lost}) {
			got = append(got, []string{"gained", "lost"}[what])
			for _, o := range list {
				got = append(got, o.Name)
			}
		}
		got = append(got, "changed")
		for _, o := range d.Objects.Changed {
			got = append(got, o.Name+":"+o.Relocations)
		}
		if text := fmt.Sprintf("%s same %d", strings.Join(got, " "), d.Objects.Same); text != wantObjects {
			t.Errorf("%s: %s, want %s", suffix, text, wantObjects)
		}
		if d.Old.Kernels != 3 || d.New.Kernels != 4 || d.Old.Layouts != 2 || d.New.Layouts != 3 || d.New.Objects != 7 || d.Old.Archive != names[0] {
			t.Errorf("%s: %+v, %+v", suffix, d.Old, d.New)
		}
	}
}

// TestOutside reads archives with names that lead out of a directory. They are refused before anything is written.
func TestOutside(t *testing.T) {
	for _, name := range []string{"../x.btf", "/x.btf", "a/../../../x/y/z.btf", "debian/../../../x86_64/6.1.btf", `..\x/y/z/x.btf`, "debian/12/x86_64/...btf"} {
		path := filepath.Join(t.TempDir(), "x.tar.gz")
		o := Output{Path: path, Format: TarGz}
		if _, err := o.writeFile(func(w io.Writer) error { return o.writeTar(w, []File{{Name: name, Data: []byte("x")}}) }); err != nil {
			t.Fatal(err)
		}
		if _, kernels, err := ReadKernels(t.Context(), path); err == nil {
			t.Errorf("%s: read %v", name, kernels)
		}
	}
}
