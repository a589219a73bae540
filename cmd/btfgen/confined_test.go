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
const hostileModules = "YnRmYwEotS/9RBBmDAwCAFJEDxmwBwCrylqAE8PArU+ITcDoEbN1oOHled95j+2T+qT+f3QZpe2yB7BcHlb2GbeaAiZFiGLo6rosfmWnQUEADSYAmlVQDzGANIEAFKHEndGE" +
	"vMPQlIADDymIHtRTsq4u5o4YYiV7Pe+9TymlrLiDsxMJesf4f+88zADFAPMA9PHVw9eHbx4+evjq33t99+bdo3ev/nr9681fj/569Zvrb25+c/Sbq9dcX3PzmqPXXH3m+pmb" +
	"zxx95uql60s3Lx29dPXR9aObj44+unro+tDNQ0cPXf1z/efmn6N/rt65/uXmL0d/ufqtv81v9Fu91tfmNXqtPutn8xl9Vo9hfWweo8fqZV/OS3pZH/txPtLHetiH85AewvrX" +
	"f/OP/r16t8NFoUnu+m7e0TtXf/Wv+Yv+6uGkB5A7SfJEyY87kUKT/KqP2B+89uROkhAJWZzPIn0W67EY+1icxyI9Futl7Ms4LyO9jPUx9mGch5EexvoX+y/Ov0j/Yr2Lse/i" +
	"vIv0LtZfsX/F+SvSX7F+g/0Nzm+QfoP1GuxrcF6D9Bqsz2A/g/MZpM9gPQZhH4PzGKTHYL2EfQnnJaSXsD7CfoTzEdJH2H9w/kH6B+sdhH0H5x2kd7D+gv0Lzl+Q/oL12+tv" +
	"b3579Nur115fe/Pao9deffb62ZvPHn326rH3+tibxx499url68s3Lx+9fPXx9eObjy/vENm+p9zfw9tfcfg+gIbvBWjfF8C+PxC/V+C+b/A7eIMGDY6VNcBAgwQLAmDZ2sLC" +
	"wtIqgIDBAwgSJlzA8DANHpoEChYwaODwsrVjyxYQLFtDtraOMIGyNeVn/gABWlkBAGCB0IqApbVaVKicwVoGMYDAr66YrzgrK8sAllYAA1gBDGDt7j4r1FUWq93v/r/kITwm" +
	"+5uc3yT9Jus12dfkvCbpNVmfyX4m5zNJn8l6TMo+JucxSY/Jein7Uc5HSR9lPZR9KOehpIey/sn+k/NP0j9Z76TsOznvJL2T9Vvsb3F+i/RbrNdiX4vzWqTXYn0W+wHLZb1s" +
	"mDWzaFbNstk626ZuncWze9bPClpDm2gXraOVtJU203ZaUatqScFYVduKt/gKa2Eu/IXHsBlGw2q4DcPhObyH60Dew30YEBPiRLyIGzEklsSV+BJn4k3ciU/xKVbFnxbMktkz" +
	"m2bXrJuNs3SWzt5ZPctnA22hRbSKltFGWkqLaTktqC21qDbVptpVXIWtcBbewl1YDJfhM5yG1/AblsN2OA/rYT3Mh//wID7EipgRP+JJkC1lYE6siT0xJwbFnjgUg+JRHIpN" +
	"sSku9X5CYSW0kwr7rhb23eTCvpksUYLkRooQGSIkCAXyw0cPHjt05PgNGzVozJARA8YLFy1YrFCR4ifkvk28fZf4sG8SHfY9YsO+RWwbfaCxoEKRAEAEEgmApM0A0GiEBM4A" +
	"uQAgATv2MltGBqaRgWkYTNNkmA3DYGo0mGKMpmkyzAYYYsNsGAYbdYJaQkqiEc7Rg1JHv7wChgh66f2mh0Iw44PBwNDhgeHwBupw+IANBwPD4dDg4Y0SRPxBhAY8i17QYKjf" +
	"dPLtUsXJpaCcBEooRwjGJij63sDTdgq30EPdsMsBMrEzNjWyTMoYKNdwMhbC5NoJRsgqZpYvFJPQGgbFggjanqiZchQpJa+NaGZZAT6dnCFDhgwxZG1oC8hldIzOQbCxgAYR" +
	"6GPDtPQj1c7EbJolVDSjF1sOKLUv/QQAPQMAYoYVH6AHAIA5MzOReTzwbdgsVRSaMv3/mbiGpx9/9533vgNdXV3pwYJ77tjBHyEU+O4QEWD2hw0XmB9ZTluDkbD4ohqFwqhF" +
	"QjVKktwSivTMM/vN9rceiCMFAK+YudC7fOGGtpxzAqKJnxAotS/9BABNAQD0AQkYAAACAQIBAIAC/QGf6wEAGACIG/0DAAD8BwDwBwADEAIPzICYj6nHdyQotS/9BACVAQB0" +
	"AgcpAAABAQADAC92aWN0aW0vZXZpbAAEAwQYn+sBABgAbAkAAAAIAAMQAmcRwyDZArRuF/gotS/9BABNAQD0AQkYAAACAQIBAIAC/QGf6wEAGACIG/0DAAD8BwDwBwADEAIP" +
	"zICYj6nHdyQotS/9BABFAQDUAQcfAAABAQADAC4uAAQDBBif6wEAGABsCQAAAAgAAxACZ4GhkmwBlkSOOCi1L/0EAE0BAPQBCRgAAAIBAgEAgAL9AZ/rAQAYAIgb/QMAAPwH" +
	"APAHAAMQAg/MgJiPqcd3JCi1L/0EAE0BAOQBByAAAAEBAAMAYQpiAAQDBBif6wEAGABsCQAAAAgAAxACZ4FhkRgBEGOnFSi1L/0EAE0BAPQBCRgAAAIBAgEAgAL9AZ/rAQAY" +
	"AIgb/QMAAPwHAPAHAAMQAg/MgJiPqcd3JCi1L/0EAE0BAOQBByAAAAEBAAMAYVxiAAQDBBif6wEAGABsCQAAAAgAAxACZ4FhkRgBIltPPSi1L/0EAE0BAPQBCRgAAAIBAgEA" +
	"gAL9AZ/rAQAYAIgb/QMAAPwHAPAHAAMQAg/MgJiPqcd3JCi1L/1EAGgAXQEAogIIEdCBAkAqWoFmBNCY9ozRu+88ycvv97czBFZUgXRmIYwCEAIoqIOECwdlxCwotS/9BABN" +
	"AQD0AQkYAAACAQIBAIAC/QGf6wEAGACIG/0DAAD8BwDwBwADEAIPzICYj6nHdyQotS/9BABVAQD0AQchAAABAQADAGdvb2QABAMEGJ/rAQAYAGwJAAAACAADEAJnkWGRGAG0" +
	"ffTIKLUv/UQAKAIFEwCUIwcAZGViaWFuLzEyL3g4Nl82NC82LjAACpQK5hp0iAGdPy3MClFS9B8zZAuk2iqaZTrcH5eyYVSCI28U4BcWflK3Abj+wJGdvXANQqW8IC287kSp" +
	"DbK6q2rqVtjFn0b4rzeH/vkbYGhwptSdQT1D/hyfCIxEYQsOPIkE/////ycghAM2jDcF1Rp+sMnTz5DAVNU29AR6nx10y5CwvV4x/6tL/8/VAoffygDIP6IM9nKSdCZtTQnF" +
	"ketDvZssAzc/bv+9eKla1szwB8gti0Xu2jFkpZdWtg+JGs0o7dFChiyUBmN6kHUJr/1KaGAPXpUo+1lPL0tZry95AV9ONVVOmnhhUD2AQ9d/JwKHnuNVXtzlBXLioHHvpge3" +
	"5/BI66/ukVY3/oZUTKHgQZCKxRDwfTlGrnxCB67kD3zYTHVB4x1TFeXr2gNfjxwAEzEAKDY8P0fzpCn7ofFAcnupC+bcYBdzysRAqshrqXVV/4Y/VWqY4RMyAEg2PDU9+1Ce" +
	"6MtUCxTFotS6Tk0OzF0KFb2sP9TkSFZD2/HmF5wTMwBoNjw2PuejyVNiIyUrKwTWvXpa3SnGaB6NjmIuL7DLkWCQK03hEzQAiAGky4MiVFeuO6VWivxX6E/7Atk1qR6t5vdS" +
	"QWu8kermZxM1AKgBNjw66AJ71jkiIg2eNmZk9GehCgMmGyESYr4Gk7d/q6hkxXAxuBM2AMgBNjw3P4YZg0mJnxEEl3t2mdWfLFjcTgfx6ksJMY8KZ0w4TUljDADhyCIQkroe" +
	"XBIAUoMTpOa0KDLUZk5dHRxh46Ta8uaqhgsFDfNMp5JvAgAAAAAAAGJ0ZmMuZW5k"

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
		{"modules extracted", []string{"corpus", "extract", "--modules", "m.btfc", "-o", "OUT/"}, map[string][]byte{"m.btfc": modules}, "", 3, "debian/12/x86_64/6.6/good.btf"},
		{"modules packed", []string{"corpus", "import", "m.btfc", "-o", "OUT/x.btfc"}, map[string][]byte{"m.btfc": modules, "out/empty": nil}, "", 3, "x.btfc"},
	}
	members := append([]string{first, "debian/12/x86_64/" + strings.Repeat("y", 250) + ".btf"}, hostilePaths...)
	in := map[string][]byte{"m.tar.gz": tarGz(t, good, members...)}
	tests = append(tests,
		test{"members extracted", []string{"corpus", "extract", "m.tar.gz", "-o", "OUT/"}, in, "", 0, first},
		test{"members packed", []string{"corpus", "import", "m.tar.gz", "-o", "OUT/x.btfc"}, map[string][]byte{"m.tar.gz": in["m.tar.gz"], "out/empty": nil}, "", 3, "x.btfc"},
		test{"members minimized", []string{"generate", "--btf", "m.tar.gz", "-o", "OUT", object}, in, "", 3, first},
	)
	for i, name := range hostilePaths {
		if strings.HasSuffix(name, ".btf") {
			in := map[string][]byte{"a.tar.gz": tarGz(t, good, first, name)}
			tests = append(tests,
				test{"archive extract of " + name, []string{"archive", "extract", "--all", "a.tar.gz", "-o", "OUT"}, in, "", 1, ""},
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
			test{"archive extract through link " + link, []string{"archive", "extract", "--all", "a.tar.gz", "-o", "OUT"}, withList, link, 1, ""},
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
