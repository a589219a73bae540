// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testregistry"
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
	"catalogue-unbounded": func(t *testing.T, c *cases) {
		for _, r := range []*caseRun{
			c.run(t, "catalogue-unbounded"),
			c.commands(t, "catalogue-unbounded", `ulimit -v 4000000; btfgen check --boot debian/12 --btfgen /dev/zero $TESTDATA/bpf/execsnoop.bpfel.o`),
			c.commands(t, "catalogue-unbounded", `ulimit -v 4000000; btfgen check --boot debian/12 --command /dev/zero $TESTDATA/bpf/execsnoop.bpfel.o`),
		} {
			r.want(t, `/dev/zero: .*too large: more than \d+ bytes`, `\[btfgen [a-z ]*: 2\]`)
			if r.memory > 1<<30 {
				t.Errorf("%d MB of memory", r.memory>>20)
			}
			r.absent(t, "x.btfc")
		}
	},
	"registry-slow": func(t *testing.T, c *cases) {
		slow.Nightly(t)
		testregistry.Program(t)
		c.commands(t, "registry-slow", "cp evil.go.txt evil.go; head -c 100000 /dev/zero >GOOD.btfc; go build -o evil evil.go")
		evil := exec.Command("./evil", "GOOD.btfc", "127.0.0.3")
		evil.Dir = filepath.Join(c.dir, "registry-slow")
		if err := evil.Start(); err != nil {
			t.Fatal(err)
		}
		defer evil.Wait()
		defer evil.Process.Kill()
		r := c.commands(t, "registry-slow", `
btfgen() { sh `+c.bin+`/btfgen "$@"; }
PATH=${PATH#*:} # without the scripts in place of other programs
for name in slow slowman never; do
	btfgen corpus pull 127.0.0.1:18080/$name/x:v1 -o $name.btfc >$name.out 2>&1 &
done
wait
cat slow.out slowman.out never.out`)
		const pull = `\[btfgen corpus pull: 1\]`
		r.want(t, `the registry is too slow`, pull, `waiting for the registry`, `the registry is too slow`, pull, `waiting for the registry`, `timeout awaiting response headers`, pull)
		r.absent(t, "slow.btfc", "slowman.btfc", "never.btfc")
	},
}
