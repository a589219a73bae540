// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// dnf runs dnf and rpmkeys with a configuration, a cache and a database of keys of their own.
type dnf struct {
	command []string
	keys    string // the database
	machine string
}

func newDnf(ctx context.Context, s *Series, dir string) (client, error) {
	if err := errors.Join(need("dnf", "packages dnf and dnf-plugins-core"), need("rpmkeys", "package rpm")); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(dir, isSpaceOrControl) {
		return nil, fmt.Errorf("%q: dnf cannot use a folder with such a name", dir)
	}
	d := &dnf{keys: filepath.Join(dir, "keys"), machine: s.machine}
	config, repos := filepath.Join(dir, "dnf.conf"), filepath.Join(dir, "repos")
	d.command = []string{"dnf", "-c", config, "--installroot=" + filepath.Join(dir, "root"), "--releasever=" + s.Key.VersionID, "--forcearch=" + s.machine, "-q", "-y"}
	var sources strings.Builder
	for i, r := range s.repositories {
		fmt.Fprintf(&sources, "[catalogue-%d]\nname=catalogue-%d\nbaseurl=%s\nenabled=1\n\n", i, i, r.URL)
	}
	if err := os.RemoveAll(d.keys); err != nil {
		return nil, err
	}
	for _, sub := range []string{"keys", "repos", "root", "vars"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	// The settings below are not prefixed with the root, except for those of the cache, the logs and the state.
	text := fmt.Sprintf("[main]\nreposdir=%s\nvarsdir=%s/vars\npluginconfpath=%[2]s/vars\ncachedir=/cache\nlogdir=/log\npersistdir=/lib\nmetadata_expire=never\ngpgcheck=1\nkeepcache=0\n", repos, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(repos, "catalogue.repo"), []byte(sources.String()), 0o600); err != nil {
		return nil, err
	}
	keys := s.keyFiles()
	if len(keys) == 0 {
		for _, k := range s.keys {
			if strings.HasPrefix(k, "https://") {
				keys = append(keys, k)
			}
		}
	}
	if len(keys) == 0 {
		return nil, s.noKey()
	}
	for _, k := range keys {
		if _, err := run(ctx, "", "rpmkeys", "--dbpath", d.keys, "--import", k); err != nil {
			return nil, fmt.Errorf("key %s: %w", k, err)
		}
	}
	return d, nil
}

func (d *dnf) run(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "", append(d.command[:len(d.command):len(d.command)], args...)...)
}

func (d *dnf) update(ctx context.Context) error {
	_, err := d.run(ctx, "--refresh", "makecache")
	return err
}

func (d *dnf) list(ctx context.Context, prefixes []string, want func(string) bool) (all []Package, err error) {
	args := []string{"-C", "repoquery", "--arch=" + d.machine, "--qf", `%{name} %{epoch}:%{version}-%{release} %{downloadsize}\n`}
	for _, p := range prefixes {
		args = append(args, p+"*")
	}
	out, err := d.run(ctx, args...)
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
	if _, err := d.run(ctx, "download", "--destdir", dir, p.Name+"-"+p.Version+"."+d.machine); err != nil {
		return err
	}
	if err := rename(dir, p.File); err != nil {
		return err
	}
	// dnf download does not check signatures.
	if _, err := run(ctx, dir, "rpmkeys", "--dbpath", d.keys, "--define", "_pkgverify_level all", "--checksig", "./"+p.File); err != nil {
		return fmt.Errorf("its signature is wrong or missing: %w", err)
	}
	return nil
}

func (d *dnf) file(name, version string) string {
	return name + "-" + version + "." + d.machine + ".rpm"
}
