// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write testdata/kernels.txt")

func catalogue(t *testing.T) *Catalogue {
	t.Helper()
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSchema compares the embedded catalogue with its schema.
func TestSchema(t *testing.T) {
	data, err := os.ReadFile("../../../docs/schema/catalogue.yaml.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("catalogue", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("catalogue")
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(defaultCatalogue, &v); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Error(err)
	}
	v.(map[string]any)["more"] = true
	if schema.Validate(v) == nil {
		t.Error("the schema allows unknown fields")
	}
}

// TestNames compares the kernels that the catalogue finds among recorded names of packages with testdata/kernels.txt. The first line
// of a list is a comment that says where the names are from. The others have one package each, with the version for RPM packages.
func TestNames(t *testing.T) {
	c := catalogue(t)
	files, err := filepath.Glob("testdata/names/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	var out strings.Builder
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		at := strings.LastIndex(name[:strings.LastIndex(strings.TrimSuffix(name, "_64"), "-")], "-")
		all, err := c.Series([]string{name[:at] + "/" + strings.Replace(name[at+1:], "-", "/", 1)})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s := all[0]
		ids[s.Key.ID] = true
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source, names, _ := strings.Cut(string(data), "\n")
		if !strings.HasPrefix(source, "# ") {
			t.Errorf("%s: the first line does not say where the names are from", file)
		}
		var packages []Package
		for line := range strings.Lines(names) {
			f := strings.Fields(line + " 1")
			if s.wants(f[0]) {
				packages = append(packages, Package{Name: f[0], Version: f[1], Size: 1})
			}
		}
		offers := s.offers(packages)
		if len(offers) == 0 {
			t.Errorf("%s: no kernel", file)
		}
		for _, u := range offers {
			fmt.Fprintf(&out, "%s:", u.Kernel)
			if u.Debug {
				out.WriteString(" (DWARF)")
			}
			for _, p := range u.Packages {
				out.WriteString(" " + p.Name)
			}
			out.WriteByte('\n')
		}
	}
	for _, d := range c.Distributions {
		if !ids[d.ID] {
			t.Errorf("no list of packages for %s", d.ID)
		}
	}
	const golden = "testdata/kernels.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), out.String()); d != "" {
		t.Error(d)
	}
}

// TestEntries checks that every entry says how it was tested and which releases have BTF, and has both usual architectures.
func TestEntries(t *testing.T) {
	c := catalogue(t)
	for _, d := range c.Distributions {
		if d.Tested != "real" && d.Tested != "shape" || d.Comment == "" || d.Install == "" {
			t.Errorf("%s: tested %q, comment %q, install %q", d.ID, d.Tested, d.Comment, d.Install)
		}
		if d.Machines["x86_64"] == "" || d.Machines["arm64"] == "" {
			t.Errorf("%s: machines %v", d.ID, d.Machines)
		}
	}
	if n := c.Names(); len(n) != len(slices.Compact(slices.Sorted(slices.Values(n)))) {
		t.Errorf("a version twice: %v", n)
	}
	all, err := c.Series([]string{"debian/12", "debian/12/aarch64", "oracle/8"})
	if err != nil || fmt.Sprint(all) != "[debian/12/x86_64 debian/12/arm64 ol/8/x86_64 ol/8/arm64]" {
		t.Errorf("%v, %v", all, err)
	}
	for name, want := range map[string]string{
		"debian":           `want ID/VERSION_ID`,
		"debian/12/":       `want ID/VERSION_ID`,
		"debian/1":         `not in the catalogue; nearest: debian/9, debian/10, debian/11, debian/12`,
		"debian/99":        `not in the catalogue; nearest: debian/13, debian/12, debian/11, debian/10`,
		"flatcar/3815.2.5": `not in the catalogue, which has no flatcar: describe a repository with --catalogue, or add kernels with corpus import; its kernels: images`,
		"linuxmint/21.3":   `which has no linuxmint: describe a repository with --catalogue, or add kernels with corpus import; its hosts run kernels of ubuntu`,
		"other/1":          `which has no other: describe a repository with --catalogue, or add kernels with corpus import`,
		"debian/12/mips":   `the catalogue has arm, arm64, i386`,
	} {
		if _, err := c.Series([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBadCatalogues parses entries that cannot work, or that would break out of a configuration file.
func TestBadCatalogues(t *testing.T) {
	const good = "distributions:\n- {id: d, versions: {\"1\": one}, client: apt, machines: {x86_64: amd64}, keys: [/k], " +
		"repositories: [{url: 'http://h/d', suites: ['{name}'], components: [main]}], packages: [{kernel: 'linux-(?P<release>.+)'}]}\n"
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"id: d", "id: ../x", "not an ID"},
		{"id: d", "id: oracle", "not an ID and VERSION_ID as in keys"},
		{`"1": one`, `"../1": one`, "not an ID"},
		{`"1": one`, `"1": 'a b'`, `suite or component "a b"`},
		{"client: apt", "client: zypper", `client "zypper"`},
		{"x86_64: amd64", "amd64: amd64", "machine amd64"},
		{"x86_64: amd64", `x86_64: "a\"; Dir \"/"`, "machine x86_64"},
		{"[/k]", "[k]", `key "k"`},
		{"[/k]", "['https://h/k']", `key "https`},
		{"[/k]", "['/k /l']", `key "/k /l"`},
		{"[/k]", "[]", "want versions"},
		{"http://h/d", `http://h/d\Suites`, "url"},
		{"'http://h/d'", `"http://h/d\nTrusted: yes"`, "url"},
		{"http://h/d", "ftp://h/d", "url"},
		{"http://h/d", "[trusted=yes] http://h/d", "url"},
		{"suites: ['{name}'], ", "", "suites"},
		{"linux-(?P<release>.+)", "linux-(", "missing closing"},
		{"linux-(?P<release>.+)", "(?P<release>.+)", "begins with a part of a name"},
		{"linux-(?P<release>.+)", "linux-.+", "no group release"},
		{"kernel: 'linux-(?P<release>.+)'", "from: x", "want kernel or debug"},
		{"id: d", "id: d, more: 1", "field more not found"},
		{"x86_64: amd64", "x86_64: ../amd64", "machine x86_64"},
		{"x86_64: amd64", "x86_64: amd64/../../x", "machine x86_64"},
		{"x86_64: amd64", "x86_64: --config=x", "machine x86_64"},
		{"linux-(?P<release>.+)", "-c(?P<release>.+)", "begins with a part of a name"},
		{"linux-(?P<release>.+)", "linux/(?P<release>.+)", "begins with a part of a name"},
		{".+)'}", ".+)', with: ['-cevil.conf']}", `with "-cevil.conf"`},
		{".+)'}", ".+)', with: ['--config-file=x{release}']}", `with "--config-file=x{release}"`},
		{".+)'}", ".+)', with: ['{release}']}", `with "{release}"`},
		{".+)'}", ".+)', with: ['']}", `with ""`},
		{".+)'}", ".+)', with: ['a b']}", `with "a b"`},
		{".+)'}", ".+)', with: [a*]}", `with "a*"`},
		{".+)'}", ".+)', with: ['a/{release}']}", `with "a/{release}"`},
		{".+)'}", ".+)', with: ['a;{release}']}", `with "a;{release}"`},
		{".+)'}", ".+)', with: ['a{other}']}", `with "a{other}"`},
		{".+)'}", ".+)', with: [\"a\\nb\"]}", `with "a\nb"`},
		{"- {id", "- \n- {id", "empty"},
	} {
		_, err := Parse([]byte(strings.Replace(good, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.to, err, c.want)
		}
	}
}

// TestFirstMistake wants the error about a catalogue not to depend on the order of a map.
func TestFirstMistake(t *testing.T) {
	const bad = "distributions:\n- {id: d, versions: {\"1\": 'a b', \"2\": 'c d', \"3\": 'e f'}, client: apt, machines: {x86_64: amd64, arm64: arm64}, keys: [/k], " +
		"repositories: [{url: 'http://h/d', suites: ['{name}'], components: [main]}], packages: [{kernel: 'linux-(?P<release>.+)'}]}\n"
	for range 20 {
		if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), `version 1: suite or component "a b"`) {
			t.Fatal(err)
		}
	}
}

// offering is a client that offers packages.
type offering struct{ packages []Package }

func (o *offering) update(context.Context) error { return nil }

func (o *offering) list(context.Context, []string, func(string) bool) ([]Package, error) {
	return o.packages, nil
}

func (o *offering) download(context.Context, *Package, string) error { return nil }

func (o *offering) file(name, version string) string { return name + version }

// TestRename checks that only a single regular file becomes a package, whatever its name.
func TestRename(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []func(name string) error{
		func(string) error { return nil },
		func(name string) error { return os.Mkdir(name, 0o700) },
		func(name string) error { return os.Symlink("/etc/passwd", name) },
		func(name string) error {
			return errors.Join(os.WriteFile(name, nil, 0o600), os.WriteFile(name+"2", nil, 0o600))
		},
	} {
		sub, err := os.MkdirTemp(dir, "")
		if err := errors.Join(err, f(filepath.Join(sub, "x"))); err != nil {
			t.Fatal(err)
		}
		if err := rename(sub, "p.deb"); err == nil {
			t.Error("no error")
		}
	}
	for _, name := range []string{"-o\x1b\n", "p.deb"} {
		sub := t.TempDir()
		if err := os.WriteFile(filepath.Join(sub, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := rename(sub, "p.deb"); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(sub); err != nil || len(left) != 1 || left[0].Name() != "p.deb" {
			t.Errorf("%v, %v", left, err)
		}
	}
}

// TestMirrored replaces the beginning of an address once, by the longest of the beginnings.
func TestMirrored(t *testing.T) {
	mirrors := []Mirror{
		{"http://h/debian", "http://m/http://h/debian"}, {"http://h/debian-security", "http://s"}, {"http://m/", "http://twice/"},
		{"http://h/", "http://short/"}, {"https://h/", "http://first/"}, {"https://h/", "http://last/"},
	}
	for range 20 {
		for url, want := range map[string]string{
			"http://h/debian":          "http://m/http://h/debian",
			"http://h/debian-security": "http://s",
			"http://h/ubuntu":          "http://short/ubuntu",
			"http://m/x":               "http://twice/x",
			"http://other/x":           "http://other/x",
			"https://h/x":              "http://last/x",
		} {
			if got := mirrored(url, mirrors); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
	}
	if got := mirrored("http://h/x", nil); got != "http://h/x" {
		t.Error(got)
	}
}

// TestHostileNames checks that names and versions that could be options, paths or other releases are not used.
func TestHostileNames(t *testing.T) {
	all, err := catalogue(t).Series([]string{"debian/12/x86_64"})
	if err != nil {
		t.Fatal(err)
	}
	const good = "linux-image-6.1.0-1-amd64"
	for _, p := range []Package{
		{good + "/../../x", "1", 1, "", ""}, {"../" + good, "1", 1, "", ""}, {"-o" + good, "1", 1, "", ""}, {good, "../1", 1, "", ""}, {good, "-1", 1, "", ""}, {good, "1 2", 1, "", ""},
		{good, "1\n2", 1, "", ""}, {good, "1;x", 1, "", ""}, {good, "1", 0, "", ""}, {good, "1", -1, "", ""}, {good, "", 1, "", ""}, {"linux-image-6.1.0\x1b-1-amd64", "1", 1, "", ""},
		{good + strings.Repeat("x", 300), "1", 1, "", ""},
	} {
		r := &Repositories{Series: all[0], client: &offering{[]Package{p}}}
		if offers, err := r.Offers(t.Context()); err != nil || len(offers) > 0 {
			t.Errorf("%q: %v, %v", p, offers, err)
		}
	}
	r := &Repositories{Series: all[0], client: &offering{[]Package{{good, "1:6.1~rc1+b1-2", 1, "", ""}}}}
	if offers, err := r.Offers(t.Context()); err != nil || len(offers) != 1 || offers[0].Kernel.String() != "debian/12/x86_64/6.1.0-1-amd64" ||
		offers[0].Packages[0].File != good+"6.1~rc1+b1-2" {
		t.Errorf("%v, %v", offers, err)
	}
	for _, sources := range []string{"Package: a\nVersion: 1\nSize: x\n\n\nSize: 1\n", "Package: a\nVersion: 1\nSize: 99999999999999999999\n"} {
		if got := parseStanzas(sources); len(got) != 1 || got[0].Size < 0 {
			t.Errorf("%q: %+v", sources, got)
		}
	}
}
