// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/limits"
)

// names returns what a corpus lists, relative to dir.
func names(c *Corpus, dir string) (files, skipped []string) {
	rel := func(p string) string {
		if r, err := filepath.Rel(dir, p); err == nil {
			return r
		}
		return p
	}
	for _, f := range c.Files {
		files = append(files, rel(f.Path)+" "+f.Key.String())
	}
	for _, s := range c.Skipped {
		skipped = append(skipped, rel(s.Path)+": "+s.Reason())
	}
	return files, skipped
}

func checkList(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  got  %s\n  want %s", what, strings.Join(got, "\n       "), strings.Join(want, "\n       "))
	}
}

// BTFHub's trees.
func TestOpenTree(t *testing.T) {
	txz := string(compress("xz", tarOf(member{"x.btf", blobLE})))
	dir := tree(t, map[string]string{
		"debian/11/x86_64/5.10.0-30-amd64.btf.tar.xz":       txz,
		"debian/11/x86_64/5.10.0-9-amd64.btf.tar.xz":        txz,
		"debian/11/x86_64/5.10.0-8-amd64.btf.tar.xz":        "",
		"debian/11/x86_64/5.10.0-7-amd64.failed":            "",
		"debian/11/x86_64/5.10.0-6-amd64.hasbtf":            "",
		"debian/11/arm64/5.10.0-30-arm64.btf.zst":           string(compress("zst", blobLE)),
		"debian/11/arm64/zeros.btf.tar":                     string(tarOf()),
		"debian/bullseye":                                   "->11",
		"debian/11/latest.btf.tar.xz":                       "->x86_64/5.10.0-30-amd64.btf.tar.xz",
		"debian/gone":                                       "->nowhere",
		"debian/loop":                                       "->loop",
		"debian/up":                                         "->../..",
		"debian/11/arm64/here":                              "->.",
		"android/a12-5.10-2021-09-arm64.btf.tar.xz":         txz,
		"debian/11/x86_64/5.10.0-6-amd64.btf.tar.xz":        "<html>not found</html>",
		"debian/11/x86_64/5.10.0-9-amd64.btf.tar.xz.sha256": "0 x",

		"README.md":         "# BTFHub",
		"SHA256SUMS":        "0 x",
		"scripts/update.sh": "#!/bin/sh",
		".git/objects/aa":   txz,
		"modules/debian/11/x86_64/5.10.0-30-amd64.modules.tar.xz": string(compress("xz", tarOf(member{"5.10.0-30-amd64/nf_conntrack.btf", splitLE}))),
		"modules/debian/10/x86_64/4.19.0-1-amd64.modules.tar.xz":  string(compress("xz", tarOf(member{"4.19.0-1-amd64/nf_conntrack.btf", splitLE}))),
	})
	c, kernels, errs := readAll(t, Options{}, dir)
	if len(errs) > 0 {
		t.Error(errs)
	}
	files, skipped := names(c, dir)
	checkList(t, "files", files, []string{
		"android/a12-5.10-2021-09-arm64.btf.tar.xz android/-/arm64/a12-5.10-2021-09-arm64",
		"debian/11/arm64/5.10.0-30-arm64.btf.zst debian/11/arm64/5.10.0-30-arm64",
		"debian/11/x86_64/5.10.0-30-amd64.btf.tar.xz debian/11/x86_64/5.10.0-30-amd64",
		"debian/11/x86_64/5.10.0-9-amd64.btf.tar.xz debian/11/x86_64/5.10.0-9-amd64",
	})
	checkList(t, "skipped", skipped, []string{
		"debian/11/arm64/zeros.btf.tar: empty archive, or zeros",
		"debian/11/x86_64/5.10.0-6-amd64.btf.tar.xz: not BTF, ELF, an archive or a kernel image, but an HTML page; download the file itself",
		"debian/11/x86_64/5.10.0-8-amd64.btf.tar.xz: empty file",
		"debian/gone: dangling link",
		"debian/loop: link: too many links",
		"modules/debian/10/x86_64/4.19.0-1-amd64.modules.tar.xz: module BTF without its kernel's vmlinux",
	})
	if c.Ignored != 7 {
		t.Errorf("%d files ignored", c.Ignored)
	}
	// What the selectors leave out is not missed.
	if sel, err := selection.Parse("debian=11,arm64"); err != nil {
		t.Error(err)
	} else if some, err := Open(context.Background(), []string{dir}, Options{Select: []selection.Selector{sel}}); err != nil {
		t.Error(err)
	} else {
		_, skipped = names(some, dir)
		checkList(t, "skipped of arm64", skipped, []string{
			"debian/11/arm64/zeros.btf.tar: empty archive, or zeros",
			"debian/gone: dangling link",
			"debian/loop: link: too many links",
		})
	}
	if len(kernels) != 4 || kernels[2].mods["nf_conntrack"] != string(splitLE) {
		t.Errorf("kernels: %+v", kernels)
	}
	if got := c.Files[2].files; len(got) != 2 || c.Files[2].Size != int64(2*len(txz)-len(txz))+fileSize(t, got[1].Path) {
		t.Errorf("files %v, size %d", got, c.Files[2].Size)
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

// The key does not depend on which level of the tree is the source, but comes from what the user named alone.
func TestOpenLevels(t *testing.T) {
	dir := tree(t, map[string]string{"debian/12/x86_64/6.1.0-47-amd64.btf": string(blobLE)})
	const key = "debian/12/x86_64/6.1.0-47-amd64"
	for _, sub := range []string{"", "debian", "debian/12", "debian/12/x86_64", key + ".btf"} {
		_, got, errs := readAll(t, Options{}, filepath.Join(dir, sub))
		if len(errs) > 0 || len(got) != 1 || got[0].Name != key {
			t.Errorf("%q: %+v, %v", sub, got, errs)
		}
	}
	t.Chdir(filepath.Join(dir, "debian/12"))
	for source, want := range map[string]string{
		"x86_64": "-/-/x86_64/6.1.0-47-amd64", "x86_64/6.1.0-47-amd64.btf": "-/-/-/6.1.0-47-amd64", ".": "-/-/x86_64/6.1.0-47-amd64", "../../debian": key,
	} {
		_, got, errs := readAll(t, Options{}, source)
		if len(errs) > 0 || len(got) != 1 || got[0].Key.String() != want {
			t.Errorf("%s: %+v, %v, want %s", source, got, errs, want)
		}
	}
}

// Links out of the sources are followed, each target once, but not to a directory that a source
// lies in; sources that overlap count once.
func TestOpenLinksOut(t *testing.T) {
	out := tree(t, map[string]string{"12/x86_64/6.1.btf": string(blobLE), "more/self": "->..", "6.2.btf": string(blobLE)})
	dir := tree(t, map[string]string{
		"debian":           "->" + out,
		"second":           "->" + out,
		"x/x86_64/6.2.btf": "->" + filepath.Join(out, "6.2.btf"),
		"root":             "->/",
	})
	for _, tt := range []struct{ sources, files, skipped []string }{
		{
			[]string{dir, dir, filepath.Join(dir, "x")},
			[]string{"debian/12/x86_64/6.1.btf debian/12/x86_64/6.1", "debian/6.2.btf -/-/-/6.2"},
			nil,
		},
		{
			[]string{dir, filepath.Join(dir, "debian", "12")},
			[]string{"debian/12/x86_64/6.1.btf debian/12/x86_64/6.1", "x/x86_64/6.2.btf -/-/x86_64/6.2"},
			nil,
		},
	} {
		c, err := Open(context.Background(), tt.sources, Options{})
		if err != nil {
			t.Fatal(err)
		}
		files, skipped := names(c, dir)
		for i, f := range files { // the directory's own name is no VERSION_ID
			files[i] = strings.Replace(f, filepath.Base(dir)+"/x/x86_64", "-/-/x86_64", 1)
		}
		checkList(t, "files", files, tt.files)
		checkList(t, "skipped", skipped, tt.skipped)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := tree(t, map[string]string{
		"empty/x.btf": "", "text/README": "hello", "zero/a.btf": "", "zero/b.btf": "", "none/.keep": "",
		"mod/a.btf": string(splitLE), "ok/debian/12/x86_64/6.1.btf": string(blobLE),
		"one/a.btfc": "ctfc" + strings.Repeat("x", 100) + "btfc.end", "one/b": "ctfc" + strings.Repeat("x", 100) + "btfc.end", "one/c.btfc": "ctfc",
	})
	for _, tt := range []struct {
		sources []string
		want    string
	}{
		{nil, "no kernel source given"},
		{[]string{"missing"}, "D/missing: no such file or directory"},
		{[]string{"ok", "missing"}, "D/missing: no such file or directory"},
		{[]string{"none"}, "D/none: no kernel found"},
		{[]string{"text"}, "D/text: no kernel found"},
		{[]string{"empty"}, "no kernel found: D/empty/x.btf: empty file"},
		{[]string{"empty/x.btf"}, "no kernel found: D/empty/x.btf: empty file"},
		{[]string{"zero", "text"}, "D/zero, D/text: no kernel found: 2 files skipped, first D/zero/a.btf: empty file"},
		{[]string{"mod"}, "no kernel found: D/mod/a.btf: module BTF without its kernel's vmlinux"},
		{[]string{"one/a.btfc"}, "D/one/a.btfc: does not begin as a corpus does: it may be damaged"},
		{[]string{"one/b"}, "D/one/b: does not begin as a corpus does: it may be damaged"},
		{[]string{"one/c.btfc"}, "D/one/c.btfc: does not end as a corpus does: it may have been cut short"},
		{[]string{"ok", "one/a.btfc"}, "D/one/a.btfc: does not begin as a corpus does: it may be damaged"},
		{[]string{"one"}, "D/one: no kernel found: 3 files skipped, first D/one/a.btfc: does not begin as a corpus does: it may be damaged"},
	} {
		var sources []string
		for _, s := range tt.sources {
			sources = append(sources, filepath.Join(dir, s))
		}
		_, err := Open(context.Background(), sources, Options{})
		if want := strings.ReplaceAll(tt.want, "D", dir); err == nil || err.Error() != want {
			t.Errorf("%v: got %v, want %s", tt.sources, err, want)
		}
	}
	if _, err := Open(context.Background(), []string{filepath.Join(dir, "missing")}, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(filepath.Join(dir, "ok/debian/12"), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, "ok/debian/12"), 0o700) }) // or it cannot be removed
		_, err := Open(context.Background(), []string{filepath.Join(dir, "ok")}, Options{})
		if want := "no kernel found: " + dir + "/ok/debian/12: permission denied"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Modules find their kernel in each of the layouts there are.
func TestModules(t *testing.T) {
	ko := string(compress("gz", elfFileOf(splitLE)))
	mods := string(compress("xz", tarOf(member{"6.1/", nil}, member{"6.1/b.btf", splitLE}, member{"6.1/a-x.btf", splitLE})))
	base, split := string(blobLE), string(splitLE)
	for _, tt := range []struct {
		name    string
		files   map[string]string
		sources []string // all of the directory if there are none
		want    []string // "kernel: modules"
		skipped int
	}{
		{"btfhub", map[string]string{
			"debian/12/x86_64/6.1.btf": base, "debian/12/x86_64/6.2.btf": base, "debian/12/arm64/6.1.btf": base,
			"modules/debian/12/amd64/6.1.modules.tar.xz": mods,
		}, nil, []string{"debian/12/arm64/6.1:", "debian/12/x86_64/6.1: a_x b", "debian/12/x86_64/6.2:"}, 0},
		{"btfhub, unpacked", map[string]string{
			"debian/12/x86_64/6.1.btf": base, "debian/12/x86_64/6.2.btf": base,
			"modules/debian/12/x86_64/6.1/b.btf": split, "modules/debian/12/x86_64/6.1/a-x.btf": split,
		}, nil, []string{"debian/12/x86_64/6.1: a_x b", "debian/12/x86_64/6.2:"}, 0},
		{"sysfs", map[string]string{"btf/vmlinux": base, "btf/b": split, "btf/a_x": split}, nil, []string{"D/btf/vmlinux: a_x b"}, 0},
		{"compressed beside vmlinux", map[string]string{
			"d/vmlinux.btf.xz": string(compress("xz", blobLE)), "d/b.ko.gz": ko,
		}, nil, []string{"D/d/vmlinux.btf.xz: b"}, 0},
		{"kernels beside vmlinux", map[string]string{
			"d/vmlinux.btf": base, "d/6.1.btf": base, "d/vmlinux-6.2.btf": base, "d/other.btf": base, "d/m.btf": split,
		}, nil, []string{"D/d/6.1.btf:", "D/d/vmlinux-6.2.btf:", "D/d/vmlinux.btf: m", "D/d/other.btf:"}, 0},
		{"host's own", map[string]string{
			"boot/vmlinuz-6.1": string(bzImage(vmlinux(blobLE))), "boot/vmlinuz-6.2": string(bzImage(vmlinux(blobLE))),
			"boot/initrd.img-6.1": string(compress("gz", cpioOf(member{"a.ko", splitLE}))), "boot/config-6.1": "CONFIG_X=y",
			"lib/modules/6.2/kernel/net/nf.ko.gz": ko, "lib/modules/6.2/extra/b.ko": string(elfFileOf(splitLE)),
		}, nil, []string{"D/boot/vmlinuz-6.1:", "D/boot/vmlinuz-6.2: b nf"}, 0},
		{"named one by one", map[string]string{"vml.btf": base, "m/nf.btf": split, "m/b.btf": split},
			[]string{"vml.btf", "m/b.btf", "m/nf.btf"}, []string{"D/vml.btf: b nf"}, 0},
		{"named, but whose", map[string]string{"1.btf": base, "2.btf": base, "m/nf.btf": split},
			[]string{"1.btf", "2.btf", "m/nf.btf"}, []string{"D/1.btf:", "D/2.btf:"}, 1},
		{"in a tar", map[string]string{"f.tar": string(tarOf(member{"a.btf", splitLE}, member{"vmlinux.btf", blobLE}, member{"z.btf", splitLE}))},
			nil, []string{"D/f.tar: a z"}, 0},
		{"several in a tar", map[string]string{"f.tar": string(tarOf(
			member{"6.1/vmlinux", blobLE}, member{"6.1/nf.btf", splitLE}, member{"6.2/b.btf", splitLE}, member{"6.2/vmlinux", blobLE}))},
			nil, []string{"D/f.tar!6.1/vmlinux: nf", "D/f.tar!6.2/vmlinux: b"}, 0},
		{"packages", map[string]string{
			"linux-image-unsigned-6.8.0-31-generic_6.8.0-31.31_amd64.deb": string(debOf(member{"boot/vmlinuz-6.8.0-31-generic", bzImage(vmlinux(blobLE))})),
			"linux-modules-6.8.0-31-generic_6.8.0-31.31_amd64.deb":        string(debOf(member{"lib/modules/6.8.0-31-generic/kernel/nf.ko", elfFileOf(splitLE)})),
			"linux-modules-extra-6.8.0-31-generic_6.8.0-31.31_amd64.deb":  string(debOf(member{"lib/modules/6.8.0-31-generic/kernel/b.ko", elfFileOf(splitLE)})),
			"kernel-core-6.8.5-301.fc40.x86_64.rpm":                       string(rpmOf(member{"./lib/modules/6.8.5-301.fc40.x86_64/vmlinuz", bzImage(vmlinux(blobLE))})),
			"kernel-modules-core-6.8.5-301.fc40.x86_64.rpm":               string(rpmOf(member{"./lib/modules/6.8.5-301.fc40.x86_64/kernel/nf.ko", elfFileOf(splitLE)})),
		}, nil, []string{"D/kernel-core-6.8.5-301.fc40.x86_64.rpm: nf", "D/linux-image-unsigned-6.8.0-31-generic_6.8.0-31.31_amd64.deb: b nf"}, 0},
	} {
		dir := tree(t, tt.files)
		sources := []string{dir}
		if tt.sources != nil {
			sources = nil
			for _, s := range tt.sources {
				sources = append(sources, filepath.Join(dir, s))
			}
		}
		c, got, errs := readAll(t, Options{}, sources...)
		if len(errs) > 0 || len(c.Skipped) != tt.skipped {
			t.Errorf("%s: errors %v, skipped %v", tt.name, errs, c.Skipped)
		}
		var list []string
		for _, k := range got {
			name := strings.ReplaceAll(k.Name, dir, "D")
			list = append(list, strings.TrimSpace(name+": "+strings.Join(slices.Sorted(maps.Keys(k.mods)), " ")))
		}
		slices.Sort(list)
		slices.Sort(tt.want)
		checkList(t, tt.name, list, tt.want)
	}
}

// A module that is damaged, or there twice, costs neither the kernel nor the other modules.
func TestModulesDamaged(t *testing.T) {
	dir := tree(t, map[string]string{
		"vmlinux": string(blobLE), "a.ko.gz": string(compress("gz", elfFileOf(splitLE))[:60]), "nf-x.btf": string(splitLE),
		"nf_x.btf": string(splitLE), "cut.btf": string(splitLE[:40]), "z": string(splitLE),
	})
	_, got, errs := readAll(t, Options{}, dir)
	if len(got) != 1 || len(got[0].mods) != 2 || len(errs) != 3 {
		t.Fatalf("%+v, %v", got, errs)
	}
	for i, want := range []string{"/cut.btf: btf: truncated: 40 bytes of 48", "/a.ko.gz: gzip: unexpected EOF", "/nf_x.btf: second module nf_x"} {
		if errs[i].Error() != dir+want {
			t.Errorf("%v, want %s", errs[i], want)
		}
	}
	// Modules are skipped without their kernel.
	if err := os.WriteFile(filepath.Join(dir, "vmlinux"), blobLE[:40], 0o644); err != nil {
		t.Fatal(err)
	}
	_, got, errs = readAll(t, Options{}, dir)
	if len(got) != 0 || len(errs) != 2 || errs[1].Error() != dir+"/vmlinux: btf: truncated: 40 bytes of 45" {
		t.Errorf("%+v, %v", got, errs)
	}
}

// Modules are taken if they are wanted, and not more than fit.
func TestModulesWanted(t *testing.T) {
	ko := elfFileOf(splitLE)
	members := []member{{"vmlinux", blobLE}}
	for i := range 5 {
		members = append(members, member{fmt.Sprintf("nf-%d.ko", i), ko}, member{fmt.Sprintf("x%d.btf", i), splitLE})
	}
	dir := tree(t, map[string]string{"all.tar": string(tarOf(members...)), "broken/x.tar": string(tarOf(member{"x.btf", splitLE}))})
	path := filepath.Join(dir, "all.tar")
	for text, want := range map[string]int{"all": 10, "none": 0, "nf-1,x3,x7": 2} {
		m, err := selection.ParseModules(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, errs := readAll(t, Options{Modules: m}, path); len(errs) > 0 || len(got) != 1 || len(got[0].mods) != want {
			t.Errorf("%s: %+v, %v", text, got, errs)
		}
	}
	_, got, errs := readAll(t, Options{MaxSize: 400}, path)
	if len(got) != 1 || len(got[0].mods) != 8 || len(errs) != 1 || !strings.Contains(errs[0].Error(), "later modules left out") {
		t.Errorf("small limit: %d modules, %v", len(got[0].mods), errs)
	}
}

// TestStrayModule reads a tar of many kernels with modules, and a module before them that belongs to none. The file holds as much memory as
// with one kernel.
func TestStrayModule(t *testing.T) {
	const size = 1 << 20
	kernel := slices.Concat(blobLE, make([]byte, size-len(blobLE)))
	binary.LittleEndian.PutUint32(kernel[20:], uint32(size-len(blobLE))+binary.LittleEndian.Uint32(blobLE[20:])) // the strings end with zeros
	module := slices.Concat(splitLE, make([]byte, size-len(splitLE)))
	binary.LittleEndian.PutUint32(module[20:], uint32(size-len(splitLE))+binary.LittleEndian.Uint32(splitLE[20:]))
	members := []member{{"other/6.2.0/a.btf", splitLE}}
	for i := range 20 {
		members = append(members, member{fmt.Sprintf("debian/12/x86_64/6.1.%d.btf", i), kernel})
		for j := range 4 {
			members = append(members, member{fmt.Sprintf("debian/12/x86_64/6.1.%d/m%d.btf", i, j), module})
		}
	}
	path := filepath.Join(tree(t, map[string]string{"f.tar": string(tarOf(members...))}), "f.tar")
	c, err := Open(t.Context(), []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	kernels, most := 0, int64(0)
	err = c.Files[0].Read(t.Context(), func(k *Kernel) error {
		if !bytes.Equal(k.BTF, kernel) || len(k.Modules) != 4 || !bytes.Equal(k.Modules[3].BTF, module) {
			t.Errorf("%s: another BTF, or %d modules", k.Key, len(k.Modules))
		}
		kernels++
		most = max(most, k.mem.Held())
		return nil
	})
	if kernels != 20 || !errors.Is(err, ErrNoKernel) {
		t.Errorf("%d kernels, %v", kernels, err)
	}
	if most > 2*limits.Believed {
		t.Errorf("%d bytes held for kernels of %d bytes", most, size)
	}
}
