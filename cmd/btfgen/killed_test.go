// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// killJob is a command that writes files and is killed. It has its own directory.
type killJob struct {
	name string
	args []string
	old  map[string]string // files before the job, by name; "->" begins the target of a link

	whole bool // all files are old or all are new, unless the list of the directory is incomplete
	// Results of an undisturbed run:
	before, after map[string]string
	took          time.Duration
}

// killJobs returns all commands that write files, with all formats. from has their inputs.
func killJobs(t *testing.T, from string) []*killJob {
	t.Helper()
	td, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	source, kernel := filepath.Join(td, "vmlinux/debian/12"), filepath.Join(td, "vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	object, another := filepath.Join(td, "bpf/tcplife.bpfel.o"), filepath.Join(td, "bpf/execsnoop.bpfel.o")
	a, b := filepath.Join(from, "a.btfa"), filepath.Join(from, "b.btfa")
	for _, args := range [][]string{
		{"generate", "--btf", source, "-o", a, object},
		{"generate", "--btf", filepath.Join(td, "vmlinux/debian/11"), "-o", b, object},
		{"corpus", "extract", source, "-o", filepath.Join(from, "raw") + "/"},
		{"corpus", "import", filepath.Join(td, "vmlinux/debian/12/arm64"), "-o", filepath.Join(from, "packed.btfc")},
	} {
		var stderr bytes.Buffer
		if s := run(t.Context(), args, &stderr, &stderr); s != statusOK && s != statusFindings {
			t.Fatalf("%q: exit status %d: %s", args, s, &stderr)
		}
	}
	packed, err := os.ReadFile(filepath.Join(from, "packed.btfc"))
	if err != nil {
		t.Fatal(err)
	}
	const amd64, arm64 = "debian/12/x86_64/6.1.0-47-amd64.btf", "debian/12/arm64/6.1.0-50-arm64.btf"
	// A directory of an earlier run, with a file that the next run removes.
	tree := map[string]string{
		amd64: "old", arm64: "old", "debian/12/README": "mine", "x/y.btf": "gone", "x/z.btf": "another",
		output.ListName: fmt.Sprintf(`{"files": [%q, %q, "x/y.btf"]}`, amd64, arm64),
	}
	raw := map[string]string{amd64: "old", arm64: "old", "debian/12/README": "mine", "x/y.btf": "another"}
	file := func(name string) map[string]string { return map[string]string{name: "old", "another": "mine"} }
	generate := func(args ...string) []string {
		return append([]string{"generate", "-j", "1", "--btf", source, object, another}, args...)
	}
	return []*killJob{
		{name: "generate btfa", args: generate("-o", "a.btfa"), old: file("a.btfa"), whole: true},
		{name: "generate btfa and manifest", args: generate("-o", "a.btfa", "--manifest", "a.json"), old: map[string]string{"a.btfa": "old", "a.json": "old"}},
		{name: "generate tar.gz", args: generate("-o", "a.tar.gz"), old: file("a.tar.gz"), whole: true},
		{name: "generate new directory", args: generate("-o", "new"), old: file("another"), whole: true},
		{name: "generate directory", args: generate("-o", "."), old: tree, whole: true},
		{name: "archive convert", args: []string{"archive", "convert", a, b, "-o", "m.btfa"}, old: file("m.btfa"), whole: true},
		{name: "archive convert tar.xz", args: []string{"archive", "convert", a, "-o", "m.tar.xz"}, old: file("m.tar.xz"), whole: true},
		{name: "archive convert directory", args: []string{"archive", "convert", a, "-o", "."}, old: tree, whole: true},
		{name: "archive lookup", args: []string{"archive", "lookup", a, "--os-release", "os-release", "--release", "6.1.0-47-amd64", "--arch", "x86_64", "-o", "x.btf"},
			old: map[string]string{"x.btf": "old", "os-release": "ID=debian\nVERSION_ID=12\n"}, whole: true},
		{name: "corpus import, one file", args: []string{"corpus", "import", kernel, "-o", "new.btfc"}, old: map[string]string{"another": "mine"}, whole: true},
		{name: "corpus import, adding", args: []string{"corpus", "import", kernel, "-o", "x.btfc"}, old: map[string]string{"x.btfc": string(packed), "another": "mine"}, whole: true},
		{name: "corpus extract file", args: []string{"corpus", "extract", kernel, "-o", "x.btf"}, old: file("x.btf"), whole: true},
		{name: "corpus extract tree", args: []string{"corpus", "extract", filepath.Join(from, "raw"), "-o", "./"}, old: raw},
		{name: "min_core_btf", args: []string{"min_core_btf", kernel, "x.btf", object}, old: file("x.btf"), whole: true},
		{name: "min_core_btf link", args: []string{"min_core_btf", kernel, "x.btf", object}, old: map[string]string{"x.btf": "->y.btf", "y.btf": "old"}, whole: true},
		{name: "check html", args: []string{"check", "--btf", source, "--format", "html", "-o", "x.html", object}, old: file("x.html"), whole: true},
		{name: "check json", args: []string{"check", "--btf", source, "--json", "-o", "x.json", object}, old: file("x.json"), whole: true},
	}
}

// command runs the job in dir.
func (j *killJob) command(path, dir string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	cmd, stderr = exec.Command(path, j.args...), new(bytes.Buffer)
	cmd.Dir, cmd.Stderr = dir, stderr
	return cmd, stderr
}

// finish runs the job to its end.
func (j *killJob) finish(t *testing.T, path, dir string) {
	t.Helper()
	cmd, stderr := j.command(path, dir)
	cmd.Run()
	if s := cmd.ProcessState.ExitCode(); s != statusOK && s != statusFindings {
		t.Fatalf("%s: exit status %d: %s", j.name, s, stderr)
	}
}

// reset restores the files of dir before the job.
func (j *killJob) reset(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, data := range j.old {
		p := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(p), 0o777)
		if to, ok := strings.CutPrefix(data, "->"); ok {
			err = errors.Join(err, os.Symlink(to, p))
		} else {
			err = errors.Join(err, os.WriteFile(p, []byte(data), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readAll returns the files of a directory, with their modes, and the names of temporary files.
func readAll(t *testing.T, dir string) (files map[string]string, strays []string) {
	t.Helper()
	files = make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".btfgen.") {
			strays = append(strays, d.Name())
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		name, _ := filepath.Rel(dir, p)
		if d.Type() == fs.ModeSymlink {
			to, err := os.Readlink(p)
			files[name] = "->" + to
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		files[name] = fmt.Sprint(fi.Mode(), string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, strays
}

// interrupted reports whether readers refuse the directory until the next run.
func interrupted(t *testing.T, dir string) bool {
	t.Helper()
	_, err := output.ReadList(t.Context(), dir)
	if err == nil {
		_, err = output.ReadList(t.Context(), filepath.Join(dir, "new"))
	}
	if err != nil && !strings.Contains(err.Error(), "was interrupted; run it again") {
		t.Fatal(err)
	}
	return err != nil
}

// kill runs the job and kills it at a random moment, of the run or of the time in which it writes.
func (j *killJob) kill(t *testing.T, path, dir string, rng *rand.Rand) (killed bool) {
	t.Helper()
	j.reset(t, dir)
	cmd, stderr := j.command(path, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		cmd.Wait()
		close(done)
	}()
	wait := time.Duration(rng.Int64N(int64(j.took + j.took/8)))
	if rng.IntN(3) > 0 {
		for start := stateOf(dir); stateOf(dir) == start; {
			select {
			case <-done:
				wait = 0
				start = ""
			default:
			}
			if start == "" {
				break
			}
		}
		wait = time.Duration(rng.Int64N(int64(j.took / 8)))
		if rng.IntN(2) > 0 {
			wait = time.Duration(rng.IntN(500)) * time.Microsecond
		}
	}
	time.Sleep(wait)
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-done
	status := cmd.ProcessState.ExitCode()
	if killed = status < 0; !killed && status != statusOK && status != statusFindings {
		t.Errorf("%s: exit status %d: %s", j.name, status, stderr)
	}
	return killed
}

// stateOf returns a text that changes with the names and files of a directory.
func stateOf(dir string) string {
	var b strings.Builder
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		fmt.Fprint(&b, e.Name(), " ")
		if fi, err := e.Info(); err == nil {
			fmt.Fprint(&b, fi.ModTime().UnixNano(), " ")
		}
	}
	return b.String()
}

// judge reports whether the files are those before the job, those after it, or some of both.
func (j *killJob) judge(t *testing.T, dir string, killed bool) (outcome string, strays []string) {
	t.Helper()
	files, strays := readAll(t, dir)
	if !killed && len(strays) > 0 {
		t.Errorf("%s: was not killed, and left %q", j.name, strays)
	}
	outcome = "some of both"
	switch {
	case maps.Equal(files, j.after):
		outcome = "new"
	case !killed:
		t.Errorf("%s: was not killed, and not all is new: %v", j.name, slices.Sorted(maps.Keys(files)))
	case interrupted(t, dir):
		maps.DeleteFunc(files, func(name, _ string) bool { return filepath.Base(name) == output.ListName })
		outcome = "interrupted"
	case maps.Equal(files, j.before):
		outcome = "old"
	case j.whole:
		t.Errorf("%s: neither all of the old nor all of the new files: %v", j.name, slices.Sorted(maps.Keys(files)))
	}
	for name, data := range files {
		if data != j.before[name] && data != j.after[name] {
			t.Errorf("%s: %s has %d bytes, which are neither the old nor the new ones", j.name, name, len(data))
		}
	}
	for name := range j.before {
		if _, ok := files[name]; !ok && j.after[name] != "" && name != output.ListName {
			t.Errorf("%s: %s is lost", j.name, name)
		}
	}
	return outcome, strays
}

// A command that is killed at any moment leaves either the old or the new files, or a directory that readers refuse. The next run
// mends that, and removes temporary files.
// BTFGEN_KILLS is the number of killed runs.
func TestKilled(t *testing.T) {
	slow.Skip(t)
	v := newVictim(t)
	kills := 40
	if raceflag.Enabled {
		kills = 20
	}
	if s := os.Getenv("BTFGEN_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	jobs := killJobs(t, t.TempDir())
	dir := filepath.Join(t.TempDir(), "work")
	for _, j := range jobs {
		j.reset(t, dir)
		j.before, _ = readAll(t, dir)
		start := time.Now()
		j.finish(t, v.path, dir)
		j.took = time.Since(start)
		var strays []string
		if j.after, strays = readAll(t, dir); len(strays) > 0 || maps.Equal(j.before, j.after) {
			t.Fatalf("%s: left %q, changed %d files", j.name, strays, len(j.after))
		}
	}
	count := make(map[string]int)
	for n := range kills {
		j := jobs[n%len(jobs)]
		killed := j.kill(t, v.path, dir, rng)
		outcome, strays := j.judge(t, dir, killed)
		count[outcome]++
		if killed {
			count["killed"]++
		}
		if len(strays) > 0 {
			count["with strays"]++
		}
		if len(strays) == 0 && outcome != "interrupted" && n%8 != 0 {
			continue
		}
		j.finish(t, v.path, dir)
		if files, strays := readAll(t, dir); len(strays) > 0 || !maps.Equal(files, j.after) {
			t.Errorf("%s: after the next run there are %q, and not all is new: %v", j.name, strays, slices.Sorted(maps.Keys(files)))
		}
	}
	t.Logf("%d runs of %d commands: %v", kills, len(jobs), count)
	if count["old"] == 0 || count["new"] == 0 || count["with strays"] == 0 {
		t.Errorf("not all outcomes were seen: %v", count)
	}
}
