// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// kernelCopy is a copy of a Kernel.
type kernelCopy struct {
	Kernel
	btf  []byte
	mods map[string]string
}

// readAll reads everything of a corpus and returns the errors of its files together.
func readAll(t testing.TB, opts Options, sources ...string) (*Corpus, []kernelCopy, []*Error) {
	t.Helper()
	c, err := Open(context.Background(), sources, opts)
	if err != nil {
		t.Fatal(err)
	}
	var all []kernelCopy
	var errs []*Error
	for _, f := range c.Files {
		err := f.Read(context.Background(), func(it *Kernel) error {
			k := kernelCopy{Kernel: *it, btf: bytes.Clone(it.BTF), mods: make(map[string]string)}
			for i, m := range it.Modules {
				if i > 0 && it.Modules[i-1].Name >= m.Name {
					t.Errorf("%s: module %s after %s", it.Name, m.Name, it.Modules[i-1].Name)
				}
				k.mods[m.Name] = string(m.BTF)
			}
			all = append(all, k)
			return nil
		})
		errs = append(errs, skip.Errors(err)...)
	}
	return c, all, errs
}

// tree writes files below a new directory and returns it. An entry whose value begins with "->" is
// a symbolic link.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(data, "->"); ok {
			err = os.Symlink(target, p)
		} else {
			err = os.WriteFile(p, []byte(data), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sample is one kind of source that holds the kernel blobLE, or blobBE if so marked.
type sample struct {
	name string
	data []byte
	big  bool
	arch string // Kernel.Arch
	rel  string // the release in the content
}

func samples() []sample {
	le, x86 := binary.LittleEndian, vmlinux(blobLE)
	tarred := tarOf(member{"./x.btf", blobLE})
	files := []member{
		{"./boot/vmlinuz-6.1.7-test", bzImage(withSize(compress("xz", x86)))},
		{"./usr/lib/modules/6.1.7-test/modules.order", []byte("no BTF")},
		{"./usr/lib/modules/6.1.7-test/kernel/a.ko.xz", compress("xz", elfFile(le, elf.ET_REL, elf.EM_X86_64, section{".BTF", 0, splitLE}))},
		{"./usr/lib/modules/6.1.7-test/kernel/nobtf.ko", elfFile(le, elf.ET_REL, elf.EM_X86_64)},
	}
	all := []sample{
		{name: "raw", data: blobLE},
		{name: "raw.be", data: blobBE, big: true},
		{name: "elf", data: x86, arch: "x86_64", rel: "6.1.7-test"},
		{name: "elf.be", data: elfFile(binary.BigEndian, elf.ET_EXEC, elf.EM_S390, section{".BTF", 0, blobBE}), big: true, arch: "s390x"},
		{name: "elf.compressed", data: elfFile(le, elf.ET_EXEC, elf.EM_AARCH64, compressedSection(".BTF", blobLE)), arch: "arm64"},
		{name: "raw.bz2", data: compress("bz2", blobLE)},
		{name: "raw.xz.gz", data: compress("gz", compress("xz", blobLE))},
		{name: "tar", data: tarOf(member{"d/", nil}, member{"README", []byte("hello")}, member{"d/x.btf", blobLE})},
		{name: "tar.tar", data: tarOf(member{"x.tar.xz", compress("xz", tarred)})},
		{name: "cpio", data: cpioOf(member{"x.btf", blobLE})},
		{name: "deb", data: debOf(files...), arch: "x86_64", rel: "6.1.7-test"},
		{name: "rpm", data: rpmOf(files...), arch: "x86_64", rel: "6.1.7-test"},
		{name: "bzImage.plain", data: bzImage(x86), arch: "x86_64", rel: "6.1.7-test"},
		{name: "arm64", data: arm64Image(blobLE), arch: "arm64", rel: "6.1.7-test"},
		{name: "arm64.gz", data: compress("gz", arm64Image(blobLE)), arch: "arm64", rel: "6.1.7-test"},
		{name: "riscv64", data: memoryImage("RSC\x05", 0x38, blobLE), arch: "riscv64", rel: "6.1.7-test"},
		{name: "memory", data: memoryImage("", 0, blobLE), rel: "6.1.7-test"},
		{name: "s390.plain", data: s390Image(memoryImage("", 0, blobBE)), big: true, arch: "s390x", rel: "6.1.7-test"},
	}
	for _, k := range []string{"xz", "gz", "zst", "lz4", "lz4legacy", "lzma"} {
		all = append(all,
			sample{name: "raw." + k, data: compress(k, blobLE)},
			sample{name: "elf." + k, data: compress(k, x86), arch: "x86_64", rel: "6.1.7-test"},
			sample{name: "tar." + k, data: compress(k, tarred)},
			sample{name: "bzImage." + k, data: bzImage(withSize(compress(k, x86))), arch: "x86_64", rel: "6.1.7-test"},
			sample{name: "zboot." + k, data: zboot(compress(k, arm64Image(blobLE))), arch: "arm64", rel: "6.1.7-test"},
		)
		if k == "lzma" {
			continue // has no magic to search for
		}
		all = append(all,
			sample{name: "s390." + k, data: s390Image(compress(k, memoryImage("", 0, blobBE))), big: true, arch: "s390x", rel: "6.1.7-test"},
			sample{name: "zImage." + k, data: zImage(compress(k, memoryImage("", 0, blobLE))), arch: "arm", rel: "6.1.7-test"},
		)
	}
	return all
}

// Every kind of source gives the same BTF, under a name without a key.
func TestReadEveryKind(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, sm := range samples() {
		dir := tree(t, map[string]string{"f": string(sm.data)})
		path := filepath.Join(dir, "f")
		_, got, errs := readAll(t, Options{}, path)
		if len(errs) > 0 || len(got) != 1 {
			t.Errorf("%s: %d kernels, errors %v", sm.name, len(got), errs)
			continue
		}
		want := blobLE
		if sm.big {
			want = blobBE
		}
		k := got[0]
		if !bytes.Equal(k.btf, want) {
			t.Errorf("%s: got %q", sm.name, k.btf)
		}
		if k.Arch != sm.arch || k.Key.Arch != sm.arch {
			t.Errorf("%s: architecture %q, %q, want %q", sm.name, k.Arch, k.Key.Arch, sm.arch)
		}
		if sm.rel != "" && k.Key.Release != sm.rel {
			t.Errorf("%s: release %q, want %q", sm.name, k.Key.Release, sm.rel)
		}
		if k.Name != path || !strings.HasPrefix(k.Path, path) || k.SourceSize != int64(len(sm.data)) {
			t.Errorf("%s: name %s, path %s, size %d", sm.name, k.Name, k.Path, k.SourceSize)
		}
		image := !slices.Contains([]string{"raw", "elf", "tar", "cpio"}, strings.Split(sm.name, ".")[0])
		if image != (k.From == btfc.HasBTF) {
			t.Errorf("%s: of an image: %q", sm.name, k.From)
		}
		if pkg := sm.name == "deb" || sm.name == "rpm"; pkg != (k.mods["a"] == string(splitLE)) {
			t.Errorf("%s: modules %q", sm.name, k.mods)
		}
	}
}

// checkError checks that an error is one line that begins with the file.
func checkError(t *testing.T, what, path string, err error) {
	t.Helper()
	text := err.Error()
	if !strings.HasPrefix(text, path) || strings.Contains(text, "\n") || strings.Count(text, path) != 1 {
		t.Errorf("%s: error %q", what, text)
	}
}

// A file cut off or with a flipped bit gives the right BTF or a one-line error, or both where an
// archive's end is damaged, and no panic.
func TestReadDamaged(t *testing.T) {
	if !raceflag.Enabled {
		slow.Skip(t)
	}
	for _, sm := range samples() {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		try := func(what string, data []byte) {
			t.Helper()
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			c, err := Open(context.Background(), []string{path}, Options{MaxSize: 1 << 20})
			if err != nil {
				reason, ok := strings.CutPrefix(err.Error(), "no kernel found: ")
				if !ok {
					t.Errorf("%s: open: %v", what, err)
				}
				checkError(t, what, path, errors.New(reason))
				return
			}
			n := 0
			err = c.Files[0].Read(context.Background(), func(it *Kernel) error {
				n++
				if _, err := sniff.IsSplit(it.BTF); err != nil {
					t.Errorf("%s: yielded %v", what, err)
				}
				return nil
			})
			if n == 0 && err == nil {
				t.Errorf("%s: neither kernel nor error", what)
			}
			for _, e := range skip.Errors(err) {
				checkError(t, what, path, e)
			}
		}
		places := 20
		switch {
		case raceflag.Enabled:
			places = 2
		case slow.Night():
			places = 40
		}
		step := max(len(sm.data)/places, 1)
		for i := 0; i < len(sm.data); i += step {
			try(sm.name+" cut", sm.data[:i])
			flipped := bytes.Clone(sm.data)
			flipped[i] ^= 0x10
			try(sm.name+" flipped", flipped)
		}
	}
}

// Truncated compressed data is an error even where what came out looks complete.
func TestReadTruncatedStream(t *testing.T) {
	for _, k := range []string{"xz", "gz", "zst", "lzma"} {
		data := compress(k, tarOf(member{"x.btf", blobLE}))
		path := filepath.Join(tree(t, map[string]string{"f": string(data[:len(data)-6])}), "f")
		_, got, errs := readAll(t, Options{}, path)
		if len(got) > 0 || len(errs) != 1 {
			t.Errorf("%s: %d kernels, errors %v", k, len(got), errs)
			continue
		}
		checkError(t, k, path+": "+k[:2], errs[0])
	}
}

// TestFirst checks that File.First yields the first kernel of any file and reads no further: the streams end too early.
func TestFirst(t *testing.T) {
	for _, k := range []string{"", "xz", "gz", "zst"} {
		data := tarOf(member{"x.btf", blobLE}, member{"y.btf", blobBE}, member{"m.btf", splitLE}, member{"big", noise(1 << 20)})
		if k != "" {
			data = compress(k, data)
		}
		c, err := Open(t.Context(), []string{filepath.Join(tree(t, map[string]string{"f": string(data[:len(data)-6])}), "f")}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = c.Files[0].First(t.Context(), func(btf []byte) { got = append(got, string(btf)) })
		if err != nil || len(got) != 1 || got[0] != string(blobLE) {
			t.Errorf("%q: %d kernels, error %v", k, len(got), err)
		}
	}
}

// One bad member costs neither the others nor their modules.
func TestReadBadMember(t *testing.T) {
	bad := bytes.Clone(blobLE)
	bad[4] = 0xff
	data := tarOf(
		member{"debian/12/x86_64/6.1.0-1-amd64.btf", blobLE},
		member{"debian/12/x86_64/6.1.0-2-amd64.btf", bad},
		member{"debian/12/x86_64/6.1.0-3-amd64.btf.xz", compress("xz", blobLE)[:50]},
		member{"debian/12/x86_64/6.1.0-4-amd64.btf", nil},
		member{"debian/12/x86_64/README.md", []byte("hello")},
		member{"debian/12/s390x/6.1.0-5-s390x.btf.zst", compress("zst", blobBE)},
		member{"debian/12/s390x/6.1.0-5-s390x/nf.btf", splitLE},
		member{"debian/12/s390x/6.1.0-5-s390x/bad.btf", bad},
	)
	path := filepath.Join(tree(t, map[string]string{"all.tar": string(data)}), "all.tar")
	_, got, errs := readAll(t, Options{}, path)
	if len(got) != 2 || len(errs) != 4 {
		t.Fatalf("%d kernels, errors %v", len(got), errs)
	}
	want := kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "6.1.0-1-amd64"}
	if got[0].Key != want || got[0].Name != want.String() || got[0].SourceSize != int64(len(data)) {
		t.Errorf("first: %+v", got[0].Kernel)
	}
	if got[1].Name != "debian/12/s390x/6.1.0-5-s390x" || got[1].mods["nf"] != string(splitLE) || got[1].SourceSize != 0 {
		t.Errorf("second: %+v", got[1].Kernel)
	}
	for i, m := range []string{"x86_64/6.1.0-2-amd64.btf: btf: header: hdr_len 255", "x86_64/6.1.0-3-amd64.btf.xz: xz: ", "x86_64/6.1.0-4-amd64.btf: empty", "bad.btf: btf: "} {
		checkError(t, m, path+"!debian/12/", errs[i])
		if !strings.Contains(errs[i].Error(), m) {
			t.Errorf("error %d: %v, want %s", i, errs[i], m)
		}
	}
}

func TestReadErrors(t *testing.T) {
	le := binary.LittleEndian
	for _, tt := range []struct{ name, data, want string }{
		{"text", "just text", "f: not BTF, ELF, an archive or a kernel image"},
		{"elf without BTF", string(elfFile(le, elf.ET_EXEC, elf.EM_X86_64)), "f: elf: no .BTF section"},
		{"bpf object without BTF", string(elfFile(le, elf.ET_REL, elf.EM_BPF)), "f: elf: no .BTF section"},
		{"own base", string(elfFile(le, elf.ET_REL, elf.EM_X86_64, section{".BTF", 0, splitLE}, section{".BTF.base", 0, blobLE})), "f: module BTF without its kernel's vmlinux"},
		{"empty in gz", string(compress("gz", nil)), "f: empty file"},
		{"empty tar", string(tarOf()), "f: empty archive, or zeros"},
		{"empty tar.xz", string(compress("xz", tarOf())), "f: empty archive, or zeros"},
		{"tar of nothing", string(tarOf(member{"a", []byte("a")})), "f: holds no BTF"},
		{"tar of an empty file", string(tarOf(member{"a.btf", nil})), "f!a.btf: empty file"},
		{"odd name", string(tarOf(member{"a\nb.btf", nil})), `f!"a\nb.btf": empty file`},
		{"module alone in tar", string(tarOf(member{"a.btf", splitLE})), "f!a.btf: module BTF without its kernel's vmlinux"},
		{"modules alone in tar", string(tarOf(member{"a.btf", splitLE}, member{"b.btf", splitLE})), "f!a.btf: module BTF without its kernel's vmlinux, and 1 more"},
		{"zImage without BTF", string(zImage(compress("gz", noise(100000)))), "f: image: no BTF in it; " + debugPackages},
		{"s390 without BTF", string(s390Image(nil)), "f: no BTF in it; " + debugPackages},
		{"stripped vmlinux", string(elfFile(le, elf.ET_EXEC, elf.EM_X86_64, section{"__ksymtab", 0, []byte("x")})), "f: elf: no .BTF section; " + debugPackages},
		{"bzImage of lzo", string(bzImage([]byte("\x89LZO\x00\r\n\x1a\n"))), "f: image: compressed with lzo, which is not supported"},
		{"bzImage without BTF", string(bzImage(compress("gz", elfFile(le, elf.ET_EXEC, elf.EM_X86_64)))), "f: elf: no .BTF section; " + debugPackages},
		{"ar without data", "!<arch>\n", "f: deb: no data.tar member"},
		{"btf cut off", string(blobLE[:30]), "f: btf: truncated: 30 bytes of 45"},
		{"strings do not end", string(append(bytes.Clone(blobLE[:44]), 'x')), "f: btf: string section does not end"},
	} {
		path := filepath.Join(tree(t, map[string]string{"f": tt.data}), "f")
		c, err := Open(context.Background(), []string{path}, Options{})
		if err != nil {
			if !strings.HasSuffix(err.Error(), tt.want[1:]) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
			continue
		}
		err = c.Files[0].Read(context.Background(), func(it *Kernel) error {
			t.Errorf("%s: yielded %s", tt.name, it.Path)
			return nil
		})
		if err == nil || err.Error() != filepath.Dir(path)+"/"+tt.want {
			t.Errorf("%s: error %v, want %s", tt.name, err, tt.want)
		}
	}
}

// A BPF object that the user names is an error. In a tree it is ignored, unless its name says BTF.
func TestReadObject(t *testing.T) {
	le := binary.LittleEndian
	object := string(elfFile(le, elf.ET_REL, elf.EM_BPF, section{".BTF", 0, blobLE}, section{".BTF.ext", 0, []byte("unread")}))
	dir := tree(t, map[string]string{
		"x.bpf.o": object, "y.bpf.o.xz": string(compress("xz", []byte(object))), "5.4.0.btf": string(blobLE),
	})
	for _, name := range []string{"x.bpf.o", "y.bpf.o.xz"} {
		_, got, errs := readAll(t, Options{}, filepath.Join(dir, name))
		if len(errs) > 0 || len(got) != 1 || !bytes.Equal(got[0].btf, blobLE) || got[0].Arch != "" {
			t.Errorf("%s: %+v, errors %v", name, got, errs)
		}
	}
	c, got, errs := readAll(t, Options{}, dir)
	if len(got) != 1 || filepath.Base(got[0].Path) != "5.4.0.btf" || c.Ignored != 1 || len(c.Skipped) > 0 {
		t.Errorf("tree: %+v, %d ignored, skipped %v", got, c.Ignored, c.Skipped)
	}
	if want := "y.bpf.o.xz: elf: a BPF object, not a kernel"; len(errs) != 1 || !strings.HasSuffix(errs[0].Error(), want) {
		t.Errorf("tree: errors %v, want %s", errs, want)
	}
}

// What decompresses to too much is refused, at any depth, and so is what nests without end.
func TestReadLimits(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	zeros := make([]byte, 8<<20)
	big := append(bytes.Clone(blobLE[:24]), zeros...)
	nested := blobLE
	for range 2 * limits.Nesting {
		nested = compress("gz", nested)
	}
	unpacked := 300 << 20
	if raceflag.Enabled {
		unpacked = 30 << 20
	}
	bomb := compress("gz", compress("gz", make([]byte, unpacked)))
	for _, tt := range []struct {
		name string
		data []byte
		want string
	}{
		{"raw", big, "f: btf: larger than the limit of 1 MiB"},
		{"gz", compress("gz", big), "f: btf: larger than the limit of 1 MiB"},
		{"xz", compress("xz", big), "f: btf: larger than the limit of 1 MiB"},
		{"elf", compress("zst", elfFile(binary.LittleEndian, elf.ET_EXEC, elf.EM_X86_64, section{".data", 0, zeros})), "f: elf: larger than the limit of 1 MiB"},
		{"tar", tarOf(member{"a.btf", big}), "f!a.btf: btf: larger than the limit of 1 MiB"},
		{"image", append(arm64Image(blobLE), zeros...), "f: image: larger than the limit of 1 MiB"},
		{"payload", bzImage(compress("xz", append(vmlinux(blobLE), zeros...))), "f: image: xz: larger than the limit of 1 MiB"},
		{"tar behind a huge member", compress("gz", tarOf(member{"a", make([]byte, 40<<20)}, member{"b", blobLE})), "f: gzip: unpacks to more than "},
		{"bomb", bomb, "f: empty archive, or zeros"},
		{"nested", nested, "f: nested more than 10 deep"},
	} {
		path := filepath.Join(tree(t, map[string]string{"f": string(tt.data)}), "f")
		_, got, errs := readAll(t, Options{MaxSize: 1 << 20}, path)
		if len(got) > 0 || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), filepath.Dir(path)+"/"+tt.want) {
			t.Errorf("%s: %d kernels, errors %v, want %s", tt.name, len(got), errs, tt.want)
		}
	}
}

func TestReadStops(t *testing.T) {
	path := filepath.Join(tree(t, map[string]string{
		"f": string(tarOf(member{"1.btf", blobLE}, member{"2.btf", blobLE}, member{"3.btf", blobLE})),
	}), "f")
	c, err := Open(context.Background(), []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, stop := 0, errors.New("enough")
	err = c.Files[0].Read(context.Background(), func(*Kernel) error {
		n++
		return stop
	})
	if n != 1 || err != stop {
		t.Errorf("after an error: %d kernels, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	err = c.Files[0].Read(ctx, func(*Kernel) error {
		n++
		cancel()
		return nil
	})
	if n != 1 || err != context.Canceled {
		t.Errorf("after a cancel: %d kernels, %v", n, err)
	}
	if _, err := Open(ctx, []string{filepath.Dir(path)}, Options{}); err != context.Canceled {
		t.Errorf("open: %v", err)
	}
	if _, err := c.Files[0].Sums(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("hash: %v", err)
	}
}

// Every file of a kernel is hashed, so that a change in one of them shows.
func TestSums(t *testing.T) {
	sums := make(map[string]string)
	for name, files := range map[string]map[string]string{
		"kernel":        {"vmlinux": string(blobLE)},
		"other kernel":  {"vmlinux": string(blobBE)},
		"with module":   {"vmlinux": string(blobLE), "a": string(splitLE)},
		"another":       {"vmlinux": string(blobLE), "a": string(append(bytes.Clone(splitLE), 0))},
		"two of them":   {"vmlinux": string(blobLE), "a": string(splitLE), "b": string(splitLE)},
		"the other one": {"vmlinux": string(blobBE), "a": string(splitLE)},
	} {
		c, err := Open(context.Background(), []string{tree(t, files)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Files[0].Sums(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != len(files) {
			t.Errorf("%s: %d hashes of %d files", name, len(all), len(files))
		}
		sum := fmt.Sprintf("%x", all)
		if other, dup := sums[sum]; dup {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		sums[sum] = name
		if again, err := c.Files[0].Sums(context.Background()); err != nil || fmt.Sprintf("%x", again) != sum {
			t.Errorf("%s: %s, then %x, %v", name, sum, again, err)
		}
	}
}

// The key and name of a kernel follow from the tree's path, the member's and the content.
func TestReadKeys(t *testing.T) {
	two := func(a, b string) string { return string(tarOf(member{a, blobLE}, member{b, blobLE})) }
	image := bzImage(vmlinux(blobLE))
	for _, tt := range []struct {
		path, data string
		want       []string
	}{
		{"debian/12/x86_64/6.1.btf", string(vmlinux(blobLE)), []string{"debian/12/x86_64/6.1"}},
		{"debian/12/x86_64/6.1.btf.tar.xz", string(tarOf(member{"other.btf", blobLE})), []string{"debian/12/x86_64/6.1"}},
		{"debian/12/x86_64/6.1.btf.tar.xz", two("6.1.btf", "6.2.btf"), []string{"debian/12/x86_64/6.1", "debian/12/x86_64/6.2"}},
		{"debian/12/x86_64/vmlinux.btf", string(blobLE), []string{"debian/12/x86_64/vmlinux"}},
		{"debian/12/x86_64/vmlinuz", string(image), []string{"debian/12/x86_64/6.1.7-test"}},
		{"debian/12/amd64/linux-image-6.1.7-test_1_amd64.deb", string(debOf(member{"./boot/vmlinuz-6.1.7-test", image})), []string{"debian/12/x86_64/6.1.7-test"}},
		{"p/linux-image-6.1.7-test_1_amd64.deb", string(debOf(member{"./boot/vmlinuz-6.1.7-test", image})), []string{"PATH"}},
		{"p/all.tar", two("debian/12/x86_64/6.1.btf", "debian/12/x86_64/6.2.btf"), []string{"debian/12/x86_64/6.1", "debian/12/x86_64/6.2"}},
		{"p/all.tar", two("6.1.btf", "6.2.btf"), []string{"PATH!6.1.btf", "PATH!6.2.btf"}},
		{"p/evil.tar", two("../../debian/12/x86_64/../../x.btf", "debian/../x86_64/\x01.btf"), []string{"PATH!debian/x.btf", `PATH!"x86_64/\x01.btf"`}},
	} {
		path := filepath.Join(tree(t, map[string]string{tt.path: tt.data}), tt.path)
		_, got, errs := readAll(t, Options{}, path)
		if len(errs) > 0 {
			t.Error(errs)
		}
		var names []string
		for _, k := range got {
			names = append(names, strings.Replace(k.Name, path, "PATH", 1))
			if err := k.Key.Validate(); err != nil {
				t.Error(err)
			}
		}
		checkList(t, tt.path, names, tt.want)
	}
}

// A hole in a tar's member counts like what comes out of a decoder.
func TestReadHole(t *testing.T) {
	ar := fmt.Appendf([]byte("!<arch>\n"), "%-16s%-12d%-6d%-6d%-8s%-10d`\n", "odd", 0, 0, 0, "100644", 1<<30-68)
	path := filepath.Join(tree(t, map[string]string{"f": string(sparseTar("x.deb", 1<<30, piece{0, string(ar)}))}), "f")
	_, got, errs := readAll(t, Options{MaxSize: 1 << 20}, path)
	if len(got) > 0 || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), path+"!x.deb: deb: unpacks to more than ") {
		t.Errorf("%d kernels, errors %v", len(got), errs)
	}
}
