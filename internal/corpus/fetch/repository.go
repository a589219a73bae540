// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Package is a package that a repository offers.
type Package struct {
	Name, Version string
	Size          int64  // of the file
	Sum           string // SHA-256 in hexadecimal, of apt only
	File          string // name of the file: safe, and different from those of other packages in the series
}

// Unit is the packages of one kernel.
type Unit struct {
	Kernel   kernel.Key // as the names of the packages say
	Debug    bool       // the kernel has DWARF only
	Packages []Package  // the first has the kernel
}

// Size returns the bytes of all packages.
func (u *Unit) Size() (n int64) {
	for _, p := range u.Packages {
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

// Open reads the indexes of the repositories of a series. Files that the next run can use are in a folder below cache. mirrors maps
// beginnings of addresses in the catalogue to others.
func (s *Series) Open(ctx context.Context, cache string, mirrors map[string]string) (*Repositories, error) {
	own := *s
	own.repositories = slices.Clone(s.repositories)
	for i := range own.repositories {
		r := &own.repositories[i]
		for from, to := range mirrors {
			if rest, ok := strings.CutPrefix(r.URL, from); ok {
				r.URL = to + rest
			}
		}
		if err := checkURL(r.URL); err != nil {
			return nil, err
		}
	}
	dir := filepath.Join(cache, s.Key.ID+"-"+s.Key.VersionID+"-"+s.Key.Arch)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	newClient := newApt
	if s.client == "dnf" {
		newClient = newDnf
	}
	c, err := newClient(ctx, &own, dir)
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

// Units returns the kernels that the repositories offer, in order. If there are packages with BTF and
// with DWARF for one kernel, the pattern that comes first counts.
func (r *Repositories) Units(ctx context.Context) ([]*Unit, error) {
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
	return r.Series.units(packages), nil
}

// wants reports whether the patterns match a name.
func (s *Series) wants(name string) bool {
	return slices.ContainsFunc(s.patterns, func(p pattern) bool {
		return p.name.MatchString(name) || slices.ContainsFunc(p.extra, func(e *regexp.Regexp) bool { return e.MatchString(name) })
	})
}

// units groups packages by kernel.
func (s *Series) units(packages []Package) (units []*Unit) {
	type id struct{ name, version string }
	offered := make(map[id]Package) // for apt also by name alone, which is unique
	for _, p := range packages {
		offered[id{p.Name, p.Version}] = p
		if s.client == "apt" {
			offered[id{p.Name, ""}] = p
		}
	}
	seen := make(map[kernel.Key]bool)
	for _, pat := range s.patterns {
		for _, p := range packages {
			m := pat.name.FindStringSubmatch(p.Name)
			if m == nil {
				continue
			}
			group := func(name string) string {
				if i := pat.name.SubexpIndex(name); i >= 0 {
					return m[i]
				}
				return ""
			}
			u := &Unit{Kernel: s.Key, Debug: pat.debug, Packages: []Package{p}}
			version := ""
			if u.Kernel.Release = group("release"); s.client == "dnf" {
				_, evr, _ := strings.Cut(":"+p.Version, ":")
				u.Kernel.Release = evr[strings.LastIndex(evr, ":")+1:] + "." + s.machine
				version = p.Version
			}
			// Kernels of two flavours can have one release in RPM's names.
			flavour := group("flavour")
			flavoured := u.Kernel
			flavoured.Release += " " + flavour
			first := kernel.Key{Release: pat.from}
			if seen[flavoured] || u.Kernel.Validate() != nil || pat.from != "" && (kernel.Key{Release: u.Kernel.Release}).Compare(first) < 0 {
				continue
			}
			seen[flavoured] = true
			for _, w := range pat.with {
				name := strings.NewReplacer("{release}", u.Kernel.Release, "{flavour}", flavour).Replace(w)
				if with, ok := offered[id{name, version}]; ok {
					u.Packages = append(u.Packages, with)
				}
			}
			units = append(units, u)
		}
	}
	slices.SortStableFunc(units, func(a, b *Unit) int {
		return cmp.Or(a.Kernel.Series().Compare(b.Kernel.Series()), a.Kernel.Compare(b.Kernel))
	})
	return units
}

// Download writes the packages of a unit to an empty folder. The clients check them against the repository's signature.
// An error names its package, unless it is the first.
func (r *Repositories) Download(ctx context.Context, u *Unit, dir string) error {
	part := filepath.Join(dir, "part")
	for i := range u.Packages {
		p := &u.Packages[i]
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

// maxList is the number of bytes that a client may print. Ubuntu's kernels take 3 MB.
const maxList = 64 << 20

// bounded is output of a client.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxList {
		return 0, fmt.Errorf("more than %d bytes of output", maxList)
	}
	return b.Buffer.Write(p)
}

// run runs a program in a folder, and returns what it prints. Proxies and other settings of the environment apply.
func run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	endWithParent(cmd)
	out, said := new(bounded), new(bounded)
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return out.String(), fmt.Errorf("%s: %w", filepath.Base(args[0]), cmp.Or(reason(said.String()), err))
	}
	return out.String(), nil
}

// reason returns the first line of a program's messages that is an error, or else the last line.
func reason(said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	isError := func(l string) bool {
		return strings.HasPrefix(l, "E: ") || strings.HasPrefix(l, "Error: ") || strings.HasPrefix(l, "error: ")
	}
	line := lines[len(lines)-1]
	if i := slices.IndexFunc(lines, isError); i >= 0 {
		line = lines[i]
	}
	if line == "" {
		return nil
	}
	return errors.New(line)
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

// need returns an error if a program is missing.
func need(program, install string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("needs %s (%s)", program, install)
	}
	return nil
}
