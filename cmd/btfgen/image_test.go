// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// TestDockerfile reads the Dockerfile and, at night, builds the program as it does, from the files that .dockerignore admits. The
// program must be static, because the image has no libraries.
func TestDockerfile(t *testing.T) {
	raceflag.SkipSerial(t)
	data, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	ignore, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	r := readerIn(t, nil)
	stage, programs, build, user := 0, []string(nil), "", ""
	labels, bases := "", []string(nil)
	for line := range strings.Lines(string(data)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		args := strings.Fields(rest)
		switch word {
		case "FROM":
			stage++
			programs, user = nil, ""
			for _, a := range args {
				if !strings.HasPrefix(a, "--") {
					bases = append(bases, a)
					break
				}
			}
		case "USER":
			user = rest
		case "LABEL":
			labels = rest
		case "RUN":
			if strings.Contains(rest, "go build") {
				build = rest
			}
		case "COPY":
			if from, ok := strings.CutPrefix(args[0], "--from="); ok {
				if from != "build" {
					t.Errorf("COPY from %s", from)
				}
				programs = append(programs, args[1:len(args)-1]...)
				continue
			}
			for _, name := range args[:len(args)-1] {
				if !strings.Contains(string(ignore), "\n!"+name+"\n") {
					t.Errorf(".dockerignore does not let %s through", name)
				}
				if stage == 1 {
					r.do("cp -r "+filepath.Join(r.root(), name)+" "+args[len(args)-1], statusOK)
				} else if _, err := os.Stat("../../" + name); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, base := range bases[:stage-1] { // pinned by whole version, which Dependabot raises
		if !regexp.MustCompile(`^[a-z]+:[0-9]+\.[0-9]+(\.[0-9]+|-slim)(@sha256:[0-9a-f]{64})?$`).MatchString(base) {
			t.Errorf("%s does not name a version", base)
		}
	}
	if bases[stage-1] != "scratch" || labels == "" {
		t.Errorf("the last image is from %s, with the labels %q", bases[stage-1], labels)
	}
	if stage != 3 || build == "" || len(programs) != 2 || !regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`).MatchString(user) {
		t.Fatalf("%d stages, built by %q to %q, for user %q", stage, build, programs, user)
	}
	if !slow.Night() {
		t.Log("the program was not built: it needs BTFGEN_SLOW=night")
		return
	}
	r.do("find . -name testdata -exec rm -r {} +", statusOK) // .dockerignore leaves these out
	out := filepath.Join(r.dir, "out")
	r.in(r.dir, "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "VERSION=v1.2.3").do(strings.Replace(build, "/out/", out+"/", 1), statusOK)
	for _, program := range programs {
		file := filepath.Join(out, filepath.Base(program))
		f, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Errorf("%s needs libraries, of which the image has none", program)
		}
		if runtime.GOOS == "linux" {
			r.do(file+" --version | grep v1.2.3", statusOK)
		}
	}
}
