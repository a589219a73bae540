// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/workers/program"
)

// apt runs apt-get and apt-cache with an index, cache and sources of its own. Other settings of the host, such as proxies, apply.
type apt struct {
	config, machine string
	keys            []string // files
}

// aptConfig is the configuration of a root. Hooks do not run, and packages without a signature are refused whatever the host allows.
const aptConfig = `#clear APT::Update;
#clear APT::Architectures;
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Sandbox::User "%[3]s";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::Check-Valid-Until "false";
Acquire::GzipIndexes "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Dir::State "%[1]s";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "%[1]s/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
`

func newApt(s *Series, dir string) (client, error) {
	for _, name := range []string{"apt-get", "apt-cache"} {
		if _, err := program.Find(name); err != nil {
			return nil, err
		}
	}
	keys := s.keyFiles()
	if len(keys) == 0 {
		return nil, s.noKey()
	}
	if strings.ContainsFunc(dir, isSpaceOrControl) || strings.Contains(dir, `"`) {
		return nil, fmt.Errorf("%q: apt cannot use a folder with such a name", dir)
	}
	var sources strings.Builder
	for _, r := range s.repositories {
		fmt.Fprintf(&sources, "Types: deb\nURIs: %s\nSuites: %s\nSigned-By: %s\n", r.URL, strings.Join(r.Suites, " "), strings.Join(keys, " "))
		if len(r.Components) > 0 {
			fmt.Fprintf(&sources, "Components: %s\n", strings.Join(r.Components, " "))
		}
		sources.WriteByte('\n')
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "sources"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	a := &apt{filepath.Join(dir, "apt.conf"), s.machine, keys}
	for name, text := range map[string]string{
		"status": "", "sources/catalogue.sources": sources.String(), "apt.conf": fmt.Sprintf(aptConfig, dir, s.machine, me.Username),
	} {
		path := filepath.Join(dir, name)
		if old, err := os.ReadFile(path); err == nil && string(old) == text {
			continue // apt reads all indexes again if its configuration is newer
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *apt) update(ctx context.Context) error {
	_, err := run(ctx, "", "apt-get", []string{"-c", a.config, "-qq", "-o", "APT::Update::Error-Mode=any", "update"})
	return otherKey(err, a.keys)
}

// missingKey matches the fingerprint of a key that apt's verifier, gpgv or sqv, does not have.
var missingKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:NO_PUBKEY|[Mm]issing key) ([0-9A-F]{8,64})\b`) })

// unsigned ends apt's error about a repository that has no signature, or none by a key that apt was given.
const unsigned = "is not signed."

// otherKey returns an error with the keys that sign a repository if apt does not have them. apt names these in a warning.
func otherKey(err error, files []string) error {
	var e *program.Error
	if !errors.As(err, &e) || !strings.HasSuffix(e.Err.Error(), unsigned) {
		return err
	}
	var keys []string
	for _, m := range missingKey().FindAllStringSubmatch(e.Said, 10) {
		if !slices.Contains(keys, m[1]) {
			keys = append(keys, m[1])
		}
	}
	if keys == nil {
		return err
	}
	return fmt.Errorf("%sis signed with another key, %s, which is not in %s", strings.TrimSuffix(err.Error(), unsigned), strings.Join(keys, " or "), strings.Join(files, " or "))
}

func (a *apt) list(ctx context.Context, prefixes []string, want func(string) bool) (all []Package, err error) {
	var names []string
	for _, p := range prefixes {
		out, err := run(ctx, "", "apt-cache", []string{"-c", a.config, "pkgnames"}, p)
		if err != nil {
			return nil, err
		}
		for name := range strings.FieldsSeq(out) {
			if safeName().MatchString(name) && want(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	for some := range slices.Chunk(slices.Compact(names), 500) {
		// A name that only other packages mention is an error, but the others are printed.
		out, err := run(ctx, "", "apt-cache", []string{"-c", a.config, "show", "--no-all-versions"}, some...)
		if err != nil && (ctx.Err() != nil || out == "") {
			return nil, err
		}
		all = append(all, parseStanzas(out)...)
	}
	return all, nil
}

// parseStanzas reads the descriptions of packages that apt-cache show prints.
func parseStanzas(text string) (all []Package) {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		var p Package
		for line := range strings.Lines(stanza) {
			field, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); field {
			case "Package":
				p.Name = value
			case "Version":
				p.Version = value
			case "Size":
				p.Size, _ = strconv.ParseInt(value, 10, 64)
			case "SHA256":
				p.Sum = value
			}
		}
		if p.Name != "" {
			all = append(all, p)
		}
	}
	return all
}

func (a *apt) download(ctx context.Context, p *Package, dir string) error {
	if p.Sum == "" {
		return errors.New("the repository has no SHA-256 of it")
	}
	if _, err := run(ctx, dir, "apt-get", []string{"-c", a.config, "-qq", "download"}, p.Name+"="+p.Version); err != nil {
		return err
	}
	return rename(dir, p.File)
}

func (a *apt) file(name, version string) string {
	return name + "_" + version + "_" + a.machine + ".deb"
}
