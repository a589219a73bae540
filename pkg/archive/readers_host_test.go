// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// compareHost checks that Go and a reader return the same key, or both an error.
func compareHost(t *testing.T, c *readers.Reader, name string, opts kernel.HostOptions) {
	t.Helper()
	want, err := kernel.Host(opts)
	got, status, why := c.Host(t, opts)
	switch {
	case (err == nil) != (status == readers.OK):
		t.Errorf("%s: Go says %v, the reader says %q (%d)", name, err, why, status)
	case err != nil && (status != readers.NoHost || !strings.HasPrefix(why, "host: ")):
		t.Errorf("%s: the reader says %q (%d)", name, why, status)
	case err == nil && !cmp.Equal(got, want):
		t.Errorf("%s: Go says %s, the reader says %s", name, want, got)
	}
}

// write creates a file, or a symbolic link for text that begins with "-> ".
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	var err error
	if to, ok := strings.CutPrefix(text, "-> "); ok {
		err = os.Symlink(to, path)
	} else {
		err = os.WriteFile(path, []byte(text), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The readers agree on the os-release files of distributions, and on odd ones.
func TestReadersOSRelease(t *testing.T) {
	slow.Nightly(t)
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		files, err := filepath.Glob("../../pkg/kernel/testdata/os-release/*")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files (%v)", err)
		}
		for _, f := range files {
			compareHost(t, c, f, kernel.HostOptions{OSRelease: f, Release: "6.1.0", Arch: "amd64"})
		}
		dir := t.TempDir()
		for _, text := range []string{
			"", "\n", "ID", "ID=", `ID=""`, "ID=debian", "ID=debian\r\n", "ID=Debian\nVERSION_ID=12\n", "  ID=debian  ",
			`ID="debian"`, `ID='debian'`, `ID=debian # a comment`, `ID="a b"`, `ID="a\"b\$c\\d\e"`, `ID='a\"b'`, `ID=a\ b`,
			`ID="a"'b'c`, `ID="open`, `ID='open  `, `ID=\`, `ID="\`, "ID=first\nID=last", "ID=../..\nID=last", "ID=debian\n#ID=other",
			"ID=debian\nID =other\n=x\nnonsense\n9ID=x\nIDX=y\nXID=z", "VERSION_ID=12", "VERSION_ID='12'\t#\nNAME=x",
			"ID=..", "ID=a/b", "ID=a\\b", "ID='a\\b'", "ID=a\tb", "ID='a\tb'", "ID=a\x00b", "ID=a\x7f", "ID=\xff\xfe", "ID=Ärger",
			"ID=KELVIN\u212a", "\u00a0ID=x\u00a0", "\vID=x\f", "ID=x\u0085", "VERSION_ID=\"\"\nID=x",
			"ID=x\nVERSION_ID=-", "ID=x\nVERSION_ID=a/b", "ID=x\nVERSION_ID=..", "ID=x\nVERSION_ID=" + strings.Repeat("1", 256), "ID=x\nVERSION_ID=a\x00b",
			"ID=x\nID_LIKE='a  b a X Debian'\nVERSION_ID=1", "ID=x\nID_LIKE=a/b", "ID=x\nID_LIKE='- a .. .'", "ID=x\nID_LIKE='a\tb'",
			"ID=x\nID_LIKE='1 2 3 4 5 6 7 8 9 10'", "ID=x\nID_LIKE='" + strings.Repeat("a ", 127) + "b'", "ID=x\nID_LIKE='" + strings.Repeat("a ", 128) + "b'",
			"ID=x\nID_LIKE='amazon \xff amzn'", "ID=Amazon\nID_LIKE=amzn", "ID_LIKE='linux debian'\nDEBIAN_CODENAME=jammy\nUBUNTU_CODENAME=bookworm",
			"ID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=jammy\nDEBIAN_CODENAME=bookworm", "ID=x\nUBUNTU_CODENAME=jammy\nUBUNTU_CODENAME=focal",
			"ID=cos\nBUILD_ID=1", "ID=cos\nVERSION_ID=1\nBUILD_ID=2", "ID=COS\nVERSION_ID=1\nBUILD_ID=a/b", "ID=cos\nVERSION_ID=1\nBUILD_ID=",
			"ID=openwrt\nVERSION_ID=1\nOPENWRT_BOARD=a/b/c", "ID=openwrt\nVERSION_ID=1\nOPENWRT_BOARD=-", "ID=openwrt\nVERSION_ID=1\nOPENWRT_BOARD=/",
			"ID=cos\nVERSION_ID=" + strings.Repeat("1", 250) + "\nBUILD_ID=1234", "ID=cos\nVERSION_ID=" + strings.Repeat("1", 250) + "\nBUILD_ID=12345",
			"ID=" + strings.Repeat("a", 255), "ID=" + strings.Repeat("a", 256), strings.Repeat("#", 1<<20), strings.Repeat("#", 1<<20+1),
			strings.Repeat("ID=a\n", 20000) + "ID=b",
		} {
			path := filepath.Join(dir, "os-release")
			write(t, path, text)
			compareHost(t, c, strings.ToValidUTF8(text[:min(len(text), 60)], "?"), kernel.HostOptions{OSRelease: path, Release: "6.1.0", Arch: "amd64"})
		}
	})
}

// The readers follow the same links, and never leave a container's root.
func TestReadersRoot(t *testing.T) {
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		outside := filepath.Join(t.TempDir(), "os-release")
		write(t, outside, "ID=container\n")
		for name, files := range map[string]map[string]string{
			"etc":            {"etc/os-release": "ID=a\nVERSION_ID=1\n", "usr/lib/os-release": "ID=b\n"},
			"usr":            {"usr/lib/os-release": "ID=b\n"},
			"link":           {"etc/os-release": "-> ../usr/lib/os-release", "usr/lib/os-release": "ID=b\n"},
			"links":          {"etc": "-> ./a//b/", "a/b/os-release": "-> ../../usr/./lib/x", "usr/lib/x": "-> y", "usr/lib/y": "ID=c"},
			"absolute":       {"etc/os-release": "-> /etc/static/os-release", "etc/static": "-> /store/1", "store/1/os-release": "ID=nixos\n"},
			"outside":        {"etc/os-release": "-> " + outside, "usr/lib/os-release": "ID=b\n"},
			"above":          {"etc/os-release": "-> ../../../../usr/lib/x", "usr/lib/x": "ID=x\n"},
			"loop":           {"etc/os-release": "-> os-release", "usr/lib/os-release": "ID=b\n"},
			"dangling":       {"etc/os-release": "-> none", "usr/lib/os-release": "-> none"},
			"no directory":   {"etc/os-release": "-> file/x", "etc/file": "", "usr/lib/os-release": "ID=b\n"},
			"directory":      {"etc/os-release/x": "", "usr/lib/os-release": "ID=b\n"},
			"root":           {"etc/os-release": "-> /"},
			"long":           {"etc/os-release": "-> " + strings.Repeat("./", 2000) + "x", "etc/x": "ID=x\n"},
			"nothing":        {"etc/passwd": ""},
			"file for a dir": {"etc": "ID=x\n"},
		} {
			root := t.TempDir()
			for path, text := range files {
				write(t, filepath.Join(root, path), text)
			}
			compareHost(t, c, name, kernel.HostOptions{Root: root, Release: "6.1", Arch: "aarch64"})
		}
		compareHost(t, c, "none", kernel.HostOptions{Root: filepath.Join(t.TempDir(), "none"), Release: "6", Arch: "x86_64"})
		compareHost(t, c, "no file", kernel.HostOptions{OSRelease: filepath.Join(t.TempDir(), "none"), Release: "6", Arch: "x86_64"})
		compareHost(t, c, "this host", kernel.HostOptions{})
		for _, release := range []string{"6/1", "..", ".", "6\n", "6 1", strings.Repeat("6", 255), strings.Repeat("6", 256)} {
			compareHost(t, c, release, kernel.HostOptions{Root: t.TempDir(), Release: release, Arch: "x86_64"})
			compareHost(t, c, release, kernel.HostOptions{Root: t.TempDir(), Release: "6", Arch: release})
		}
	})
}

// tableWords returns the words in the tables of rules, of the readers in Go and C.
func tableWords(t *testing.T) (all []string) {
	t.Helper()
	for _, file := range []string{"../../pkg/kernel/rules.go", "../../lib/c/btfa.c"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range strings.Split(string(text), `"`) {
			if i%2 == 1 && s != "" && len(s) <= 20 && !strings.ContainsAny(s, "\n%/\\ ") && s != "-" && s != "." && s != ".." {
				all = append(all, s)
			}
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) < 100 {
		t.Fatalf("%d words", len(all))
	}
	return all
}

// All readers canonicalize all spellings in the same way.
func TestReadersCanonical(t *testing.T) {
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		for _, s := range tableWords(t) {
			for _, s := range []string{s, strings.ToUpper(s), s + "x"} {
				k := kernel.Key{ID: s, VersionID: s, Arch: s, Release: s}
				if got := c.Canonical(t, k); got != k.Canonical() {
					t.Errorf("%q: Go says %s, the reader says %s", s, k.Canonical(), got)
				}
			}
		}
	})
}

// All readers have the same tables: each word as a distribution, in a release, and in os-release.
func TestReadersRules(t *testing.T) {
	slow.Skip(t)
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		rules := make(map[archive.Rule]int)
		for words := range slices.Chunk(tableWords(t), 20) { // a look-up's time grows with the archive
			compareWords(t, c, words, rules)
		}
		t.Logf("look-ups by rule: %v", rules)
		if len(rules) < 4 {
			t.Errorf("the look-ups show too little: %v", rules)
		}
	})
}

// compareWords compares what a reader does for the words of tables. It counts rules.
func compareWords(t *testing.T, c *readers.Reader, words []string, rules map[archive.Rule]int) {
	t.Helper()
	btfs := testminimized.Kernels(t)
	var kernels []archive.Kernel
	var wants []kernel.Key
	add := func(id, version, release string, wanted ...kernel.Key) {
		k := kernel.Key{ID: id, VersionID: version, Arch: "x86_64", Release: release}
		if k.Validate() == nil && !slices.ContainsFunc(kernels, func(o archive.Kernel) bool { return o.Key.Compare(k) == 0 }) {
			kernels = append(kernels, archive.Kernel{Key: k, BTF: btfs[len(kernels)/5%2].BTF})
			wants = append(wants, wanted...)
		}
	}
	for _, w := range words {
		for _, release := range []string{"5.10.2-" + w + "7", "5.10.4-" + strings.ToUpper(w)} {
			add("first", "1", release, kernel.Key{ID: "other", Arch: "x86_64", Release: release},
				kernel.Key{ID: "first", VersionID: "1", Arch: "x86_64", Release: release + "9"})
		}
		for i, end := range []string{"-lts", "-generic", "-hardened"} {
			release := fmt.Sprintf("6.%d.%d-1%s", i, len(kernels), end)
			add(w, fmt.Sprintf("1.2.%d-4", i), release, kernel.Key{ID: "other", Arch: "x86_64", Release: release},
				kernel.Key{ID: w, VersionID: "1.3", Arch: "x86_64", Release: fmt.Sprintf("6.%d.99999-1%s", i, end)})
		}
	}
	data := mustWrite(t, kernels)
	a := mustOpen(t, data)
	if c.Open(t, data).Status != readers.OK {
		t.Fatal("not opened")
	}
	for n, like := range [][]kernel.Key{nil, {{ID: "ubuntu"}, {ID: "first", VersionID: "1"}}} {
		for i, got := range c.Lookups(t, wants, n, like...) {
			want := a.Lookup(wants[i], n, like...)
			rules[want.Rule]++
			if got != want {
				t.Fatalf("%s, %d neighbours (-Go +reader):\n%s", wants[i], n, cmp.Diff(want, got))
			}
		}
	}
	dir := t.TempDir()
	for _, w := range words {
		for i, text := range []string{
			"ID=x\nID_LIKE=ubuntu\nUBUNTU_CODENAME=" + w, "ID=x\nVERSION_ID=1\nID_LIKE='debian " + w + "'\nVERSION_CODENAME=" + w,
			"ID=x\nDEBIAN_CODENAME=" + w, "ID=" + w + "\nVERSION_ID=1\nBUILD_ID=b\nOPENWRT_BOARD=a/b",
		} {
			path := filepath.Join(dir, fmt.Sprint(i))
			write(t, path, text)
			compareHost(t, c, text, kernel.HostOptions{OSRelease: path, Release: "6.1", Arch: w})
		}
	}
}

// elfWith returns a 64-bit ELF file with one section that has content.
func elfWith(section string, order binary.ByteOrder) []byte {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	if order.Uint16([]byte{1, 0}) != 1 {
		b[5] = 2
	}
	names := "\x00.shstrtab\x00" + section + "\x00"
	table := 64 + len(names)
	order.PutUint64(b[40:], uint64(table))
	for i, v := range []uint16{64, 3, 1} {
		order.PutUint16(b[58+2*i:], v)
	}
	b = append(b, names...)
	for _, s := range [][4]uint64{{}, {1, 3, 64, uint64(len(names))}, {11, 1, 64, 4}} {
		h := make([]byte, 64)
		order.PutUint32(h, uint32(s[0]))
		order.PutUint32(h[4:], uint32(s[1]))
		order.PutUint64(h[24:], s[2])
		order.PutUint64(h[32:], s[3])
		b = append(b, h...)
	}
	return b
}

// btfa_find returns a path of the BTF that Find returns, valid until it is released.
func TestReadersFind(t *testing.T) {
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		data, err := os.ReadFile("../../examples/go-tracer/tracer.btfa")
		if err != nil {
			t.Fatal(err)
		}
		a, err := archive.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "my.btf")
		write(t, file, "BTF of a user")
		options := []archive.FindOptions{
			{File: file},
			{File: filepath.Join(t.TempDir(), "none")},
			{Host: kernel.HostOptions{Release: "6.1.0-no-such", Arch: "x86_64"}},
			{Host: kernel.HostOptions{Release: "a/b", Arch: "x86_64"}},
		}
		root := t.TempDir()
		elf := func(name, section string, order binary.ByteOrder) {
			write(t, filepath.Join(root, name), string(elfWith(section, order)))
		}
		elf("usr/lib/debug/boot/vmlinux-6.1.0-debug", ".BTF", binary.NativeEndian)
		elf("boot/vmlinux-6.1.0-boot", ".BTF", binary.NativeEndian)
		elf("lib/modules/6.1.0-none/build/vmlinux", ".BTF.ext", binary.NativeEndian)
		write(t, filepath.Join(root, "boot/vmlinux-6.1.0-text"), strings.Repeat("text", 100))
		write(t, filepath.Join(root, "boot/vmlinux-6.1.0-short"), "\x7fELF")
		for _, release := range []string{"6.1.0-debug", "6.1.0-boot", "6.1.0-none", "6.1.0-text", "6.1.0-short"} {
			for _, installed := range []bool{false, true} {
				options = append(options, archive.FindOptions{Installed: installed, Host: kernel.HostOptions{Root: root, Release: release, Arch: "x86_64"}})
			}
		}
		for _, k := range a.Keys() {
			options = append(options, archive.FindOptions{Host: kernel.HostOptions{Release: k.Release, Arch: k.Arch}})
		}
		for _, opened := range []bool{false, true} {
			if opened {
				if c.Open(t, data).Status != readers.OK {
					t.Fatal("not opened")
				}
			}
			for _, opts := range options {
				if opened {
					opts.Archive = a
				}
				opts.IgnoreKernel = true
				want, err := archive.Find(opts)
				got := c.Find(t, opts)
				if (err == nil) != (got.Status == readers.OK) {
					t.Errorf("%+v: Go says %v, the reader says %q (%d)", opts, err, got.Error, got.Status)
					continue
				}
				if err != nil {
					if _, ok := err.(*archive.NoMatchError); ok && got.Error != err.Error() {
						t.Errorf("Go says %q, the reader says %q", err, got.Error)
					}
					continue
				}
				b := want.BTF
				if want.Source == archive.FromFile {
					if b, err = os.ReadFile(want.Path); err != nil {
						t.Fatal(err)
					}
				}
				if got.Source != want.Source || got.Rule != want.Match.Rule || !bytes.Equal(got.BTF, b) {
					t.Errorf("%+v: Go finds it in the %s, by rule %s, the reader in the %s, by rule %s, and gives %d bytes, %d wanted",
						opts, want.Source, want.Match.Rule, got.Source, got.Rule, len(got.BTF), len(b))
				}
			}
		}
	})
}
