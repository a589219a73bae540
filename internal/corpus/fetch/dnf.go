// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/workers/program"
)

// dnf runs dnf and rpmkeys with a configuration, a cache and a database of keys of their own.
type dnf struct {
	options []string // options common to all commands
	keys    string   // the database, which download makes
	trusted []string // the keys
	machine string
	once    sync.Once
	err     error // why there is no database
}

func newDnf(s *Series, dir string) (client, error) {
	for _, name := range []string{"dnf", "rpmkeys"} {
		if _, err := program.Find(name); err != nil {
			return nil, err
		}
	}
	if strings.ContainsFunc(dir, isSpaceOrControl) {
		return nil, fmt.Errorf("%q: dnf cannot use a folder with such a name", dir)
	}
	d := &dnf{keys: filepath.Join(dir, "keys"), machine: s.machine}
	config, repos := filepath.Join(dir, "dnf.conf"), filepath.Join(dir, "repos")
	d.options = []string{
		"-c", config, "--installroot=" + filepath.Join(dir, "root"),
		"--releasever=" + s.Key.VersionID, "--forcearch=" + s.machine, "-q", "-y",
	}
	var sources strings.Builder
	for i, r := range s.repositories {
		fmt.Fprintf(&sources, "[catalogue-%d]\nname=catalogue-%d\nbaseurl=%s\nenabled=1\n\n", i, i, r.URL)
	}
	for _, sub := range []string{"repos", "root", "vars"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	// The settings below are not prefixed with the root, except for those of the cache, the logs and the state.
	text := fmt.Sprintf("[main]\nreposdir=%s\nvarsdir=%s/vars\npluginconfpath=%[2]s/vars\n"+
		"cachedir=/cache\nlogdir=/log\npersistdir=/lib\nmetadata_expire=never\ngpgcheck=1\nkeepcache=0\n", repos, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(repos, "catalogue.repo"), []byte(sources.String()), 0o600); err != nil {
		return nil, err
	}
	if d.trusted = s.keyFiles(); len(d.trusted) == 0 {
		for _, k := range s.keys {
			if strings.HasPrefix(k, "https://") {
				d.trusted = append(d.trusted, k)
			}
		}
	}
	if len(d.trusted) == 0 {
		return nil, s.noKey()
	}
	return d, nil
}

// trust makes the database of keys.
func (d *dnf) trust(ctx context.Context) error {
	if err := os.RemoveAll(d.keys); err != nil {
		return err
	}
	if err := os.Mkdir(d.keys, 0o700); err != nil {
		return err
	}
	for _, k := range d.trusted {
		if _, err := run(ctx, "", "rpmkeys", []string{"--dbpath", d.keys, "--import"}, k); err != nil {
			return fmt.Errorf("key %s: %w", k, err)
		}
	}
	return nil
}

func (d *dnf) run(ctx context.Context, options []string, words ...string) (string, error) {
	return run(ctx, "", "dnf", slices.Concat(d.options, options), words...)
}

func (d *dnf) update(ctx context.Context) error {
	_, err := d.run(ctx, []string{"--refresh", "makecache"})
	return err
}

func (d *dnf) list(ctx context.Context, prefixes []string, want func(string) bool) (all []Package, err error) {
	var globs []string
	for _, p := range prefixes {
		globs = append(globs, p+"*")
	}
	out, err := d.run(ctx, []string{"-C", "repoquery", "--arch=" + d.machine, "--qf", `%{name} %{epoch}:%{version}-%{release} %{downloadsize}\n`}, globs...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 || !want(f[0]) {
			continue
		}
		size, _ := strconv.ParseInt(f[2], 10, 64)
		all = append(all, Package{Name: f[0], Version: f[1], Size: size})
	}
	return all, nil
}

func (d *dnf) download(ctx context.Context, p *Package, dir string) error {
	if d.once.Do(func() { d.err = d.trust(ctx) }); d.err != nil {
		return d.err
	}
	if _, err := d.run(ctx, []string{"download", "--destdir", dir}, p.Name+"-"+p.Version+"."+d.machine); err != nil {
		return err
	}
	if err := rename(dir, p.File); err != nil {
		return err
	}
	// dnf download does not check signatures.
	if _, err := run(ctx, dir, "rpmkeys", []string{"--dbpath", d.keys, "--define", "_pkgverify_level all", "--checksig"}, p.File); err != nil {
		return fmt.Errorf("its signature is wrong or missing: %w", err)
	}
	return nil
}

func (d *dnf) file(name, version string) string {
	return name + "-" + version + "." + d.machine + ".rpm"
}
