// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// fieldTrust has tests of TestField about trust in outside data.
var fieldTrust = map[string]func(t *testing.T, c *cases){
	"config-git-link": func(t *testing.T, c *cases) {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("needs git")
		}
		r := c.run(t, "config-git-link")
		r.want(t, `btfgen\.yaml:4:11: output: g/hooks/pre-commit is in \.git: type --output`, `\[btfgen check: 2\]`)
		r.absent(t, "co/PWNED")
		if hook, err := os.ReadFile(filepath.Join(r.dir, "co/.git/hooks/pre-commit")); err != nil || string(hook) != "#!/bin/sh\nexit 0\n" {
			t.Errorf("%v: the hook is %q", err, hook)
		}
	},
	"init-make": func(t *testing.T, c *cases) {
		r := c.run(t, "init-make")
		r.want(t, `a\$\(shell touch PWN5\)\.bpf\.o: init cannot write `, `\[btfgen init: 1\]`)
		r.absent(t, "p/PWN5", "p/btfgen.yaml", "p/btfgen.mk")
	},
}
