// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/workers/program"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Package is a package that a repository offers.
type Package struct {
	Name, Version string
	Size          int64  // bytes of the file
	Sum           string // SHA-256 in hexadecimal, of apt only
	File          string // name of the file: safe, and different from those of other packages in the series
}

// Offer is the packages of one kernel.
type Offer struct {
	Kernel   kernel.Key // shown by the names of the packages
	Debug    bool       // the kernel has DWARF only
	Packages []Package  // the first has the kernel
}

// Size returns the bytes of all packages.
func (o *Offer) Size() (n int64) {
	for _, p := range o.Packages {
		n += p.Size
	}
	return n
}

// client runs a package manager.
type client interface {
	// update reads the indexes of the repositories.
	update(ctx context.Context) error
	// list returns the packages whose names begin with one of the prefixes and that want accepts.
	list(ctx context.Context, prefixes []string, want func(name string) bool) ([]Package, error)
	// download writes a package to p.File in an empty folder and checks it.
	download(ctx context.Context, p *Package, dir string) error
	// file returns the name for a package's file.
	file(name, version string) string
}

// Repositories are the repositories of a series.
type Repositories struct {
	Series *Series
	client client
}

// Mirror replaces the beginning of addresses in the catalogue.
type Mirror struct{ From, To string }

// mirrored returns an address with the longest of the beginnings replaced; of equal ones, the last.
func mirrored(url string, mirrors []Mirror) string {
	var best Mirror
	for _, m := range mirrors {
		if len(m.From) >= len(best.From) && strings.HasPrefix(url, m.From) {
			best = m
		}
	}
	return best.To + url[len(best.From):]
}

// Folder returns the folder of a series below a cache.
func (s *Series) Folder(cache string) string {
	return filepath.Join(cache, s.Key.ID+"-"+s.Key.VersionID+"-"+s.Key.Arch)
}

// Open reads the indexes of the repositories of a series. Files that the next run can use are in a folder. No other process may call Open with
// the folder meanwhile.
func (s *Series) Open(ctx context.Context, dir string, mirrors []Mirror) (*Repositories, error) {
	own := *s
	own.repositories = slices.Clone(s.repositories)
	for i := range own.repositories {
		r := &own.repositories[i]
		r.URL = mirrored(r.URL, mirrors)
		if err := checkURL(r.URL); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	newClient := newApt
	if s.client == "dnf" {
		newClient = newDnf
	}
	c, err := newClient(&own, dir)
	if err != nil {
		return nil, err
	}
	return &Repositories{&own, c}, c.update(ctx)
}

// safe matches names and versions of packages that may become arguments and parts of file names.
var (
	safeName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+._-]{0,199}$`) })
	safeVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.:~^_-]{0,199}$`) })
)

// Offers returns the kernels that the repositories offer, in order. If there are packages with BTF and
// with DWARF for one kernel, the pattern that comes first counts.
func (r *Repositories) Offers(ctx context.Context) ([]*Offer, error) {
	var prefixes []string
	for _, p := range r.Series.patterns {
		prefixes = append(prefixes, p.glob)
		for _, w := range p.with {
			before, _, _ := strings.Cut(w, "{")
			prefixes = append(prefixes, before)
		}
	}
	slices.Sort(prefixes)
	packages, err := r.client.list(ctx, slices.Compact(prefixes), r.Series.wants)
	if err != nil {
		return nil, err
	}
	packages = slices.DeleteFunc(packages, func(p Package) bool {
		return !safeName().MatchString(p.Name) || !safeVersion().MatchString(p.Version) || p.Size <= 0
	})
	for i := range packages {
		p := &packages[i]
		p.File = r.client.file(p.Name, p.Version[strings.Index(p.Version, ":")+1:])
	}
	return r.Series.offers(packages), nil
}

// wants reports whether the patterns match a name.
func (s *Series) wants(name string) bool {
	return slices.ContainsFunc(s.patterns, func(p pattern) bool {
		return p.name.MatchString(name) || slices.ContainsFunc(p.extra, func(e *regexp.Regexp) bool { return e.MatchString(name) })
	})
}

// packageKey is a package's name and version, or the name alone where it is unique.
type packageKey struct{ name, version string }

// offers groups packages by kernel.
func (s *Series) offers(packages []Package) (offers []*Offer) {
	offered := make(map[packageKey]Package)
	for _, p := range packages {
		offered[packageKey{p.Name, p.Version}] = p
		if s.client == "apt" {
			offered[packageKey{p.Name, ""}] = p
		}
	}
	seen := make(map[kernel.Key]bool)
	for i := range s.patterns {
		pat := &s.patterns[i]
		for _, p := range packages {
			o, flavour := s.offer(pat, p)
			if o == nil {
				continue
			}
			// Kernels of two flavours can have one release in RPM's names.
			flavoured := o.Kernel
			flavoured.Release += " " + flavour
			if seen[flavoured] {
				continue
			}
			seen[flavoured] = true
			s.addOthers(o, pat, flavour, offered)
			offers = append(offers, o)
		}
	}
	slices.SortStableFunc(offers, func(a, b *Offer) int {
		return cmp.Or(a.Kernel.Series().Compare(b.Kernel.Series()), a.Kernel.Compare(b.Kernel))
	})
	return offers
}

// offer returns the kernel of a package that a pattern matches, with that package alone. It is nil if the pattern does not match.
func (s *Series) offer(pat *pattern, p Package) (o *Offer, flavour string) {
	m := pat.name.FindStringSubmatch(p.Name)
	if m == nil {
		return nil, ""
	}
	group := func(name string) string {
		if i := pat.name.SubexpIndex(name); i >= 0 {
			return m[i]
		}
		return ""
	}
	o = &Offer{Kernel: s.Key, Debug: pat.debug, Packages: []Package{p}}
	o.Kernel.Release = group("release")
	if s.client == "dnf" {
		_, evr, _ := strings.Cut(":"+p.Version, ":")
		o.Kernel.Release = evr[strings.LastIndex(evr, ":")+1:] + "." + s.machine
	}
	if o.Kernel.Validate() != nil {
		return nil, ""
	}
	if first := (kernel.Key{Release: pat.from}); pat.from != "" && (kernel.Key{Release: o.Kernel.Release}).Compare(first) < 0 {
		return nil, ""
	}
	return o, group("flavour")
}

// addOthers adds the other packages of a kernel that the repositories have.
func (s *Series) addOthers(o *Offer, pat *pattern, flavour string, offered map[packageKey]Package) {
	version := ""
	if s.client == "dnf" {
		version = o.Packages[0].Version
	}
	names := strings.NewReplacer("{release}", o.Kernel.Release, "{flavour}", flavour)
	for _, name := range pat.with {
		if p, ok := offered[packageKey{names.Replace(name), version}]; ok {
			o.Packages = append(o.Packages, p)
		}
	}
}

// Download writes the packages of an offer to an empty folder. The clients check them against the repository's signature.
// An error names its package, unless it is the first.
func (r *Repositories) Download(ctx context.Context, o *Offer, dir string) error {
	part := filepath.Join(dir, "part")
	for i := range o.Packages {
		p := &o.Packages[i]
		if err := os.Mkdir(part, 0o700); err != nil {
			return err
		}
		if err := r.client.download(ctx, p, part); err != nil {
			if i > 0 {
				err = fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
			}
			return err
		}
		if err := os.Rename(filepath.Join(part, p.File), filepath.Join(dir, p.File)); err != nil {
			return err
		}
		if err := os.Remove(part); err != nil {
			return err
		}
	}
	return nil
}

// rename gives the only file in a folder a name. The client has chosen the other.
func rename(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) != 1 || !entries[0].Type().IsRegular() {
		return fmt.Errorf("%d files downloaded, want one", len(entries))
	}
	return os.Rename(filepath.Join(dir, entries[0].Name()), filepath.Join(dir, name))
}

// run runs a client in a folder with options and words from outside, and returns what it prints. Proxies of the environment apply.
func run(ctx context.Context, dir, name string, options []string, words ...string) (string, error) {
	return program.Run(ctx, &program.Command{
		Name: name, Options: options, Words: words, Dir: dir, Env: []string{"DEBIAN_FRONTEND=noninteractive"},
	})
}

// keyFiles returns the keys that exist as files.
func (s *Series) keyFiles() (files []string) {
	for _, k := range s.keys {
		if _, err := os.Stat(k); err == nil {
			files = append(files, k)
		}
	}
	return files
}

// noKey returns the error for a series without a key.
func (s *Series) noKey() error {
	return fmt.Errorf("none of the keys %s exists: %s", strings.Join(s.keys, ", "), cmp.Or(s.install, "the catalogue has no other"))
}
