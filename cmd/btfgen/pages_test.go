// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testregistry"
)

// page is what a reader copies from a page of the documentation.
type page struct {
	commands []string // commands in indented blocks
	files    []string // blocks of YAML
}

// readPage reads a page.
func readPage(t *testing.T, path string) *page {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	p := new(page)
	fence, block := "", new(strings.Builder)
	text, _, _ := strings.Cut(string(data), generatedPart) // examples of commands
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```") && fence == "":
			fence = strings.TrimSpace(line)
		case strings.HasPrefix(line, "```"):
			if fence == "```yaml" {
				p.files = append(p.files, block.String())
			}
			fence = ""
			block.Reset()
		case fence != "":
			block.WriteString(line)
		case strings.HasPrefix(line, "    btfgen "), strings.HasPrefix(line, "    go run ./cmd/btfgen "):
			p.commands = append(p.commands, strings.TrimSpace(line))
		}
	}
	return p
}

// reader runs the commands of a page in a folder with the files that pages assume.
type reader struct {
	*testing.T
	dir string
	env []string
}

// readerIn returns a reader with a new folder. contents maps names to the files and directories to copy.
func readerIn(t *testing.T, contents map[string]string) *reader {
	if raceflag.Enabled {
		t.Skip("skipped: the same commands have run without the race detector")
	}
	r := &reader{T: t, dir: t.TempDir(), env: os.Environ()}
	for name, from := range contents {
		to := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(from); err == nil && fi.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// in returns a reader for another folder, with more variables.
func (r *reader) in(dir string, env ...string) *reader {
	return &reader{r.T, dir, append(slices.Clip(r.env), env...)}
}

// do runs a command line, which must end with one of these exit statuses.
func (r *reader) do(line string, statuses ...int) {
	r.Helper()
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	got := 0
	if err != nil {
		got = exitCode(err)
	}
	if !slices.Contains(statuses, got) {
		r.Fatalf("%s: exit status %d, want %v\n%s", line, got, statuses, out)
	}
}

const (
	pageObject = "../../testdata/bpf/execsnoop.bpfel.o" // works on every kernel
)

// pageContents returns the files that pages assume.
func pageContents(t *testing.T) map[string]string {
	tree := t.TempDir()
	for to, from := range map[string]string{
		"debian/11/x86_64": "debian/11/x86_64", "debian/12/x86_64": "debian/12/x86_64", "debian/12/arm64": "debian/12/arm64",
		"debian/experimental/x86_64": "debian/13/x86_64",
	} {
		if err := os.CopyFS(filepath.Join(tree, to), os.DirFS("../../testdata/vmlinux/"+from)); err != nil {
			t.Fatal(err)
		}
	}
	flat := filepath.Join(tree, "debian/11/x86_64")
	c := map[string]string{
		"testdata": "../../testdata", "examples": "../../examples", "btfhub-archive": tree, "kernels": tree, "corpus": tree, "flat": flat,
		"probe_x86_bpfel.o": "../../testdata/bpf/regs_x86_bpfel.o", "probe_arm64_bpfel.o": "../../testdata/bpf/regs_arm64_bpfel.o",
		"build/tracer_x86.o": "../../testdata/bpf/regs_x86_bpfel.o",
		// Whatever it is called, it is a kernel. corpus_import_dwarf.txtar has one with DWARF.
		"linux-image-4.19.0-27-amd64-dbg_4.19.316-1_amd64.deb": "../../testdata/vmlinux/debian/11/x86_64/5.10.0-30-amd64.btf.zst",
	}
	for _, name := range []string{"tracer.bpf.o", "mytracer.bpf.o", "common_bpfel.o", "build/probes.o", "opensnoop"} {
		c[name] = pageObject
	}
	return c
}

// TestPages runs the commands of each page in their order. Other tests run those of the tutorial and of generated pages.
func TestPages(t *testing.T) {
	slow.Skip(t)
	for path, before := range map[string][]string{
		"README.md":               nil,
		"docs/check.md":           nil,
		"docs/cli.md":             nil,
		"docs/howto-pipelines.md": nil,
		"docs/howto-kernels.md":   nil,
		"docs/howto-tracers.md":   nil,
		"examples/README.md":      {"mkdir out"},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if path != "README.md" && path != "docs/cli.md" {
				slow.Skip(t)
			}
			p := readPage(t, path)
			testregistry.Folder(t)
			testregistry.Cache(t)
			r := readerIn(t, pageContents(t))
			r.do("btfgen generate --btf kernels/ -o tracer.btfa tracer.bpf.o", statusOK)
			if slices.ContainsFunc(p.commands, func(line string) bool { return strings.Contains(line, "corpus pull") }) {
				r.do("btfgen corpus import kernels/ -o shared.btfc && btfgen corpus push shared.btfc ghcr.io/you/kernels:latest && rm shared.btfc", statusOK)
			}
			for _, line := range before {
				r.do(line, statusOK)
			}
			if path == "docs/cli.md" {
				r.write("btfgen.yaml", p.files[0])
			}
			for _, line := range p.commands {
				line = strings.NewReplacer("go run ./cmd/btfgen ", "btfgen ", "/usr/sbin/opensnoop", "./opensnoop").Replace(line)
				statuses := []int{statusOK}
				switch {
				case strings.Contains(line, "archive lookup"):
					statuses = append(statuses, statusFindings) // the archive lacks this machine's kernel
				case strings.Contains(line, "--modules nf_conntrack"):
					statuses = append(statuses, statusFindings) // the kernels have no modules
				case strings.Contains(line, "--boot"):
					t.Logf("skipped: %s: needs a kernel's package; see TestCheckBoot", line)
					continue
				case strings.Contains(line, "corpus fetch"):
					t.Logf("%s: imported instead of downloaded; see TestFetch", line)
					line = "btfgen corpus import kernels/ -o kernels.btfc"
				case strings.Contains(line, "--without-btf"):
					statuses = []int{1} // all kernels have BTF
				case strings.Contains(line, "corpus pull"):
					// The registry of the test has no kernels of the others.
					line = strings.NewReplacer(" ubuntu/22.04", "", "debian/10 centos/7", "debian/12").Replace(line)
				case strings.Contains(line, runningKernel), strings.HasPrefix(line, "btfgen generate -o examples/"):
					if _, err := os.Stat(runningKernel); err != nil {
						t.Logf("skipped: %s: no such file on this machine", line)
						continue
					}
				}
				r.do(line, statuses...)
			}
			if len(p.commands) == 0 {
				t.Log("no commands")
			}
		})
	}
}

// root is the top directory of the repository.
func (r *reader) root() string {
	root, err := filepath.Abs("../..")
	if err != nil {
		r.Fatal(err)
	}
	return root
}

func (r *reader) write(name, text string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o777); err != nil {
		r.Fatal(err)
	}
}

func (r *reader) read(name string) []byte {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return data
}

// one returns the archive of a single run.
func (r *reader) one() []byte {
	r.do("btfgen generate --btf btfhub-archive -o one.btfa tracer.bpf.o", statusOK)
	return r.read("one.btfa")
}

// twice runs a pipeline without memory twice, with a new kernel between. The result has to be that of one run.
func (r *reader) twice(run func()) {
	r.Helper()
	for range 2 {
		run()
		if got, want := r.read("tracer.btfa"), r.one(); !bytes.Equal(got, want) {
			r.Error("the result is not that of one run")
		}
		r.do("cp btfhub-archive/debian/12/x86_64/6.1.0-47-amd64.btf* new.btf.zst", statusOK)
		r.do("for d in btfhub-archive kernels; do cp new.btf.zst $d/debian/12/x86_64/6.1.0-48-amd64.btf.zst; done", statusOK)
	}
}

// broken makes btfgen verify fail, as after a defect or with a wrong archive, for a folder that is searched first.
func (r *reader) broken() (bin string) {
	r.Helper()
	bin = r.TempDir()
	path, err := exec.LookPath("btfgen")
	if err != nil {
		r.Fatal(err)
	}
	write(r.T, filepath.Join(bin, "btfgen"), fmt.Sprintf("#!/bin/sh\n[ \"$1\" != verify ] || exit %d\nexec %s \"$@\"\n", statusFindings, path))
	if err := os.Chmod(filepath.Join(bin, "btfgen"), 0o777); err != nil {
		r.Fatal(err)
	}
	return bin
}

// pipeline decodes a file of examples/pipelines.
func pipeline(t *testing.T, name string, into any) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples/pipelines", name))
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPipelineKubernetes starts the pods of the indexed job in turn, and then the command in the comment. The test knows all
// fields of the manifest, by their names in Kubernetes' API.
func TestPipelineKubernetes(t *testing.T) {
	slow.Skip(t)
	var job struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			CompletionMode           string
			Completions, Parallelism int
			Template                 struct {
				Spec struct {
					RestartPolicy string
					Containers    []struct {
						Name, Image   string
						Command, Args []string
						VolumeMounts  []struct{ Name, MountPath string }
					}
					Volumes []struct {
						Name                  string
						PersistentVolumeClaim struct{ ClaimName string }
					}
				}
			}
		}
	}
	text := pipeline(t, "kubernetes.yaml", new(any))
	strict(t, &job, text, "apiVersion completionMode claimName mountPath restartPolicy persistentVolumeClaim volumeMounts")
	pods := &job.Spec.Template.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || job.Spec.CompletionMode != "Indexed" || job.Spec.Parallelism > job.Spec.Completions ||
		pods.RestartPolicy != "Never" || len(pods.Containers) != 1 || len(pods.Volumes) != 1 || pods.Containers[0].VolumeMounts[0].Name != pods.Volumes[0].Name {
		t.Fatalf("%+v", job)
	}
	r := readerIn(t, pageContents(t))
	mount := pods.Containers[0].VolumeMounts[0].MountPath + "/"
	volume := func(word string) string { return strings.ReplaceAll(word, mount, r.dir+"/") }
	r.do("cp $(command -v btfgen) btfgen", statusOK)
	merge := regexp.MustCompile(`(?m)^#   (btfgen archive convert .*)$`).FindSubmatch(text)
	if merge == nil {
		t.Fatal("no command to merge the parts")
	}
	r.twice(func() {
		for i := range job.Spec.Completions {
			index := strconv.Itoa(i)
			var words []string // no shell reads them, and Kubernetes replaces $(NAME)
			for _, w := range append(pods.Containers[0].Command, pods.Containers[0].Args...) {
				words = append(words, "'"+strings.ReplaceAll(volume(w), "$(JOB_COMPLETION_INDEX)", index)+"'")
			}
			r.in(t.TempDir(), "JOB_COMPLETION_INDEX="+index).do(strings.Join(words, " "), statusOK)
		}
		r.do(volume(string(merge[1])), statusOK)
	})
}

// strict decodes YAML that has only fields of a struct. The package yaml writes names of fields in small letters; camel lists those that are not.
func strict(t *testing.T, into any, text []byte, camel string) {
	t.Helper()
	for name := range strings.FieldsSeq(camel) {
		text = regexp.MustCompile(`\b`+name+`:`).ReplaceAll(text, []byte(strings.ToLower(name)+":"))
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// TestPipelineSLURM runs the script as the tasks of its array, and then the command in its comment.
func TestPipelineSLURM(t *testing.T) {
	slow.Skip(t)
	text, err := os.ReadFile("../../examples/pipelines/slurm.sh")
	if err != nil {
		t.Fatal(err)
	}
	array := regexp.MustCompile(`(?m)^#SBATCH .*--array=(\d+)-(\d+)$`).FindSubmatch(text)
	merge := regexp.MustCompile(`(?m)^#   sbatch .* --wrap '(.*)'$`).FindSubmatch(text)
	if array == nil || merge == nil {
		t.Fatalf("array %q, merge %q", array, merge)
	}
	low, _ := strconv.Atoi(string(array[1]))
	high, _ := strconv.Atoi(string(array[2]))
	r := readerIn(t, pageContents(t))
	r.write("slurm.sh", string(text))
	r.twice(func() {
		for i := low; i <= high; i++ {
			r.in(r.dir, fmt.Sprint("SLURM_ARRAY_TASK_ID=", i), fmt.Sprint("SLURM_ARRAY_TASK_COUNT=", high-low+1), fmt.Sprint("SLURM_ARRAY_TASK_MIN=", low),
				fmt.Sprint("SLURM_ARRAY_TASK_MAX=", high), "SLURM_ARRAY_TASK_STEP=1").do("./slurm.sh", statusOK)
		}
		r.do(string(merge[1]), statusOK)
	})
}

// TestPipelineNightly runs two nights, in which kernels are imported rather than fetched, and released to a folder.
func TestPipelineNightly(t *testing.T) {
	slow.Skip(t)
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	pipeline(t, "nightly.yml", &workflow)
	r := readerIn(t, pageContents(t))
	r.do("mkdir your bin && cp tracer.bpf.o your/probe.bpf.o", statusOK)
	r.write("bin/gh", "#!/bin/sh\ncase $2 in download) cp released/tracer.* . ;; upload) mkdir -p released && cp tracer.btfa tracer.json released ;; esac\n")
	fetch := regexp.MustCompile(`btfgen corpus fetch .* -o`)
	for n, night := range []string{"btfhub-archive/debian/12", "btfhub-archive", "btfhub-archive/debian/11"} {
		r.do("rm -rf tracer.btfa tracer.json before && cp -r released before 2>/dev/null || true", statusOK)
		in := r
		if n == 2 {
			in = r.in(r.dir, "PATH="+r.broken()+":"+os.Getenv("PATH"))
		}
		for _, step := range workflow.Jobs["kernels"].Steps {
			if step.Run == "" || strings.HasPrefix(step.Name, "Install") {
				continue
			}
			if step.Name == "Fetch" && !fetch.MatchString(step.Run) {
				t.Fatalf("no fetch in %s", step.Run)
			}
			r.write("step", fetch.ReplaceAllString(step.Run, "btfgen corpus import "+night+" -o"))
			if n == 2 && step.Name == "Verify" {
				in.do(`PATH=$PWD/bin:$PATH bash -eo pipefail step`, statusFindings)
				break // a failed step ends the job before the release
			}
			in.do(`PATH=$PWD/bin:$PATH bash -eo pipefail step`, statusOK)
		}
	}
	r.do("diff -r before released", statusOK)
	r.do("btfgen archive list released/tracer.btfa | grep -q 6.1.0-47-amd64", statusOK)
}

// TestPipelineSystemd runs the script of the unit as systemd does: two nights, with kernels that are imported rather than fetched, one in which a
// package failed, one in which all packages failed, and one in which the proof fails. No unproven archive replaces the last one.
func TestPipelineSystemd(t *testing.T) {
	slow.Skip(t)
	unit, err := os.ReadFile("../../examples/pipelines/systemd/btfgen-nightly.service")
	if err != nil {
		t.Fatal(err)
	}
	// What systemd would take for success in addition to 0 hides failures of other commands than fetch.
	if regexp.MustCompile(`(?m)^SuccessExitStatus=`).Match(unit) {
		t.Error("the unit takes a failure for success")
	}
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/lib/btfgen/(\S+)$`).FindSubmatch(unit)
	if start == nil {
		t.Fatal("the unit starts no script")
	}
	script, err := os.ReadFile(filepath.Join("../../examples/pipelines/systemd", string(start[1])))
	if err != nil {
		t.Fatal(err)
	}
	fetch := regexp.MustCompile(`btfgen corpus fetch .* -o`)
	if !fetch.Match(script) {
		t.Fatal("no fetch in the script")
	}
	r := readerIn(t, pageContents(t))
	r.do("cp tracer.bpf.o probe.bpf.o", statusOK)
	broken := "PATH=" + r.broken() + ":" + os.Getenv("PATH")
	for _, night := range []struct {
		kernels, after string // steps of fetch
		env            string
		want           int
		newest         string // release of the newest kernel in the archive
	}{
		{"btfhub-archive/debian/11", "", "A=", statusOK, "5.10.0"},
		{"btfhub-archive/debian/12", "", "A=", statusOK, "6.1.0-47-amd64"},
		{"btfhub-archive/debian/12", "; (exit 3)", "A=", statusOK, "6.1.0-47-amd64"},
		{"btfhub-archive/debian/12", "; (exit 1)", "A=", statusFailed, "6.1.0-47-amd64"},
		{"btfhub-archive", "", broken, statusFindings, "6.1.0-47-amd64"},
		{"btfhub-archive", "", "A=", statusOK, "6.1.0-47-amd64"},
	} {
		text := fetch.ReplaceAllString(string(script), "fetch")
		r.write("nightly", strings.Replace(text, "set -eu\n", "set -eu\nfetch() { btfgen corpus import "+night.kernels+" -o \"$1\""+night.after+"; }\n", 1))
		r.do("cp tracer.btfa before.btfa 2>/dev/null || true", statusOK)
		r.in(r.dir, night.env).do("./nightly", night.want)
		if night.want != statusOK {
			r.do("cmp before.btfa tracer.btfa", statusOK)
		}
		r.do("btfgen archive list tracer.btfa | grep -q "+night.newest, statusOK)
	}
	r.do("[ -f tracer.json ] && [ ! -f next.btfa ] && [ ! -f next.json ]", statusOK)
}

// TestPipelineCorpus runs the workflow that pushes a corpus twice, with kernels that are imported rather than fetched, and each time the one that
// pulls it. A folder is in place of the registry.
func TestPipelineCorpus(t *testing.T) {
	slow.Skip(t)
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("needs jq")
	}
	dir := testregistry.Folder(t)
	testregistry.Cache(t)
	t.Setenv("REGISTRY", dir)
	values := map[string]string{
		"github.repository_owner": "their", "github.token": "secret", "github.actor": "me", "inputs.first": "true",
		"github.workflow_ref": "their/kernels/.github/workflows/corpus.yml@refs/heads/main",
	}
	fetch := regexp.MustCompile(`btfgen corpus fetch .* -o`)
	runSteps := func(r *reader, name, job string, each func(step string) string) {
		t.Helper()
		var w workflow
		pipeline(t, name, &w)
		env := []string{"PATH=" + r.dir + "/bin:" + os.Getenv("PATH")}
		for k, v := range w.Env {
			env = append(env, k+"="+r.fill(v, values))
		}
		for _, step := range w.Jobs[job].Steps {
			if step.Run == "" || strings.Contains(step.Run, "go install") {
				continue
			}
			r.write("step", each(r.fill(step.Run, values)))
			r.in(r.dir, env...).do(`bash -eo pipefail step`, statusOK)
		}
	}
	tools := func(r *reader) {
		r.do("mkdir bin your && cp tracer.bpf.o your/probe.bpf.o", statusOK)
		r.write("bin/docker", "#!/bin/sh\n[ \"$*\" = 'login ghcr.io -u me --password-stdin' ] && cat >/dev/null\n")
		r.write("bin/gh", "#!/bin/sh\ncase $2 in download) cp released/tracer.* . ;; upload) mkdir -p released && cp tracer.btfa tracer.json released ;; esac\n")
		r.write("bin/cosign", `#!/bin/sh
case $1 in
sign) echo "$3" >>"$REGISTRY/signed" ;;
verify)
	case $2 in
	*@*) grep -q "@${2#*@}" "$REGISTRY/signed" || exit 1 ;;
	esac
	printf '[{"critical":{"image":{"docker-manifest-digest":"%s"}}}]' "$(tail -n 1 "$REGISTRY/signed" | cut -d@ -f2)" ;;
esac
`)
	}
	pushes, pulls := readerIn(t, pageContents(t)), readerIn(t, pageContents(t))
	tools(pushes)
	tools(pulls)
	push := func(night string) {
		t.Helper()
		pushes.do("rm -f kernels.btfc", statusOK)
		runSteps(pushes, "corpus-push.yml", "corpus", func(step string) string {
			return fetch.ReplaceAllString(step, "btfgen corpus import "+night+" -o")
		})
	}
	for _, night := range []string{"btfhub-archive/debian/12", "btfhub-archive", "btfhub-archive"} {
		push(night)
		pulls.do("rm -f tracer.btfa tracer.json", statusOK)
		runSteps(pulls, "corpus-pull.yml", "archive", func(step string) string {
			return strings.Replace(step, " ubuntu/22.04", "", 1)
		})
		// Pushing the archive has moved the only tag of the folder.
		pushes.do(`cp "$REGISTRY/$(tail -n 1 "$REGISTRY/signed" | cut -d: -f2)" "$REGISTRY/latest"`, statusOK)
	}
	pushes.do(`[ "$(wc -l <"$REGISTRY/signed")" = 2 ]`, statusOK) // the third night had nothing new
	pushes.do(`sed -i '$d' "$REGISTRY/signed"`, statusOK)         // the last push seems unsigned then
	push("btfhub-archive")
	pushes.do(`[ "$(wc -l <"$REGISTRY/signed")" = 2 ]`, statusOK)
	pulls.do("btfgen archive list released/tracer.btfa | grep -q 6.1.0-47-amd64", statusOK)
	// A proof that fails ends the run before the release.
	pulls.do("rm -f tracer.btfa tracer.json && cp -r released before", statusOK)
	pulls.do("cp "+pulls.broken()+"/btfgen bin", statusOK)
	verify := false
	runSteps(pulls, "corpus-pull.yml", "archive", func(step string) string {
		step = strings.Replace(step, " ubuntu/22.04", "", 1)
		switch {
		case verify:
			return "" // a failed step ends the job
		case strings.HasPrefix(step, "btfgen verify "):
			verify = true
			return "s=0; " + step + " || s=$?; [ $s = 3 ]"
		}
		return step
	})
	pulls.do("diff -r before released", statusOK)
	if !verify {
		t.Error("no verify in the workflow")
	}
}

// TestPipelineGitLab runs the jobs.
func TestPipelineGitLab(t *testing.T) {
	slow.Skip(t)
	type job struct {
		Parallel      int
		Script, Needs []string
		Artifacts     struct{ Paths []string }
	}
	var jobs map[string]job
	strict(t, &jobs, pipeline(t, "gitlab.yml", new(any)), "")
	r := readerIn(t, pageContents(t))
	r.twice(func() {
		for i := 1; i <= jobs["part"].Parallel; i++ {
			for _, line := range jobs["part"].Script {
				r.in(r.dir, fmt.Sprint("CI_NODE_INDEX=", i), fmt.Sprint("CI_NODE_TOTAL=", jobs["part"].Parallel)).do(line, statusOK)
			}
		}
		for _, line := range jobs["merge"].Script {
			r.do(line, statusOK)
		}
	})
}

// TestSigning signs an archive with the commands of the page. The signature of a changed archive must fail.
func TestSigning(t *testing.T) {
	slow.Skip(t)
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Skip("needs minisign")
	}
	page, err := os.ReadFile("../../docs/howto-pipelines.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?m)^    (minisign .*)$").FindAllSubmatch(page, -1)
	if len(commands) != 2 {
		t.Fatalf("%d commands", len(commands))
	}
	r := readerIn(t, pageContents(t))
	r = r.in(r.dir, "HOME="+r.dir)
	r.do("btfgen generate --btf kernels -o tracer.btfa tracer.bpf.o && mkdir .minisign && minisign -G -W -s .minisign/minisign.key", statusOK)
	for _, c := range commands {
		r.do(string(c[1]), statusOK)
	}
	r.do("btfgen archive convert tracer.btfa -o tree && btfgen archive convert tree -o tracer.btfa --quiet && "+string(commands[1][1]), statusOK)
	r.do("btfgen generate --btf kernels --select debian=12 -o tracer.btfa tracer.bpf.o", statusOK)
	r.do(string(commands[1][1]), 1)
}

// workflow is the part of a GitHub Actions workflow that the test runs.
type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Needs    needs
		Strategy struct {
			Matrix map[string][]string
		}
		Steps []struct {
			Uses, Run string
			With      map[string]string
		}
	}
}

// needs is a list of jobs, or a single one.
type needs []string

func (n *needs) UnmarshalYAML(v *yaml.Node) error {
	if v.Kind == yaml.ScalarNode {
		*n = needs{v.Value}
		return nil
	}
	return v.Decode((*[]string)(n))
}

// withoutNetwork replaces programs that would use the network.
const withoutNetwork = `#!/bin/sh
case "$(basename "$0") $1 $2" in
"git clone "*) for last; do :; done; cp -r "$ARCHIVE" "$(basename "$last")" ;;
"git -C "*) [ -d "$2" ] && [ "$3" = sparse-checkout ] ;;
"go install "*) case $2 in github.com/btfgen/btfgen/cmd/btfgen@v[0-9]*) ;; *) exit 1 ;; esac ;;
*) exit 1 ;;
esac
`

var expression = regexp.MustCompile(`\$\{\{ *([a-z_.-]+) *\}\}`)

// fill replaces expressions by their values.
func (r *reader) fill(text string, values map[string]string) string {
	return expression.ReplaceAllStringFunc(text, func(x string) string {
		r.Helper()
		v, ok := values[expression.FindStringSubmatch(x)[1]]
		if !ok {
			r.Fatalf("%s is not known", x)
		}
		return v
	})
}

// TestPipelineGitHub runs the steps of the workflow, each job in its own folder. Actions that move files are emulated.
func TestPipelineGitHub(t *testing.T) {
	slow.Skip(t)
	var w workflow
	pipeline(t, "github.yml", &w)
	r := readerIn(t, pageContents(t))
	bin := t.TempDir()
	for _, name := range []string{"git", "go"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(withoutNetwork), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	path, err := exec.LookPath("btfgen")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		end := statusOK
		if n == 2 {
			end = statusFindings
			path = filepath.Join(r.broken(), "btfgen")
		}
		env := []string{"PATH=" + bin + ":" + filepath.Dir(path) + ":/usr/bin:/bin", "ARCHIVE=" + filepath.Join(r.dir, "btfhub-archive")}
		for k, v := range w.Env {
			env = append(env, k+"="+v)
		}
		artifacts := r.runJobs(&w, env, end)
		got, err := filepath.Glob(artifacts + "/*/tracer.btfa")
		switch {
		case err != nil || len(got) != 1-n/2:
			t.Fatalf("archives %v, %v", got, err)
		case n < 2:
			data, err := os.ReadFile(got[0])
			if err != nil || !bytes.Equal(data, r.one()) {
				t.Errorf("the result is not that of one run (%v)", err)
			}
		}
		r.do("cp btfhub-archive/debian/12/x86_64/6.1.0-47-amd64.btf.zst new.btf.zst && cp new.btf.zst btfhub-archive/debian/12/x86_64/6.1.0-48-amd64.btf.zst", statusOK)
	}
}

// runJobs runs the jobs of a workflow. A step with btfgen verify has to end with a status; unless that is 0, its job ends. It returns a folder with
// the artifacts.
func (r *reader) runJobs(w *workflow, env []string, verify int) (artifacts string) {
	t := r.T
	artifacts = t.TempDir()
	done := make(map[string]bool)
	for len(done) < len(w.Jobs) {
		before := len(done)
		for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
			job := w.Jobs[name]
			if done[name] || slices.ContainsFunc(job.Needs, func(n string) bool { return !done[n] }) {
				continue
			}
			done[name] = true
			instances := []map[string]string{{"github.run_id": "1"}}
			for axis, values := range job.Strategy.Matrix {
				instances = nil
				for _, v := range values {
					instances = append(instances, map[string]string{"matrix." + axis: v, "strategy.job-total": strconv.Itoa(len(values)), "github.run_id": "1"})
				}
			}
			for _, values := range instances {
				at := r.in(t.TempDir(), env...)
				fill := func(text string) string { return at.fill(text, values) }
			steps:
				for _, s := range job.Steps {
					action, _, _ := strings.Cut(s.Uses, "@")
					switch action {
					case "":
						if verify != statusOK && strings.HasPrefix(s.Run, "btfgen verify ") {
							at.do(fill(s.Run), verify)
							break steps
						}
						at.do(fill(s.Run), statusOK)
					case "actions/checkout":
						at.do("cp "+r.dir+"/tracer.bpf.o .", statusOK)
					case "actions/setup-go", "actions/cache":
					case "actions/upload-artifact":
						to := filepath.Join(artifacts, fill(s.With["name"]))
						at.do("mkdir "+to+" && cp "+fill(s.With["path"])+" "+to, statusOK)
					case "actions/download-artifact":
						from := filepath.Join(artifacts, fill(s.With["name"]))
						if s.With["merge-multiple"] == "true" {
							from += "/*"
						}
						at.do("cp "+from+"/* .", statusOK)
					default:
						t.Fatalf("%s: what %s does is not known", name, s.Uses)
					}
				}
			}
		}
		if len(done) == before {
			t.Fatal("jobs that need each other")
		}
	}
	return artifacts
}

// TestCheckPicture compares the report that docs/images/check.png shows with that of the same command today. A browser has drawn the picture, so
// the test knows it by its hash.
func TestCheckPicture(t *testing.T) {
	slow.Skip(t)
	const remade = "run scripts/pictures.sh, which needs chromium"
	text, err := os.ReadFile("../../docs/images/check.txt")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile("../../docs/images/check.png")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(string(text), "\n", 3)
	if want := fmt.Sprintf("%x  -", sha256.Sum256(picture)); len(parts) != 3 || parts[0] != want || !strings.HasPrefix(parts[1], "btfgen check ") {
		t.Fatalf("check.txt is not of check.png (%s): %s", want, remade)
	}
	contents := map[string]string{"kernels": "../../testdata/vmlinux"}
	for name := range strings.FieldsSeq(parts[1]) {
		if object, ok := strings.CutSuffix(name, ".bpf.o"); ok {
			contents[name] = "../../testdata/bpf/" + object + ".bpfel.o"
		}
	}
	r := readerIn(t, contents)
	r.do(parts[1]+" -o check.out", statusOK, statusFindings)
	if got := string(r.read("check.out")); got != parts[2] {
		t.Errorf("docs/images/check.png shows another report than btfgen prints: %s\n%s", remade, cmp.Diff(parts[2], got))
	}
}
