// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/job/store"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testregistry"
)

// inNewFolder changes to an empty folder, with an empty cache of artifacts and a fixed date. It returns the folder testdata.
func inNewFolder(t *testing.T) string {
	t.Helper()
	testregistry.Cache(t)
	td, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	return td
}

// TestRegistry pushes and pulls with btfgen-registry and real registries. Archives from raw BTF, .btfc and pulled .btfc have the same bytes.
func TestRegistry(t *testing.T) {
	slow.Skip(t)
	testregistry.Program(t)
	td := inNewFolder(t)
	page, err := os.ReadFile(filepath.Join(td, "../docs/howto-kernels.md"))
	if err == nil {
		err = os.Symlink(td, "testdata")
	}
	if err != nil {
		t.Fatal(err)
	}
	do := func(status int, args string) (stdout, stderr string) {
		t.Helper()
		var out, msgs bytes.Buffer
		args = strings.NewReplacer("$K", td+"/vmlinux", "$B", td+"/bpf").Replace(args)
		if got := run(t.Context(), strings.Fields(args), &out, &msgs); got != status {
			t.Fatalf("btfgen %s: status %d, want %d: %s", args, got, status, &msgs)
		}
		return out.String(), msgs.String()
	}
	do(0, "corpus import $K/debian/12 $K/debian/13/x86_64 -o kernels.btfc")
	do(0, "corpus import $K/debian/12/arm64 $K/debian/13-backports -o packed.btfc")
	do(0, "generate --btf $K/debian/12 --btf $K/debian/13/x86_64 -o raw.btfa $B/execsnoop.bpfel.o")
	do(0, "generate --btf kernels.btfc -o packed.btfa $B/execsnoop.bpfel.o")
	var digests []string
	for _, kind := range testregistry.Kinds {
		t.Run(kind, func(t *testing.T) {
			r := testregistry.Start(t, kind, "")
			ref := r.Address + "/some/corpus"
			if _, err := do(2, "corpus pull "+ref+":a,b -o none.btfc"); !strings.Contains(err, "invalid reference") {
				t.Error(err)
			}
			if _, err := do(1, "corpus pull "+ref+":v1 -o none.btfc"); !strings.Contains(err, "the registry has no such artifact") {
				t.Error(err)
			}
			var pushed, again struct {
				Digest string
				Layers []store.Layer
				There  bool
				Moved  int64 `json:"bytes_uploaded"`
			}
			read := func(v any, args string) {
				t.Helper()
				out, _ := do(0, args+" --json")
				if err := json.Unmarshal([]byte(out), v); err != nil {
					t.Fatal(err)
				}
			}
			read(&pushed, "corpus push kernels.btfc "+ref+":v1")
			digests = append(digests, pushed.Digest)
			if read(&again, "corpus push kernels.btfc "+ref+":v1"); !again.There || again.Digest != pushed.Digest {
				t.Errorf("pushed again: %+v", again)
			}
			if read(&again, "corpus push kernels.btfc "+ref+":v2"); again.There || again.Moved != 0 || again.Digest != pushed.Digest {
				t.Errorf("pushed with another tag: %+v", again)
			}
			if _, said := do(0, "corpus push kernels.btfc "+ref+":v3"); !strings.Contains(said, " layers pushed (0 B uploaded), 0 there already; digest ") {
				t.Error(said)
			}
			if _, said := do(0, "corpus push packed.btfc "+ref+":v3"); !strings.Contains(said, ": 1 layer pushed (") || !strings.Contains(said, ", 1 there already") {
				t.Error(said)
			}
			os.Remove("pulled.btfc")
			do(0, "corpus pull "+ref+":v1 debian/13/amd64 -o pulled.btfc")
			var pulled struct {
				Layers []store.Layer
				Moved  int64 `json:"bytes_downloaded"`
			}
			read(&pulled, "corpus pull "+ref+"@"+pushed.Digest+" -o pulled.btfc")
			n, size := store.Count(pulled.Layers, store.LayerNew)
			if n == 0 || n == len(pulled.Layers) || pulled.Moved != size {
				t.Errorf("%+v", pulled)
			}
			do(0, "generate --btf pulled.btfc -o pulled.btfa $B/execsnoop.bpfel.o")
			want, err := os.ReadFile("raw.btfa")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"packed.btfa", "pulled.btfa"} {
				if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s has other bytes than raw.btfa, %v", name, err)
				}
			}
			do(0, "archive push pulled.btfa "+ref+":archive")
			do(0, "archive pull "+ref+":archive -o copy.btfa")
			if got, err := os.ReadFile("copy.btfa"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("copy.btfa has other bytes, %v", err)
			}
			newcomer(t, string(page), r, func(args string) { do(0, args) })
			if r.Storage != "" {
				lying(t, r, pushed.Layers[0].Digest, pushed.Digest, func(args string) string {
					_, err := do(1, args)
					return err
				}, ref)
			}
		})
	}
	if len(digests) == 2 && digests[0] != digests[1] {
		t.Errorf("the same file has the digests %q", digests)
	}
	t.Run("denied", func(t *testing.T) {
		r := testregistry.Start(t, "docker-registry", "me:"+secret)
		ref := r.Address + "/some/corpus:v1"
		for _, args := range []string{"corpus push kernels.btfc " + ref, "corpus pull " + ref + " -o none.btfc"} {
			if _, err := do(1, args); !strings.Contains(err, "the registry denies access: check the name, and log in with 'docker login "+r.Address+"'") {
				t.Errorf("%s: %s", args, err)
			}
		}
		config := `{"auths": {"` + r.Address + `": {"auth": "bWU6c2VjcmV0"}}}`
		write(t, filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), config)
		do(0, "archive push packed.btfa "+ref)
		do(0, "archive pull "+ref+" -o denied.btfa")
	})
	if _, err := do(1, "corpus pull localhost:1/some/corpus:v1 -o none.btfc"); !strings.Contains(err, "the registry is not available (dial tcp") {
		t.Error(err)
	}
	otherTools(t, string(page), do)
}

// newcomer runs the commands of docs/howto-kernels.md that pull from a registry, with one that runs already, and says how long pull and generate take.
func newcomer(t *testing.T, page string, r *testregistry.Registry, do func(args string)) {
	t.Helper()
	block := regexp.MustCompile("(?s)```sh\ngo install " + regexp.QuoteMeta(testregistry.GoRegistry) + "\nregistry -port 5050 &\n(.*?)```").FindStringSubmatch(page)
	if block == nil {
		t.Fatal("howto-kernels.md: no commands that start a registry")
	}
	var start time.Time
	commands := 0
	for line := range strings.Lines(block[1]) {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "btfgen ")
		if !ok {
			t.Fatalf("howto-kernels.md: not a command of btfgen: %s", line)
		}
		if strings.HasPrefix(args, "corpus pull localhost:5050/") {
			start = time.Now()
		}
		do(strings.ReplaceAll(args, "localhost:5050", r.Address))
		commands++
	}
	if commands != 4 {
		t.Errorf("howto-kernels.md: %d commands, want 4", commands)
	}
	t.Logf("to pull and generate takes %v", time.Since(start))
}

// secret is the bcrypt hash of "secret".
const secret = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"

// lying changes what a registry has stored: the manifest, and a layer whose beginning an earlier run has.
func lying(t *testing.T, r *testregistry.Registry, layer, manifest string, fails func(args string) string, ref string) {
	t.Helper()
	change := func(digest string) (undo func()) {
		t.Helper()
		data, err := os.ReadFile(r.Blob(digest))
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(data)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(r.Blob(digest), bad, 0o666); err != nil {
			t.Fatal(err)
		}
		return func() { os.WriteFile(r.Blob(digest), data, 0o666) }
	}
	undo := change(layer)
	if err := fails("corpus pull " + ref + ":v1 -o lied.btfc"); !strings.Contains(err, "the registry sent something else ("+layer) {
		t.Error(err)
	}
	undo()
	undo = change(manifest)
	if err := fails("corpus pull " + ref + "@" + manifest + " -o lied.btfc"); err == "" {
		t.Error("a manifest with another digest was taken")
	}
	undo()
	if _, err := os.Stat("lied.btfc"); err == nil {
		t.Error("lied.btfc was written")
	}
}

// otherTools runs the page's commands of oras and cosign on what btfgen pushed. Those without a key need sigstore's services.
func otherTools(t *testing.T, page string, do func(int, string) (string, string)) {
	t.Helper()
	r := testregistry.Start(t, "docker-registry", "")
	ref := strings.Replace(r.Address, "127.0.0.1", "localhost", 1) + "/some/corpus" // oras uses plain HTTP for localhost
	out, _ := do(0, "corpus push kernels.btfc "+ref+":latest --json")
	var pushed struct{ Digest string }
	if err := json.Unmarshal([]byte(out), &pushed); err != nil {
		t.Fatal(err)
	}
	lint, _ := do(0, "corpus lint kernels.btfc --json")
	write(t, "lint.json", lint)
	offline := map[string]string{"verify": " --insecure-ignore-tlog", "sign": " --yes --tlog-upload=false --use-signing-config=false"}
	offline["attest"], offline["verify-attestation"] = offline["sign"], offline["verify"]
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^    ((oras|cosign) (\S+).*)$`).FindAllStringSubmatch(page, -1) {
		line := strings.NewReplacer("ghcr.io/you/kernels", ref, "sha256:…", pushed.Digest).Replace(m[1])
		if _, err := exec.LookPath(m[2]); err != nil {
			t.Logf("skipped: needs %s: %s", m[2], m[1])
			continue
		}
		if offline[m[3]] != "" && !strings.Contains(line, "--key") {
			t.Logf("skipped: needs the network: %s", m[1])
			continue
		}
		cmd := exec.Command("sh", "-ec", line+offline[m[3]])
		cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		ran++
	}
	files, err := filepath.Glob("debian/*/*.btfc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("oras"); err == nil {
		if len(files) == 0 {
			t.Fatal("oras pulled nothing")
		}
		do(0, "corpus list "+strings.Join(files, " "))
	}
	t.Logf("oras and cosign: %d commands", ran)
}
