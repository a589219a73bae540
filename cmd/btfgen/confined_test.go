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

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// hostileModules is a .btfc with debian/12/x86_64/6.0 to 6.6. Each has one module: ../../../../../victim/evil, /victim/evil, .., a\nb
// with a newline, a\b with a backslash, 300 times x, and good.
const hostileModules = "YnRmYwEotS/9BACtAQCywgkUwAUE/38pjwlQ2QMEhTW4hdcT33mBc5AabRTES9BcchjahpffSjgEAG8WcKNSDm+5IyMQVAAotS/9BAC5AAAAAAABAAEBAAAAAAAAAAAAAAAAAAMFAAMWhuootS/9BA" +
	"D1AQAyQwsVwAcF8P9Vt//sQQlDt/Nfc8j3fd/3//OzCY9bhkIuKW6plA4EUVsUZMyGhA0FALY6lo7bLl/c4EkcEVo/bkwotS/9BADJAAAAAAACAQAAAQAAAAAAAAAAAQAAAAACAAIY0vzLOii1L/0E" +
	"AB0BABKCBg/QgQAAkAoAHPtYw3b8zgMP3/efKmSANIoDAVQEAhAEVYFfRii1L/0EANUBABLDChXABwXw/1W3/+xBCXa3X1hDru/7vgd/u13C45KBkEuKS+hA8KxFOaZqSBwEAJs6vMsXN3gSRwT5wQ" +
	"98KLUv/QQAHQEAEoIGD9CBAACQCgAc+1jDdvzOAw/f958qZIA0igMBVAQCEARVgV9GKLUv/QQAfQEAcgIIEsABAsOgBsMAMXkJriEqkni+A//5vLLqg6QbBBIbMDgEAEMd32WGGyaJywIIk/+kKLUv" +
	"/QQAHQEAEoIGD9CBAACQCgAc+1jDdvzOAw/f958qZIA0igMBVAQCEARVgV9GKLUv/QQAjQEAgoIIE8ABAsOgBmPPwG51wDVEpzji+Q5/Or1zKMKJWVcQNTZgcAQARJ3c5YsbPIkjAse7ew8otS/9BA" +
	"AdAQASggYP0IEAAJAKABz7WMN2/M4DD9/3nypkgDSKAwFUBAIQBFWBX0YotS/9BACNAQCCgggTwAECw6AGY88p2FwquIaoSOL5Dn86PXMIhJOyriBqbCdwBABEndzlixs8iSMCsYj2LSi1L/0EAB0B" +
	"ABKCBg/QgQAAkAoAHPtYw3b8zgMP3/efKmSANIoDAVQEAhAEVYFfRii1L/1EAH8AhQEAEkQJEdAhCKAChNIK4PRZNUBv+M4Df3LyXx2zBRQ+Xl7+q2MmpKAYDgIQAqKgOhItOyFKdSi1L/0EAB0BAB" +
	"KCBg/QgQAAkAoAHPtYw3b8zgMP3/efKmSANIoDAVQEAhAEVYFfRii1L/0EAJUBAJLCCBPAAQLDoAaH2hgA051wLVGRxPMd//m8IFFVvADpDoPIJhwOBABFnd9lhhsmicsCsfOnvCi1L/1kERD1HwC6" +
	"VwANHyATgAP88MN/DlI4by8cuFW2PD+8w5sc22hcgIE4SgXpAL8AtwBF98jKPiyBIlHMWn65f+cREtPypPtew3LjT9hjP4vo/PBp4rPdhdV3tvkFRDGhfSAiRFF8Qq+CIkEBIAoNFhzDKig+OIAoMk" +
	"ywsCFCgSJRuF91cSGb7CJGyG52iefwDJfqeu5n0lyUTJlCpcbnkWF82GgEUWRwChvKhQRFokhCFrukLZ5tmbOzEuOPGd90w5mQUam7/MXqXTalS1mvKVcFRFFhA4MiMQ6icA8SGBSJiGIEYAFReIZ1" +
	"Cr6gSBSHEJBwKCCKCI1hQJEoiixckJABgzcoEoWFlcBeCojCwIEOEAUFt4DBERQfApRPVz+IPQ4zNxpuyj31KjTEnx7nt1Zucef6GJ2QaWIsW2rcoJ5hqiwyVNixnp0QNRy+cfdqnLEdponZh2ZUiL" +
	"DODAIQEfEgzwgqDavE0ErU0zoHGnwCgyLxIOIGkkeuklTGVu2T97VBR/p1kemXHp+rFWd5+PBPUmL0Svo/3lV5IN2ykrol1EWpcMn+Hre+rlfUiTOmf1KNdAwZGpmIiCjKEbs2pKkiSjVmiuPySMHM" +
	"RULOy+Y8n7lEcjWXkMpds4NGn3l9uT5/Lfss7WXe8o7NE5nN1Igq6rOSv2YiXW7ivi7Zw21HIzE2RH+SNVAzRw1Sp8n2mz2G1gOHnVmZcjnyxQu+E1nx2ZyS94RqUe/e1NJtkOlj4ivqxEXSXm1a04" +
	"h6NGPzSB1FJlqjCYtvZ5X/yKD+kF7blztu0qXKFPuv7T0crJp06b+65Pa+x3vhsBm4FVHOeKlPsleHkXPSe3ptktYi2SJFy+RGDXKW6lfMX635zclpACIiHkR8SEQUqcy1jaTcoFnU0vmD8A3Ux08y" +
	"aorH8GKE6tSLfN80oxkJ47zN1FtJb+wn1fqdgeNIHEmhE1we1iFOP0ar7rXiiO5bp3tdiH+0/Yp+k2f3Jm+GHOd715TBpFR+GUpWUu4kucTMeKQNfX+lD9FnInqTIdXag5vHTaEnfIX2yqCid5Olyo" +
	"h+x/ZqsQ9EdGuvJ+8m4h16s4JpVZYwKe7y+rTFNwbpf2tYd5y28FPmc2Ec/mYjAUMAppbBmXjDBLhUUBpawEMqALGvaWQKTQOEABekxoNUIHeC0AaWZqxTmi2FxUKULeJBKtymiwlgM1AI100G0vNa" +
	"PEgFIDANMAIQmHXzn9a8Fg+p/PrCA8A6ADZ4bQawDm1mEEQEmqnIg9VFJxk5cA/Su6NllORcKmgRTqR3oXRKjOtah2l3c8iuNVoxQDuga/TQATp4G8E1KoKNUBgbJUsTwkANjTQbBRxuoNmY4hEGLy" +
	"XjPFaxW6sgAaacxY8MBAAAAAAAABERAAAAAAAAB+hCZRC52uexeCH58wHFKW1SBFYcyU3etRPGd9xplBVidGZjLmVuZA=="

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
		args   []string          // arguments, with OUT for the output folder
		in     map[string][]byte // files that exist before the run
		link   string            // link in the output folder to the outside
		want   int
		writes string // file that exists after the run
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
				test{"archive convert of " + name, []string{"archive", "convert", "a.tar.gz", "-o", "OUT"}, in, "", 1, ""},
			)
		}
		list := map[string][]byte{"a/.btfgen-tree.json": []byte(listed[i]), "a/" + first: good}
		old := map[string][]byte{"out/.btfgen-tree.json": []byte(listed[i]), "a.tar.gz": tarGz(t, good, first)}
		tests = append(tests,
			test{"archive convert of list " + name, []string{"archive", "convert", "a", "-o", "OUT"}, list, "", 1, ""},
			test{"archive convert onto list " + name, []string{"archive", "convert", "a.tar.gz", "-o", "OUT"}, old, "", 1, ""},
		)
	}
	for _, link := range []string{"debian", "debian/12", "debian/12/x86_64", first} {
		in := map[string][]byte{"a.tar.gz": tarGz(t, good, first)}
		withList := map[string][]byte{"a.tar.gz": tarGz(t, good, first), "out/.btfgen-tree.json": []byte(`{"files": ["` + first + `"]}`)}
		tests = append(tests,
			test{"corpus extract through link " + link, []string{"corpus", "extract", "a.tar.gz", "-o", "OUT/"}, in, link, 1, ""},
			test{"archive convert through link " + link, []string{"archive", "convert", "a.tar.gz", "-o", "OUT"}, withList, link, 1, ""},
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
