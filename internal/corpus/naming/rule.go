// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// Rule gives kernels keys by their paths. Its text is
//
//	[PATH=]ID/VERSION_ID/ARCH[/RELEASE]
//
// Each part of the key is literal, - for none, or one of {id}, {version}, {arch} and {release}, which come from the path. PATH is compared with
// the end of a path, level by level, without the suffixes of the file name; * matches anything within a level. Without PATH the parts in braces are
// the names of the directories, and the last one is the name of the file. The default release is that in an image, else in the file name or in the content.
//
//	debian/12/x86_64                     a folder with kernels of one distribution
//	rhel/8/{arch}                        arm64/4.18.0.btf, x86_64/4.18.0.btf
//	{release}/vmlinux=fedora/40/x86_64   6.8.5-301.fc40.x86_64/vmlinux
//	{id}_{version}_{release}={id}/{version}/arm64/{release}
type Rule struct {
	text string
	path *regexp.Regexp
	key  kernel.Key // the parts that are themselves
}

// ErrNoKey is the cause for a kernel without a key.
var ErrNoKey = errors.New("cannot tell the kernel from its path (try --as ID/VERSION_ID/ARCH)")

// String returns the text that r was parsed from.
func (r *Rule) String() string { return r.text }

// keyParts are the parts of a key as rules call them.
var keyParts = [...]string{"id", "version", "arch", "release"}

// Parse reads a Rule.
func Parse(text string) (*Rule, error) {
	r := &Rule{text: text}
	pattern, key, hasPath := cutLast(text, "=")
	parts := strings.Split(key, "/")
	if len(parts) != 3 && len(parts) != 4 {
		return nil, errors.New("want ID/VERSION_ID/ARCH or ID/VERSION_ID/ARCH/RELEASE")
	}
	var from []string // the path
	of := []*string{&r.key.ID, &r.key.VersionID, &r.key.Arch, &r.key.Release}
	for i, p := range parts {
		switch name := "{" + keyParts[i] + "}"; {
		case p == name:
			from = append(from, name)
		case strings.ContainsAny(p, "{}*"):
			return nil, fmt.Errorf("%s stands where only %s or a name can", p, name)
		case p == "-" && i == 1:
		case p == "" || p == "-" || p == "." || p == "..":
			return nil, errors.New("only VERSION_ID may be missing, as -")
		default:
			*of[i] = p
		}
	}
	if err := r.key.Validate(); err != nil {
		return nil, err
	}
	if !hasPath {
		from = slices.DeleteFunc(from, func(p string) bool { return p == "{release}" })
		pattern = path.Join(append(from, "*")...)
		return r, r.compile(pattern)
	}
	for _, p := range from {
		if p != "{release}" && !strings.Contains(pattern, p) {
			return nil, fmt.Errorf("%s is not in %s", p, pattern)
		}
	}
	for i, p := range keyParts {
		name := "{" + p + "}"
		// A key without a RELEASE takes it from {release}.
		unused := i < len(parts) && parts[i] != name
		if c := strings.Count(pattern, name); c > 1 || c > 0 && unused {
			return nil, fmt.Errorf("%s has %s, but %s does not, or more than once", pattern, name, key)
		}
	}
	return r, r.compile(pattern)
}

// cutLast is strings.Cut at the last separator; without one, all of s comes after it.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// variables replaces the variables of a path pattern, whose text is quoted, by groups of a regular expression.
var variables = strings.NewReplacer(`\*`, `[^/]*`, `\{id\}`, `(?P<id>[^/]+?)`, `\{version\}`, `(?P<version>[^/]+?)`,
	`\{arch\}`, `(?P<arch>[A-Za-z0-9_]+)`, `\{release\}`, `(?P<release>[^/]+)`)

// token matches a variable. It is compiled on demand.
var token = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[^{}]*\}`) })

// compile compiles a path pattern.
func (r *Rule) compile(pattern string) (err error) {
	if pattern == "" || path.Clean(pattern) != pattern || strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "../") {
		return fmt.Errorf("%q is not the end of a path", pattern)
	}
	for _, name := range token().FindAllString(pattern, -1) {
		if !slices.Contains(keyParts[:], strings.Trim(name, "{}")) {
			return fmt.Errorf("unknown %s, want {id}, {version}, {arch} or {release}", name)
		}
	}
	text := variables.Replace(regexp.QuoteMeta(pattern))
	r.path, err = regexp.Compile(`(?s)(?:^|/)` + text + "$")
	return err
}

// NamesRelease reports whether r has a release, or says where in a path it is.
func (r *Rule) NamesRelease() bool {
	return r.key.Release != "" || strings.Contains(r.text, "{release}")
}

// Key returns the key of the kernel at a path; the release may be missing. It returns false if r does not fit.
func (r *Rule) Key(p string) (k kernel.Key, ok bool) {
	dir, name := path.Split(path.Clean(p))
	m := r.path.FindStringSubmatch(dir + Stem(name))
	if m == nil {
		return k, false
	}
	k = r.key
	parts := map[string]*string{"id": &k.ID, "version": &k.VersionID, "arch": &k.Arch, "release": &k.Release}
	for i, name := range r.path.SubexpNames() {
		if into := parts[name]; into != nil {
			*into = m[i]
		}
	}
	if k.Release == "" {
		k.Release = KernelKey(p).Release
	}
	return k, k.Validate() == nil && (r.key.Arch != "" || kernel.KnownArch(k.Arch))
}
