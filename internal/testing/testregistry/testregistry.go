// SPDX-License-Identifier: Apache-2.0

// Package testregistry runs registries of OCI artifacts: real ones, and a folder.
package testregistry

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
)

const script = `#!/bin/sh
set -e
R=%s
do=$1; shift
[ "$1" != -- ] || shift
tag=${1##*:}; shift
case $do in
manifest)
	[ -f "$R/$tag" ] || { echo '{"error":"unknown","message":"404"}'; exit 1; }
	printf '{"manifest":"%%s","digest":"sha256:%%s"}\n' "$(base64 <"$R/$tag" | tr -d '\n')" "$(sha256sum "$R/$tag" | cut -c 1-64)";;
get)
	to=$1; shift
	for d; do
		f=sha256-${d#sha256:}
		cp "$R/$f" "$to/$f"
		echo '{"done":1,"size":2}'
		printf '{"moved":%%s}\n' "$(wc -c <"$R/$f")"
	done;;
put)
	cp "$1"/sha256-* "$R"
	sum=$(sha256sum "$1/manifest.json" | cut -c 1-64)
	cp "$1/manifest.json" "$R/$sum"
	cp "$1/manifest.json" "$R/$tag"
	printf '{"digest":"sha256:%%s"}\n' "$sum";;
esac
`

// Folder puts a script in place of btfgen-registry. In its folder, a tag is a file with the manifest, and a blob has the name of
// [artifact.File].
func Folder(t *testing.T) (dir string) {
	t.Helper()
	for _, p := range []string{"sh", "base64", "sha256sum"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("needs ", p)
		}
	}
	dir = t.TempDir()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, artifact.Program), fmt.Appendf(nil, script, dir), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return dir
}

// Cache gives btfgen an empty cache. That of the Go command stays.
func Cache(t *testing.T) {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// Program builds btfgen-registry and puts it into PATH, with an empty configuration of Docker.
func Program(t *testing.T) {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/btfgen/btfgen/cmd/btfgen-registry").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
}

// Kinds are the registries that Start can start.
var Kinds = []string{"docker-registry", "go-containerregistry"}

// GoRegistry is the registry of Google's library.
const GoRegistry = "github.com/google/go-containerregistry/cmd/registry@v0.22.1"

// Registry is a registry that runs on this machine.
type Registry struct {
	Address string // host:port
	Storage string // folder of docker-registry, or ""
}

// Start starts a registry, which ends with the test. It skips the test if it is not there. docker-registry wants a password if login is
// a line of an htpasswd file.
func Start(t *testing.T, kind, login string) *Registry {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Registry{Address: l.Addr().String()}
	_, port, _ := net.SplitHostPort(r.Address)
	l.Close()
	var cmd *exec.Cmd
	switch kind {
	case "docker-registry":
		path, err := exec.LookPath(kind)
		if err != nil {
			t.Skip("needs ", kind)
		}
		dir := t.TempDir()
		r.Storage = filepath.Join(dir, "data")
		config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", r.Storage, r.Address)
		if login != "" {
			write(t, filepath.Join(dir, "htpasswd"), login+"\n")
			config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s}}\n", filepath.Join(dir, "htpasswd"))
		}
		write(t, filepath.Join(dir, "config.yml"), config)
		cmd = exec.Command(path, "serve", filepath.Join(dir, "config.yml"))
	default:
		bin := t.TempDir()
		install := exec.Command("go", "install", GoRegistry)
		install.Env = append(os.Environ(), "GOBIN="+bin)
		if out, err := install.CombinedOutput(); err != nil {
			t.Skipf("needs %s: %s", GoRegistry, out)
		}
		cmd = exec.Command(filepath.Join(bin, "registry"), "-port", port)
		r.Address = "localhost:" + port
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	for {
		c, err := net.Dial("tcp", r.Address)
		if err == nil {
			c.Close()
			return r
		}
		select {
		case <-ended:
			t.Fatalf("%s does not start: %v, %s", kind, err, &said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Blob returns the file in which docker-registry keeps a blob.
func (r *Registry) Blob(digest string) string {
	sum := strings.TrimPrefix(digest, "sha256:")
	return filepath.Join(r.Storage, "docker/registry/v2/blobs/sha256", sum[:2], sum, "data")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
