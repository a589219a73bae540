// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPinned checks that workflows and examples name each action by a commit, with its version in a comment, and all the same one. Dependabot
// updates those of .github; this test then says which examples are behind.
func TestPinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)\buses: *(\S+)(?: +# *(\S+))?$`)
	pinned := regexp.MustCompile(`^([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+)@([0-9a-f]{40})$`)
	first := make(map[string]string)
	for name, text := range pagesIn(t, ".github/workflows/*.yml", "examples/pipelines/*.yml") {
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "./") {
				continue
			}
			action := pinned.FindStringSubmatch(m[1])
			if action == nil || !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(m[2]) {
				t.Errorf("%s: want ACTION@COMMIT # vX.Y.Z: %s", name, m[0])
				continue
			}
			pin := action[2] + " " + m[2]
			if first[action[1]] = cmp.Or(first[action[1]], pin); first[action[1]] != pin {
				t.Errorf("%s: %s is %s here, and %s elsewhere", name, action[1], pin, first[action[1]])
			}
		}
	}
	if len(first) < 6 {
		t.Errorf("%d actions", len(first))
	}
}

// TestReleaseNamed checks that pages and examples install the newest release of CHANGELOG.md or, before the first, v0.1.0; that the
// readers in other languages have its version; and that the Dockerfile of a release names its base images by digest.
func TestReleaseNamed(t *testing.T) {
	release, released := "v0.1.0", false
	if m := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+\S*) - `).FindStringSubmatch(pagesIn(t, "CHANGELOG.md")["CHANGELOG.md"]); m != nil {
		release, released = "v"+m[1], true
	}
	var named []string
	for name, text := range pagesIn(t, "README.md", "docs/*.md", "examples/*.md", "examples/pipelines/*.yml") {
		for _, m := range regexp.MustCompile(`\b(?:btfgen(?:/btfgen|-registry)?(?:/cmd/[a-z-]+)?@|VERSION: )(v[0-9]\S*|latest)`).FindAllStringSubmatch(text, -1) {
			named = append(named, name)
			if version := strings.Trim(m[1], "`\",;"); version != release && version != "v0.0.0" { // a replace directive needs it
				t.Errorf("%s: %s is not the newest release, %s", name, m[0], release)
			}
		}
	}
	if !slices.Contains(named, "docs/howto-pipelines.md") || !slices.Contains(named, "examples/pipelines/corpus-push.yml") {
		t.Errorf("finds only those of %q", named)
	}
	for name, line := range map[string]string{
		"lib/c/Makefile": `VERSION := (.+)`, "lib/rust/Cargo.toml": `version = "(.+)"`, "lib/python/pyproject.toml": `version = "(.+)"`,
	} {
		m := regexp.MustCompile(`(?m)^` + line + `$`).FindStringSubmatch(pagesIn(t, name)[name])
		if m == nil || "v"+m[1] != release {
			t.Errorf("%s: the version is not that of the newest release, %s: %q", name, release, m)
		}
	}
	bases := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?([a-z]+:\S+)`).FindAllStringSubmatch(pagesIn(t, "Dockerfile")["Dockerfile"], -1)
	for _, m := range bases {
		if released && !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(m[1]) {
			t.Errorf("Dockerfile: %s has no digest; docs/howto-packaging.md says how to add it", m[1])
		}
	}
	if len(bases) != 2 {
		t.Errorf("Dockerfile: %d base images", len(bases))
	}
}
