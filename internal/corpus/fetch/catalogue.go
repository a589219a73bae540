// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/text/suggest"
	"github.com/btfgen/btfgen/pkg/kernel"
)

//go:embed catalogue.yaml
var defaultCatalogue []byte

// Catalogue says where distributions have their kernels. docs/schema/catalogue.yaml.json describes the file.
type Catalogue struct {
	Distributions []*Distribution `yaml:"distributions"`
}

// Distribution is where some versions of a distribution have their kernels. In URLs, suites, names of files and patterns, {version}
// means the version, {name} the version's value in Versions, and {machine} the client's name of the architecture.
type Distribution struct {
	ID           string            `yaml:"id"`
	Versions     map[string]string `yaml:"versions"`
	Client       string            `yaml:"client"`
	Machines     map[string]string `yaml:"machines"` // the client's names of architectures, by architecture
	Keys         []string          `yaml:"keys"`     // files, and for dnf also https addresses
	Install      string            `yaml:"install"`  // how to get a missing key
	Repositories []Repository      `yaml:"repositories"`
	Packages     []Pattern         `yaml:"packages"`
	Tested       string            `yaml:"tested"`  // how the entry was tested
	Comment      string            `yaml:"comment"` // a remark, for example on which releases have BTF
}

// Repository is a repository of packages.
type Repository struct {
	URL        string   `yaml:"url"`
	Suites     []string `yaml:"suites"`     // apt only
	Components []string `yaml:"components"` // apt only
	Machines   []string `yaml:"machines"`   // architectures that it has, if not all
}

// Pattern matches the names of packages that have a kernel with BTF or with DWARF only. The groups release and flavour of the
// expression are parts of the name. The release of an RPM package is VERSION-RELEASE.MACHINE.
type Pattern struct {
	Kernel string   `yaml:"kernel"` // packages with BTF
	Debug  string   `yaml:"debug"`  // packages with DWARF, which pahole converts
	From   string   `yaml:"from"`   // the first release with BTF
	With   []string `yaml:"with"`   // packages with modules, configuration or symbols: names with {release} and {flavour}
}

// Default returns the embedded catalogue.
func Default() (*Catalogue, error) { return Parse(defaultCatalogue) }

// Parse reads a catalogue.
func Parse(data []byte) (*Catalogue, error) {
	if len(data) > limits.CatalogueBytes {
		return nil, &limits.Exceeded{Max: limits.CatalogueBytes, What: "bytes"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	c := new(Catalogue)
	if err := dec.Decode(c); err != nil && err != io.EOF {
		return nil, err
	}
	for _, d := range c.Distributions {
		if d == nil {
			return nil, errors.New("an empty distribution")
		}
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", cmp.Or(d.ID, "a distribution without id"), err)
		}
	}
	return c, nil
}

// Add adds a catalogue, whose entries take precedence.
func (c *Catalogue) Add(more *Catalogue) {
	c.Distributions = slices.Concat(more.Distributions, c.Distributions)
}

// plain matches suites and components, which are written to configuration files.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`) })

// check returns an error for an entry that cannot work, or that could break out of a configuration file.
func (d *Distribution) check() error {
	if len(d.Versions) == 0 || len(d.Machines) == 0 || len(d.Repositories) == 0 || len(d.Packages) == 0 || len(d.Keys) == 0 {
		return errors.New("want versions, machines, keys, repositories and packages")
	}
	if d.Client != "apt" && d.Client != "dnf" {
		return fmt.Errorf("client %q: want apt or dnf", d.Client)
	}
	for _, version := range slices.Sorted(maps.Keys(d.Versions)) {
		for _, arch := range slices.Sorted(maps.Keys(d.Machines)) {
			machine := d.Machines[arch]
			if !kernel.KnownArch(arch) || kernel.CanonicalArch(arch) != arch || !safeName().MatchString(machine) {
				return fmt.Errorf("machine %s: %s: want an architecture as in keys, and the client's name for it", arch, machine)
			}
			key := kernel.Key{ID: d.ID, VersionID: version, Arch: arch}
			if err := key.Validate(); err != nil || d.ID == "" || version == "" || key.Canonical() != key {
				return fmt.Errorf("%s: not an ID and VERSION_ID as in keys", key)
			}
			if _, err := d.series(key); err != nil {
				return fmt.Errorf("version %s: %w", version, err)
			}
		}
	}
	return nil
}

// Series is one distribution, version and architecture.
type Series struct {
	Key          kernel.Key // the key of all its kernels, without a release
	client       string
	machine      string // the client's name of the architecture
	keys         []string
	install      string
	repositories []Repository
	patterns     []pattern
}

// String returns ID/VERSION_ID/ARCH.
func (s *Series) String() string { return s.Key.ID + "/" + s.Key.VersionID + "/" + s.Key.Arch }

// pattern is a Pattern of a series.
type pattern struct {
	name  *regexp.Regexp // matches the package's name
	glob  string         // prefix of all matching names
	debug bool
	from  string
	with  []string
	extra []*regexp.Regexp // names of with, for any release
}

// series returns a series with all placeholders replaced.
func (d *Distribution) series(key kernel.Key) (*Series, error) {
	s := &Series{Key: key, client: d.Client, machine: d.Machines[key.Arch], install: d.Install}
	name := d.Versions[key.VersionID]
	fill := strings.NewReplacer("{version}", key.VersionID, "{name}", name, "{machine}", s.machine).Replace
	fillQuoted := strings.NewReplacer("{version}", regexp.QuoteMeta(key.VersionID), "{name}", regexp.QuoteMeta(name),
		"{machine}", regexp.QuoteMeta(s.machine)).Replace
	for _, k := range d.Keys {
		k = fill(k)
		if err := d.checkKey(k); err != nil {
			return nil, err
		}
		s.keys = append(s.keys, k)
	}
	for _, r := range d.Repositories {
		if len(r.Machines) > 0 && !slices.Contains(r.Machines, key.Arch) {
			continue
		}
		r, err := d.repository(r, fill)
		if err != nil {
			return nil, err
		}
		s.repositories = append(s.repositories, r)
	}
	for _, p := range d.Packages {
		p, err := d.pattern(p, fill, fillQuoted)
		if err != nil {
			return nil, err
		}
		s.patterns = append(s.patterns, p)
	}
	return s, nil
}

// checkKey returns an error unless a key is a file, or an address for dnf.
func (d *Distribution) checkKey(k string) error {
	isAddress := d.Client == "dnf" && strings.HasPrefix(k, "https://")
	if strings.ContainsFunc(k, isSpaceOrControl) || !path.IsAbs(k) && !isAddress {
		return fmt.Errorf("key %q: want an absolute path, or for dnf an https address", k)
	}
	return nil
}

// repository returns a copy of a repository with all placeholders replaced.
func (d *Distribution) repository(r Repository, fill func(string) string) (Repository, error) {
	r.URL = fill(r.URL)
	if err := checkURL(r.URL); err != nil {
		return r, err
	}
	r.Suites, r.Components = slices.Clone(r.Suites), slices.Clone(r.Components)
	for _, list := range [][]string{r.Suites, r.Components} {
		for i := range list {
			if list[i] = fill(list[i]); !plain().MatchString(list[i]) {
				return r, fmt.Errorf("suite or component %q: want letters, digits and ._/+-", list[i])
			}
		}
	}
	if (d.Client == "apt") != (len(r.Suites) > 0) {
		return r, errors.New("suites: apt's repositories have them, dnf's do not")
	}
	return r, nil
}

// pattern compiles a pattern. fillQuoted replaces placeholders in expressions.
func (d *Distribution) pattern(p Pattern, fill, fillQuoted func(string) string) (out pattern, err error) {
	if (p.Kernel == "") == (p.Debug == "") {
		return out, errors.New("packages: want kernel or debug")
	}
	text := fillQuoted(p.Kernel + p.Debug)
	bare, err := regexp.Compile(text)
	if err != nil {
		return out, err
	}
	prefix, _ := bare.LiteralPrefix()
	if !safeName().MatchString(prefix) {
		return out, fmt.Errorf("pattern %q: want an expression that begins with a part of a name", text)
	}
	out = pattern{name: regexp.MustCompile("^(?:" + text + ")$"), glob: prefix, debug: p.Debug != "", from: p.From}
	if d.Client == "apt" && out.name.SubexpIndex("release") < 0 {
		return out, fmt.Errorf("pattern %q: no group release", text)
	}
	for _, w := range p.With {
		w = fill(w)
		example := strings.NewReplacer("{release}", "r", "{flavour}", "f").Replace(w)
		// A client gets the part before the first placeholder.
		if !safeName().MatchString(example) || w[0] == '{' {
			return out, fmt.Errorf("with %q: want a name, with letters, digits, {release} and {flavour}", w)
		}
		anyRelease := strings.NewReplacer(`\{release\}`, ".+", `\{flavour\}`, ".*").Replace(regexp.QuoteMeta(w))
		out.with, out.extra = append(out.with, w), append(out.extra, regexp.MustCompile("^"+anyRelease+"$"))
	}
	return out, nil
}

func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// checkURL returns an error unless a text is the address of a repository.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsFunc(text, isSpaceOrControl) || !slices.Contains([]string{"http", "https", "file"}, u.Scheme) ||
		u.Scheme != "file" && u.Host == "" || strings.ContainsAny(text, `[]"'\`) {
		return fmt.Errorf("url %q: want an address that begins with https://, http:// or file://", text)
	}
	return nil
}

// usual are the architectures of a series that is given without one.
var usual = []string{"x86_64", "arm64"}

// Series returns the series for names of the form ID/VERSION_ID or ID/VERSION_ID/ARCH, each once.
func (c *Catalogue) Series(names []string) (all []*Series, err error) {
	seen := make(map[kernel.Key]bool)
	for _, name := range names {
		parts := strings.Split(name, "/")
		if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("%q: want ID/VERSION_ID or ID/VERSION_ID/ARCH, as in debian/12", name)
		}
		key := kernel.Key{ID: parts[0], VersionID: parts[1]}.Canonical()
		d := c.find(key)
		if d == nil {
			return nil, fmt.Errorf("%s: not in the catalogue%s", name, c.nearest(key))
		}
		archs := slices.DeleteFunc(slices.Clone(usual), func(a string) bool { return d.Machines[a] == "" })
		if len(parts) == 3 {
			archs = []string{kernel.CanonicalArch(parts[2])}
			if d.Machines[archs[0]] == "" {
				return nil, fmt.Errorf("%s: the catalogue has %s", name, strings.Join(slices.Sorted(maps.Keys(d.Machines)), ", "))
			}
		}
		for _, key.Arch = range archs {
			if s, err := d.series(key); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			} else if !seen[key] {
				seen[key], all = true, append(all, s)
			}
		}
	}
	return all, nil
}

func (c *Catalogue) find(key kernel.Key) *Distribution {
	for _, d := range c.Distributions {
		if _, ok := d.Versions[key.VersionID]; ok && d.ID == key.ID {
			return d
		}
	}
	return nil
}

// Names returns ID/VERSION_ID of all entries, in order.
func (c *Catalogue) Names() (names []string) {
	for _, d := range c.Distributions {
		for _, v := range slices.SortedFunc(maps.Keys(d.Versions), kernel.CompareVersions) {
			names = append(names, d.ID+"/"+v)
		}
	}
	return names
}

// kernelsOf says where the kernels of distributions are that the catalogue lacks.
var kernelsOf = map[string]string{
	"alpine":       "packages linux-lts and linux-virt at dl-cdn.alpinelinux.org",
	"android":      "Image and vmlinux of generic kernel images at ci.android.com; import them under the release that uname -r prints",
	"arch":         "packages linux and linux-lts at archive.archlinux.org",
	"azurelinux":   "package kernel-debuginfo at packages.microsoft.com/azurelinux",
	"cos":          "vmlinux of each build in the bucket cos-tools of Google Cloud Storage",
	"flatcar":      "images of each version at stable.release.flatcar-linux.net",
	"gentoo":       "binary packages gentoo-kernel, or the kernels that you build",
	"kali":         "packages linux-image-*-dbg at http.kali.org",
	"mariner":      "package kernel-debuginfo at packages.microsoft.com/cbl-mariner",
	"openeuler":    "package kernel-debuginfo at repo.openeuler.org",
	"photon":       "package linux-debuginfo at packages.vmware.com/photon",
	"raspbian":     "packages linux-image-* at archive.raspberrypi.com",
	"rhel":         "package kernel-debuginfo, with a subscription; rocky and almalinux have rebuilds",
	"talos":        "images ghcr.io/siderolabs/kernel",
	"bottlerocket": "packages of each release's kernel kit, github.com/bottlerocket-os",
}

// parents are the distributions in the catalogue whose kernels hosts of others run.
var parents = map[string]string{
	"elementary": "ubuntu", "linuxmint": "ubuntu", "neon": "ubuntu", "zorin": "ubuntu", "devuan": "debian", "rhcos": "rhel",
}

// nearest describes what the catalogue has instead of a version, or where kernels of another distribution are.
func (c *Catalogue) nearest(key kernel.Key) string {
	if !slices.ContainsFunc(c.Distributions, func(d *Distribution) bool { return d.ID == key.ID }) {
		s := fmt.Sprintf(", which has no %s: describe a repository with --catalogue, or add kernels with corpus import", key.ID)
		if p := parents[key.ID]; p != "" {
			s += fmt.Sprintf("; its hosts run kernels of %s", p)
		}
		if where := kernelsOf[key.ID]; where != "" {
			s += "; its kernels: " + where
		}
		return s
	}
	names := c.Names()
	suggest.SortSeries(key.ID+"/"+key.VersionID, names)
	return fmt.Sprintf("; nearest: %s", strings.Join(names[:min(len(names), 4)], ", "))
}
