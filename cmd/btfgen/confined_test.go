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
const hostileModules = "YnRmYwEotS/9BAC1AQDiggoVwAUE/38pjwlQ2QMETTm8zX8/8Z0HgZSQsqc2CuImiC45UG24+W23IgQDALss4ObLVb4WbQTnKLUv/QQAPQIAYoMMF7AHAP//Q1fmOYVUZhA464A+SDlN" +
	"sHce1IH7vzCJkzuIKbccd6zqD4ZpNgyVxSTZNwIHAG8maHVUHd9dZrhplhvI3BGQRqrUKLUv/QQALQEAtAEdAAABAQEBAC0BAhif6wEAGAAQBQAAAAAABAADEAJnwYA4uD3s2yQotS/9" +
	"BAAFAgAEA0YAAAEBAQEALQECGJ/rAQAYABAFAAAAL3ZpY3RpbS9ldmlsACQBAAwAAAAABAAEAAUAbiYwdXiXL25AHI4LER4Ntyi1L/0EAC0BALQBHQAAAQEBAQAtAQIYn+sBABgAEAUA" +
	"AAAAAAQAAxACZ8GAOLg97NskKLUv/QQAnQEAYoIIEsABAsOgBsMoCXkZriUopxPPd+d8uWDVCZCuIGhMuG0PAQUAbiaEOrjLFzcgDscFDRPB5Si1L/0EAC0BALQBHQAAAQEBAQAtAQIY" +
	"n+sBABgAEAUAAAAAAAQAAxACZ8GAOLg97NskKLUv/QQAvQEAdAI9AAABAQEBAC0BAhif6wEAGAAQBQAAAGEKYgAkAQAMAAAAAAQABAAFAG4mhjq+yww3dA7HBQ62azootS/9BAAtAQC0" +
	"AR0AAAEBAQEALQECGJ/rAQAYABAFAAAAAAAEAAMQAmfBgDi4PezbJCi1L/0EAL0BAHQCPQAAAQEBAQAtAQIYn+sBABgAEAUAAABhXGIAJAEADAAAAAAEAAQABQBuJoY6vssMN3QOxwUT" +
	"aEYKKLUv/QQALQEAtAEdAAABAQEBAC0BAhif6wEAGAAQBQAAAAAABAADEAJnwYA4uD3s2yQotS/9RAB/AKUBAHJEChLAAQJlMCjBGwx5E64hKMeTzndF8Scn/7pj6oDCx8vLv+6YogW3" +
	"bRoCAhACoaA6jiM+gghYKLUv/QQALQEAtAEdAAABAQEBAC0BAhif6wEAGAAQBQAAAAAABAADEAJnwYA4uD3s2yQotS/9BACtAQCCAgkTwAUE/3/5ioXlgcXLD/AJ27/feed8cEOj6jgg" +
	"pEsQKiNu20UFAG4miDq5yxc3IA7HBU8prQEotS/9AGhNHACaToQLIyCNpKAD3EEUV/ATlYoiegNZGBs1ZlD8LsuyizlwaQDBAQ4GywCqAKIAg9DHv+jMmG5KH9pq5VebNbOXNhWPJ2Uu" +
	"PzFKN1Z4shjpOehQ8P3cqHDAbpi4cGh3wAoTwMLhAQaPMBI4TKDAAcMEBgS4GzFtT0kyaemUyRjqKSuyTUy//Ku8LVRaepru0/RqDRlrFg4S/MGEhoBAqg7kzhpoNah8fcUs/sk9j52v" +
	"6lGKMfZphTOVNHcPJ2kjByacSdBggYNCw0EEQJcw/IErYNgAKgQMOMIANAwQGkiI4AwcFA4Mo8F6HxYOBRgQwcLhgTNE8AMOEwRj6T/EUBv2fO+EV3I4qOFI1nGQ/Vd8fuiKThnK/83s" +
	"fmJ0zIiPMb7jszqknVXc3bCJTNH+uAKpLdOGqnd+9bkwoWELMaTW7Jrh7Miimonyjk9JRp3cDYvsUJLK9DrSr6uKQlmTRDl3J0aRGlciMdmwanp0hcgNAA0NCxTSSlHMFSmcoERhgkzB" +
	"A+5gQQMdy4il/lu7EDyEFN6K1EnktVFx+yLF3cxrJF74B0N4mWOGCh9qLyuG+IzeH6SdzN9e3C+Xfd5SGTfHVk7fxuYvqD6bveUrLQfm96jdFJwrlH0EO+Z2utByzVry8hf/V3/i3nDG" +
	"jFi759NTMpFbP5KlsPjw7FDLqqjEtum3N77PVLuMlE57HRoozL722jz3y6dSiO6765lextFyXtPVNL6yS4Otg+PMdmRPaiheRhjXt9mmabNyU0vXPw0ehrdCZLLeSX3vNjbb8FP4bqbT" +
	"ub9m9T87EdUIQrbj6y7Jf0H9QsVF+RKhr05n5B8h6IcciqM6KqErjpUVMqg1m26LRcyj2hHNf5zKCDV/WbRQvJ+9Ddw7y2/BKlzc/RC0VpHqNXbPwplaWXtZMs9P6TLzmYjOKkos+Jb3" +
	"THpe13qG9U0LM8kmqpkf12oqWrGFf6mnZG22eHMm6hlPq/4qNTDH2ghDKOAkKJJpMTJihiLAQZgSGOEb4f8r6N4AYDwQGXA9vAUDiB0WzxPHgKvheQZQFgCDx38CEDGh4ID7x2MRJ7t8" +
	"ovMSAnaPty+/7gfAw1rUphsQd6bYNtFUyA2ox1cV+8yg0NCgwGLt9c5I02N4CgHwzM5Ft6wbwDPObsPB4Wbu8Ve9o0Dm4DdLBJiiwweB8zfKWn+Lohsz4+UZIZ44Wlnh7T8jAZIDAAAA" +
	"AAAAPRAAAAAAAAA8JpgyWAW012jEs877XuwB5OewFr6MIJegOo/TAVakNmJ0ZmMuZW5k"

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
