// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// action is the part of action.yml that the tests use.
type action struct {
	ref     string `yaml:"-"` // tag or branch in "uses:"
	btfgen  string `yaml:"-"` // installed btfgen, to save a build
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, If, Shell, Run string
			Env                map[string]string
		}
	}
}

// result is the result of a call of the action.
type result struct {
	outputs  map[string]string
	failed   int // exit status of the failed step
	log      string
	summary  string
	programs string // folder added to PATH
}

var condition = regexp.MustCompile(`^inputs\.([a-z-]+) != '([a-z]*)'$`)

// call runs the steps of the action as GitHub's runner does.
func (a *action) call(r *reader, with map[string]string, env ...string) *result {
	r.Helper()
	runner, root := r.TempDir(), r.TempDir()
	values := map[string]string{"github.action_ref": a.ref, "github.action_path": r.root()}
	for name, in := range a.Inputs {
		values["inputs."+name] = in.Default
	}
	for name, v := range with {
		if _, ok := a.Inputs[name]; !ok {
			r.Fatalf("no input %s", name)
		}
		values["inputs."+name] = v
	}
	system := map[string]string{"linux": "Linux", "darwin": "macOS"}[runtime.GOOS]
	machine := map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH]
	if system == "" || machine == "" {
		r.Skipf("skipped: GitHub has no runners of %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	files := map[string]string{}
	for _, f := range []string{"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} {
		files[f] = filepath.Join(root, f)
		env = append(env, f+"="+files[f])
	}
	env = append(env, "GITHUB_ACTIONS=true", "GITHUB_SERVER_URL=https://github.example", "GITHUB_REPOSITORY=o/r", "GITHUB_RUN_ID=7", "GITHUB_WORKSPACE="+r.dir, "RUNNER_TEMP="+runner, "RUNNER_OS="+system, "RUNNER_ARCH="+machine)
	res := &result{outputs: map[string]string{}}
	contents := func(name string) string {
		data, err := os.ReadFile(files[name])
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			r.Fatal(err)
		}
		return string(data)
	}
	for _, s := range a.Runs.Steps {
		if s.Shell != "bash" {
			r.Fatalf("step %s: shell %q", s.ID, s.Shell)
		}
		if s.If != "" {
			m := condition.FindStringSubmatch(s.If)
			if m == nil {
				r.Fatalf("step %s: if: %s", s.ID, s.If)
			}
			if values["inputs."+m[1]] == m[2] {
				continue
			}
		}
		if s.ID == "install" && a.btfgen != "" {
			values["steps.install.outputs.btfgen"] = a.btfgen
			continue
		}
		if expression.MatchString(s.Run) {
			r.Fatalf("step %s puts an expression into a script, where it is code", s.ID)
		}
		script := filepath.Join(root, s.ID+".sh")
		if err := os.WriteFile(script, []byte(s.Run), 0o666); err != nil {
			r.Fatal(err)
		}
		os.Remove(files["GITHUB_OUTPUT"])
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir, cmd.Env = r.dir, append(slices.Clip(r.env), env...)
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			cmd.Env = append(cmd.Env, name+"="+r.fill(s.Env[name], values))
		}
		out, err := cmd.CombinedOutput()
		res.log += string(out)
		for line := range strings.Lines(contents("GITHUB_OUTPUT")) {
			name, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			if !ok {
				r.Fatalf("step %s: output %q", s.ID, line)
			}
			values["steps."+s.ID+".outputs."+name] = v
		}
		if err != nil {
			res.failed = exitCode(err)
			break
		}
	}
	for name, o := range a.Outputs {
		m := expression.FindStringSubmatch(o.Value)
		if m == nil {
			r.Fatalf("output %s: %s", name, o.Value)
		}
		res.outputs[name] = values[m[1]] // empty if the step did not run
	}
	res.summary, res.programs = contents("GITHUB_STEP_SUMMARY"), strings.TrimSpace(contents("GITHUB_PATH"))
	if n := strings.Count(res.summary, "\n"); n > 12 || res.summary != "" && !strings.Contains(res.summary, "(https://github.example/o/r/actions/runs/7)") {
		r.Errorf("a summary of %d lines:\n%s", n, res.summary)
	}
	return res
}

func readAction(t *testing.T) *action {
	t.Helper()
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	a := &action{ref: "main"}
	if err := yaml.Unmarshal(data, a); err != nil {
		t.Fatal(err)
	}
	if a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
		t.Fatalf("runs: %+v", a.Runs)
	}
	return a
}

// TestAction runs each command of the action, which at night builds btfgen from source.
func TestAction(t *testing.T) {
	slow.Skip(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	a, r := readAction(t), readerIn(t, pageContents(t))
	if !slow.Night() {
		path, err := exec.LookPath("btfgen")
		if err != nil {
			t.Fatal(err)
		}
		a.btfgen = path
	}
	made := a.call(r, map[string]string{"command": "generate", "btf": "kernels", "objects": "tracer.bpf.o\n\n  testdata/bpf/netprogs.bpfel.o  \n",
		"select": "debian=12\ndebian=11", "output": "tracer.btfa", "args": "--keep=enum:pid_type"})
	if made.failed != 0 || made.outputs["status"] != "0" || made.outputs["output"] != "tracer.btfa" {
		t.Fatalf("generate: %d, %v\n%s", made.failed, made.outputs, made.log)
	}
	if !strings.Contains(made.summary, "btfgen generate") || !strings.Contains(made.summary, "3 kernels") {
		t.Errorf("summary of generate: %s", made.summary)
	}
	btfgen := made.outputs["btfgen"]
	if slow.Night() && filepath.Dir(btfgen) != made.programs {
		t.Errorf("%s is not in %s, which is in PATH", btfgen, made.programs)
	}
	a.btfgen = btfgen
	r.do(btfgen+" generate --btf kernels --select debian=12 --select debian=11 --keep enum:pid_type -o direct.btfa tracer.bpf.o testdata/bpf/netprogs.bpfel.o", statusOK)
	if !bytes.Equal(r.read("tracer.btfa"), r.read("direct.btfa")) {
		t.Error("the archive is not that of the command line")
	}
	var report struct{ Kernels int }
	if data, err := os.ReadFile(made.outputs["report"]); err != nil || json.Unmarshal(data, &report) != nil || report.Kernels != 3 {
		t.Errorf("report of generate: %v\n%s", err, data)
	}

	proof := a.call(r, map[string]string{"command": "verify", "archive": "direct.btfa", "btf": "kernels", "select": "debian=12", "report": "proof.json",
		"objects": "tracer.bpf.o"})
	if proof.failed != 0 || proof.outputs["report"] != "proof.json" || !json.Valid(lastLine(r.read("proof.json"))) {
		t.Errorf("verify: %d, %v\n%s", proof.failed, proof.outputs, proof.log)
	}

	// Findings fail the step, but it still sets its outputs.
	with := map[string]string{"command": "check", "btf": "kernels", "objects": "testdata/bpf/broken.bpfel.o", "format": "html"}
	bad := a.call(r, with)
	page, err := os.ReadFile(bad.outputs["report"])
	if bad.failed != statusFindings || bad.outputs["status"] != "3" || err != nil || !bytes.Contains(bytes.ToLower(page[:min(100, len(page))]), []byte("<!doctype html>")) {
		t.Errorf("check: %d, %v, %v\n%s", bad.failed, bad.outputs, err, bad.log)
	}
	if filepath.Ext(bad.outputs["report"]) != ".html" || !strings.Contains(bad.summary, "broken.bpfel.o") || !strings.Contains(bad.log, "::error title=btfgen check") {
		t.Errorf("check: report %s, summary %s\n%s", bad.outputs["report"], bad.summary, bad.log)
	}
	with["fail-on"], with["format"] = "none", "markdown"
	if clean := a.call(r, with); clean.failed != 0 || clean.outputs["status"] != "0" || filepath.Ext(clean.outputs["report"]) != ".md" {
		t.Errorf("check that fails on nothing: %d, %v\n%s", clean.failed, clean.outputs, clean.log)
	}

	// The summary does not cost a second run, which would replace the user's output.
	with["format"], with["args"] = "json", "--output=mine.json"
	if c := a.call(r, with); c.failed != 0 || !json.Valid([]byte(r.read("mine.json"))) || !strings.Contains(c.summary, "broken.bpfel.o") {
		t.Errorf("check with an output of its own: %d, %s, summary %s\n%s", c.failed, r.read("mine.json"), c.summary, c.log)
	}

	// The steps in docs/howto-pipelines.md work.
	var steps []struct {
		Uses string
		With map[string]string
	}
	if err := yaml.Unmarshal([]byte(readPage(t, "docs/howto-pipelines.md").files[0]), &steps); err != nil {
		t.Fatal(err)
	}
	if len(steps) == 0 {
		t.Error("no steps")
	}
	for _, s := range steps {
		if c := a.call(r, s.With); c.failed != 0 || c.outputs["report"] == "" {
			t.Errorf("%v: %d, %v\n%s", s, c.failed, c.outputs, c.log)
		}
	}

	// btfgen.yaml supplies inputs that are not set.
	r.write("btfgen.yaml", "btf: kernels\nobjects: [tracer.bpf.o]\ncheck: { require: ['debian>=12'] }\n")
	if c := a.call(r, map[string]string{"command": "check"}); c.failed != 0 {
		t.Errorf("check of btfgen.yaml: %d\n%s", c.failed, c.log)
	}

	r.write("btfgen.yaml", "btf: kernels\nobjects: [tracer.bpf.o]\ngenerate: { output: named.btfa }\n")
	if c := a.call(r, map[string]string{"command": "generate"}); c.failed != 0 || c.outputs["output"] != "named.btfa" {
		t.Errorf("generate of btfgen.yaml: %d, %v\n%s", c.failed, c.outputs, c.log)
	}

	// Objects and kernels may be patterns, and reports have the suffix of their format.
	for format, ext := range map[string]string{"junit": ".xml", "text": ".txt"} {
		with := map[string]string{"command": "check", "btf": "kern*", "objects": "tracer.*.o\ntestdata/bpf/netprogs.*", "format": format, "fail-on": "none"}
		c := a.call(r, with)
		if c.failed != 0 || filepath.Ext(c.outputs["report"]) != ext {
			t.Errorf("check of patterns: %d, %v\n%s", c.failed, c.outputs, c.log)
		}
	}

	for _, with := range []map[string]string{{"command": "lint"}, {"command": "check", "objects": "$(touch injected) `touch injected`"}} {
		if c := a.call(r, with); c.failed == 0 || !strings.Contains(c.log, "::error") {
			t.Errorf("%v: %d\n%s", with, c.failed, c.log)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "injected")); err == nil {
		t.Error("an input was executed")
	}
}

// lastLine returns the last line of a text that ends with a newline.
func lastLine(text []byte) []byte {
	text = bytes.TrimSuffix(text, []byte("\n"))
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// download is a fake curl that downloads the files of one release.
const download = `#!/bin/sh
while [ $# -gt 1 ]; do
	case $1 in -o) to=$2; shift ;; esac
	shift
done
cp "$RELEASES/${1#https://github.com/btfgen/btfgen/releases/download/}" "$to" || exit 22
`

// TestActionRelease installs a release, and checks that the action rejects files that do not match their checksums.
func TestActionRelease(t *testing.T) {
	slow.Skip(t)
	for _, tool := range []string{"bash", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	a, r := readAction(t), readerIn(t, map[string]string{})
	name := fmt.Sprintf("btfgen-1.2.3-%s-%s", runtime.GOOS, runtime.GOARCH)
	r.do("mkdir -p bin v1.2.3 "+name+"/bin", statusOK)
	r.write("bin/curl", download)
	r.write(name+"/bin/btfgen", "#!/bin/sh\necho a release\n")
	r.do("tar -czf v1.2.3/"+name+".tar.gz "+name, statusOK)
	name += ".tar.gz"
	sum := fmt.Sprintf("%x  %s\n", sha256.Sum256(r.read("v1.2.3/"+name)), name)
	env := []string{"RELEASES=" + r.dir, "PATH=" + filepath.Join(r.dir, "bin") + ":" + os.Getenv("PATH")}
	for _, tt := range []struct{ what, sums, version, want string }{
		{"as published", "0  other.tar.gz\n" + sum, "v1.2.3", "a release\n"},
		{"another file", strings.Repeat("0", 64) + "  " + name + "\n", "v1.2.3", "FAILED"},
		{"no sum", "0  other.tar.gz\n", "v1.2.3", "::error::SHA256SUMS of v1.2.3 has no " + name},
		{"two sums", sum + sum, "v1.2.3", "::error::"},
		{"no such release", sum, "v1.2.4", "v1.2.4"},
	} {
		r.write("v1.2.3/SHA256SUMS", tt.sums)
		c := a.call(r, map[string]string{"command": "install", "version": tt.version}, env...)
		if installed := c.outputs["btfgen"] != ""; installed != (tt.want == "a release\n") || (c.failed == 0) != installed || !strings.Contains(c.log, tt.want) {
			t.Errorf("%s: %d, %v\n%s", tt.what, c.failed, c.outputs, c.log)
		}
	}

	// Called by the tag of a release, the action installs that release.
	r.write("v1.2.3/SHA256SUMS", sum)
	a.ref = "v1.2.3"
	if c := a.call(r, map[string]string{"command": "install"}, env...); c.failed != 0 || !strings.Contains(c.log, "a release\n") {
		t.Errorf("called by its tag: %d\n%s", c.failed, c.log)
	}
}
