// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// hostileModules is a .btfc with debian/12/x86_64/6.0 to 6.6. Each has one module: ../../../../../victim/evil, /victim/evil, .., a\nb
// with a newline, a\b with a backslash, 300 times x, and good.
const hostileModules = "YnRmYwEotS/9BAC1AQDyggoVwAUE/38pjwlQ2QMETTm8zX8/8Z0HgZSQsqc2CuImiC45UG24+W23IgwDALss4ObLVZShIv/mKLUv/QQARQIAZAMAVAAAAgEBAQEALQECGJ/rAQAYABAFAAAA" +
	"Li4vdmljdGltL2V2aWwAJAEADAAAAAAAAgAEAEIGAG8maHVUHd9dZrihwzkkJJ711Ci1L/0EAKkAAAAAAAAAAAAAAAAAAAAAAAABAAAAGA6TO1ootS/9BAAtAQDCgQYP0IEAAJAKANyOrdvs" +
	"h+886YOwrpCajdu2GAMQAmfBgDiOufShBSi1L/0EAA0CABQDAEYAAAEBAQEALQECGJ/rAQAYABAFAAAAL3ZpY3RpbS9ldmlsACQBAAwAAAAABAAEAAUAbiYwdXiXL25AHO4IyX35tCi1L/0E" +
	"AC0BAMKBBg/QgQAAkAoA3I6t2+yH7zzpg7CukJqN27YYAxACZ8GAOI659KEFKLUv/QQAnQEAcoIIEsABAsOgBsMoCXkZriUopxPPd+d8uWDVCZCuIGhMuG0PAwUAbiaEOrjLFzcgDncEr6vP" +
	"Qyi1L/0EAC0BAMKBBg/QgQAAkAoA3I6t2+yH7zzpg7CukJqN27YYAxACZ8GAOI659KEFKLUv/QQAtQEAgkIJFMABAsOgBmPPAJjphGsJTyWdeL4DKf25YGGIF2DdYRSZcNseBgUAbiaGOr7L" +
	"DDd0DncErGpVfyi1L/0EAC0BAMKBBg/QgQAAkAoA3I6t2+yH7zzpg7CukJqN27YYAxACZ8GAOI659KEFKLUv/QQAtQEAgkIJFMABAsOgBmPPKQBp1nANQTmdeL4DKb05YDEQL2fdYRRZcNsW" +
	"BgUAbiaGOr7LDDd0DncElgnDiii1L/0EAC0BAMKBBg/QgQAAkAoA3I6t2+yH7zzpg7CukJqN27YYAxACZ8GAOI659KEFKLUv/UQAgAClAQCCRAoSwAECZTAowRsMeROuISjHk853RfEnJ/+6" +
	"Y+qAwsfLy7/umKIFt20aBgIQAqGgOg4khnOwrCi1L/0EAC0BAMKBBg/QgQAAkAoA3I6t2+yH7zzpg7CukJqN27YYAxACZ8GAOI659KEFKLUv/QQArQEAkgIJE8AFBP9/+YqF5YHFyw/wCdu/" +
	"33nnfHBDo+o4IKRLECojbtvFBQBuJog6ucsXNyAOdwROcylNKLUv/WSnD00eAApUiAwfIBOAA/zww38OIklhVeVRq2x5fuZkNzm20bgAA3GUCt4AuwCwAH5a/mpoVaaFp6o3xdN0pb2I1988" +
	"PgfR3FrVOuLN+aJ/AVFMYMfUhCjaJ3BRUCQoAEShwYJjKAqKDw4gigwTLGyIUKBIFO5XXNtko1zDBtlNKcN1dma7uH75d/A2GdPT1IWvN9D2ktMIosjgFDb0hQRFotAxSnKrlTwrZb6+hDYf" +
	"B5/p0HcMLCWl7NcS57Jp7i5e01cFRFFhA4MigQdRuAcJDIpERDECsoAoPENxCr6gSBSXEHJwKCCKCIxhQJEoiixckJABgzcoEoWFImG9C4jCwIEOEAUFt4DBERQfAl/w0ot3u8f7vAwkQ5lV" +
	"kXw8nTDSUv1YImuDmp6E0Y3W+vCO3Bij7HCizrTDQSSeWSqtMdTrWb8+BrGcvdEcdPfinLGCRjSVL82oaSyZQQIQEfFAz0YSQqsEktIkR+ocaPAJDIrEg4gPiYiI4nWQn/sb5kQbzXyQbuPS" +
	"uV+y89i/hBiOcp7D2j5YaL1uinX2oRAoEoVZbaGRLmQ9U097tv2b/mk7F6dm3bcsWUzD0/cs5KYbtYWIcCQiCgrms89rA/nM6/v4/EnZa7P3vOnR7XPaD0JP6o0oYQ7mIUg4r+SSY16X8zFr" +
	"dxUdvmF1vXGZiqOO6NoX5bE0xsTDHHZmZWT7xrd3vhNZ+xSd1vtBVZLcvZEiSibL8YpEZ3kKEp3jllOiPnqxkMr7kn5HdlWun5D0y45L8kPk2L7vVm80D+7qafuvwuUSlxClU/9Cyrhyz/he" +
	"iTaYpSIeCzbZL7OOO+Q/OrnwkX/2qXJ3CwAiIh5EfEhEFKaMVezZpmarR2bHDhkODilLPqdri4t5Zd1nGpFiHbk5bzP11uqc/ERIfRnM8Ryeo9JHlp0lQzmMVv02rZiLtWeu4RQmto9HsIr6" +
	"k5uiX/daA4foGY4eIjHiQ7w0zBbVhp6/1IfoVTOdx4xiwri8eNP0Y6+pXCM1uRvtKiP6gtiKycP0S6IO1t2eKy2D1bm02E/2pVDTFmyzrkJkZJZZUsap9D5lLan+9uZ+PyCwJiCB02b5TAQ/" +
	"FoR5IwQD7mn4SFlix/n4yUYyYmcy2I6z0QAAVPhP2RWbLYNWFoPRkx5reFIByGluuTjgTo8nFU9OkLOJBthpeEzZrxuKe1lk2iVoBWHjtUlstbSTfVp7IcaHVIQFADF+UrE5BSU5UwUtdiK9" +
	"l7LpgTUsRkSwRbGiOcSZPSIwkZke+EMjzaGAxw2UjelHGHyVjHks2a21kDLZbJ7XAwAAAAAAAKcQAAAAAAAAcVXu0TAvi2S3FaHHsgyk41TyikiJiFAVMUL6S99mBPFidGZjLmVuZA=="

// outside returns the names and contents of all files outside a folder.
func outside(t *testing.T, root, folder string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == folder:
			return fs.SkipDir
		case d.IsDir():
			files[p] = "a folder"
		case d.Type().IsRegular():
			data, err := os.ReadFile(p)
			files[p] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// hostilePaths are names of members of archives and names in lists.
var hostilePaths = []string{
	"../victim/evil.btf", "../../victim/evil.btf", "debian/12/x86_64/../../../../victim/evil.btf", "debian/../../victim/6.1.btf", "../victim/x86_64/6.1.btf",
	"debian/../x86_64/6.1.btf", "debian/12/x86_64/..", "debian/12/x86_64/...btf", "debian/12/x86_64/a\nb.btf", `debian/12/x86_64/..\..\victim.btf`,
	"debian/12/x86_64/" + strings.Repeat("x", 300) + ".btf", "debian//x86_64/.btf", "",
}

func tarGz(t *testing.T, data []byte, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	tw := tar.NewWriter(z)
	for _, name := range names {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// No name in an input and no link in an output makes a command write outside its output folder, or lose valid kernels.
func TestConfined(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	h := newHostileDir(t)
	good, err := os.ReadFile(filepath.Join(h.corpus, h.keys[1]+".btf"))
	if err != nil {
		t.Fatal(err)
	}
	modules, err := base64.StdEncoding.DecodeString(hostileModules)
	if err != nil {
		t.Fatal(err)
	}
	object, err := filepath.Abs("../../testdata/bpf/tcplife.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	const first = "debian/12/x86_64/6.0.btf"
	var listed []string
	for _, name := range hostilePaths {
		listed = append(listed, `{"files": [`+strconv.Quote(name)+`]}`)
	}
	type test struct {
		name   string
		args   []string          // OUT is the output folder
		in     map[string][]byte // files that exist before the run
		link   string            // a link in the output folder to the outside
		want   int
		writes string // a file that exists after the run
	}
	tests := []test{
		{"modules extracted", []string{"corpus", "extract", "--modules", "all", "m.btfc", "-o", "OUT/"}, map[string][]byte{"m.btfc": modules}, "", 3, "debian/12/x86_64/6.6/good.btf"},
		{"modules packed", []string{"corpus", "import", "m.btfc", "-o", "OUT/x.btfc"}, map[string][]byte{"m.btfc": modules, "out/empty": nil}, "", 3, "x.btfc"},
	}
	members := append([]string{first, "debian/12/x86_64/" + strings.Repeat("y", 250) + ".btf"}, hostilePaths...)
	in := map[string][]byte{"m.tar.gz": tarGz(t, good, members...)}
	tests = append(tests,
		test{"members extracted", []string{"corpus", "extract", "m.tar.gz", "-o", "OUT/"}, in, "", 0, first},
		test{"members packed", []string{"corpus", "import", "m.tar.gz", "-o", "OUT/x.btfc"}, map[string][]byte{"m.tar.gz": in["m.tar.gz"], "out/empty": nil}, "", 3, "x.btfc"},
		test{"members minimized", []string{"generate", "--btf", "m.tar.gz", "-o", "OUT", object}, in, "", 0, first},
	)
	for i, name := range hostilePaths {
		if strings.HasSuffix(name, ".btf") {
			in := map[string][]byte{"a.tar.gz": tarGz(t, good, first, name)}
			tests = append(tests,
				test{"archive merge of " + name, []string{"archive", "merge", "a.tar.gz", "-o", "OUT"}, in, "", 1, ""},
			)
		}
		list := map[string][]byte{"a/.btfgen-tree.json": []byte(listed[i]), "a/" + first: good}
		old := map[string][]byte{"out/.btfgen-tree.json": []byte(listed[i]), "a.tar.gz": tarGz(t, good, first)}
		tests = append(tests,
			test{"archive merge of list " + name, []string{"archive", "merge", "a", "-o", "OUT"}, list, "", 1, ""},
			test{"archive merge onto list " + name, []string{"archive", "merge", "a.tar.gz", "-o", "OUT"}, old, "", 1, ""},
		)
	}
	for _, link := range []string{"debian", "debian/12", "debian/12/x86_64", first} {
		in := map[string][]byte{"a.tar.gz": tarGz(t, good, first)}
		withList := map[string][]byte{"a.tar.gz": tarGz(t, good, first), "out/.btfgen-tree.json": []byte(`{"files": ["` + first + `"]}`)}
		tests = append(tests,
			test{"corpus extract through link " + link, []string{"corpus", "extract", "a.tar.gz", "-o", "OUT/"}, in, link, 1, ""},
			test{"archive merge through link " + link, []string{"archive", "merge", "a.tar.gz", "-o", "OUT"}, withList, link, 1, ""},
			test{"generate through link " + link, []string{"generate", "--btf", "a.tar.gz", "-o", "OUT", object}, withList, link, 1, ""},
		)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			t.Chdir(root)
			victim := filepath.Join(root, "victim")
			out := filepath.Join(root, "out")
			if err := os.Mkdir(victim, 0o777); err != nil {
				t.Fatal(err)
			}
			for name, data := range tt.in {
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, data, 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			if tt.link != "" {
				at, to := filepath.Join(out, tt.link), victim
				if strings.Contains(filepath.Base(at), ".btf") {
					to = filepath.Join(victim, "evil.btf")
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o777), os.Symlink(to, at)); err != nil {
					t.Fatal(err)
				}
			}
			before := outside(t, root, out)
			var args []string
			for _, a := range tt.args {
				args = append(args, strings.Replace(a, "OUT", out, 1))
			}
			var stdout, stderr bytes.Buffer
			if got := run(context.Background(), args, &stdout, &stderr); got != tt.want {
				t.Errorf("exit status %d, want %d: %s", got, tt.want, stderr.String())
			}
			for name, text := range outside(t, root, out) {
				if old, ok := before[name]; !ok || old != text {
					t.Errorf("wrote %s", name)
				}
			}
			if _, err := os.Stat(filepath.Join(out, tt.writes)); tt.writes != "" && err != nil {
				t.Errorf("%v: %s", err, stderr.String())
			}
		})
	}
}
