// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/limits"
)

// server is a registry in memory that can misbehave. TestRegistry of cmd/btfgen uses real ones.
type server struct {
	*httptest.Server
	mu        sync.Mutex
	manifests map[string][]byte // keyed by tag and by digest
	blobs     map[string][]byte // keyed by digest
	sent      int64             // bytes of blobs sent
	ranges    []string          // Range headers of requests
	uploads   int

	blob func(w http.ResponseWriter, r *http.Request, data []byte) // answers a GET of a blob; may be nil
	each func(w http.ResponseWriter, r *http.Request) bool         // sees each request first, and reports whether it has answered; may be nil
}

const repository = "/v2/some/corpus/"

func serve(t *testing.T) *server {
	s := &server{manifests: make(map[string][]byte), blobs: make(map[string][]byte)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ref returns the reference of a tag.
func (s *server) ref(tag string) string {
	return strings.TrimPrefix(s.URL, "http://") + "/some/corpus:" + tag
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	each := s.each
	s.mu.Unlock()
	if each != nil && each(w, r) {
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, repository)
	kind, name, _ := strings.Cut(path, "/")
	s.mu.Lock()
	manifest, blob := s.manifests[name], s.blobs[name]
	s.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost: // begins an upload
		w.Header().Set("Location", repository+"uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && kind == "uploads":
		data, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.blobs[r.URL.Query().Get("digest")] = data
		s.uploads++
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut:
		data, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.manifests[name], s.manifests[artifact.Digest(data)] = data, data
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	case kind == "manifests" && manifest != nil:
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", artifact.Digest(manifest))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(manifest))
	case kind == "blobs" && blob != nil:
		w.Header().Set("Content-Type", "application/octet-stream")
		counting := &counter{w, s, 0}
		if r.Method == http.MethodGet && r.Header.Get("Range") != "" {
			s.mu.Lock()
			s.ranges = append(s.ranges, r.Header.Get("Range"))
			s.mu.Unlock()
		}
		if s.blob != nil && r.Method == http.MethodGet {
			s.blob(counting, r, blob)
			return
		}
		http.ServeContent(counting, r, "", time.Time{}, bytes.NewReader(blob))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// counter counts the bytes of blobs.
type counter struct {
	http.ResponseWriter
	s    *server
	left int // number of bytes, if positive, before the connection breaks
}

func (c *counter) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

func (c *counter) Write(b []byte) (int, error) {
	if c.left > 0 && len(b) >= c.left {
		c.ResponseWriter.Write(b[:c.left])
		c.Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	n, err := c.ResponseWriter.Write(b)
	c.s.mu.Lock()
	c.s.sent += int64(n)
	c.s.mu.Unlock()
	return n, err
}

// folder writes an artifact with a layer to a folder, and returns its name and the digest of the layer.
func folder(t *testing.T, layer []byte) (dir, digest string) {
	t.Helper()
	dir, digest = t.TempDir(), artifact.Digest(layer)
	a := artifact.Artifact{Archive: true, Layers: []artifact.Layer{{Digest: digest, Size: int64(len(layer)), Title: "x.btfa"}}}
	text, err := a.Encode("test", "2026-01-01T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		artifact.ManifestFile: text, artifact.File(digest): layer, artifact.File(artifact.Digest(artifact.Empty)): artifact.Empty,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, digest
}

// result is what a run printed.
type result struct {
	status   int
	moved    int64
	manifest []byte
	err      artifact.Event
}

// start runs the program.
func start(t *testing.T, args ...string) (r result) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	return startHere(t, args...)
}

// startHere is start without a change to the environment.
func startHere(t *testing.T, args ...string) (r result) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	r.status = run(t.Context(), args, &stdout, &stderr)
	for line := range bytes.Lines(stdout.Bytes()) {
		var e artifact.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		r.moved += e.Moved
		if e.Manifest != nil {
			r.manifest = e.Manifest
		}
		if e.Error != "" {
			r.err = e
		}
		if e.Done > e.Size {
			t.Errorf("%d of %d bytes", e.Done, e.Size)
		}
	}
	if (r.status == 1) != (r.err.Error != "") || stderr.Len() > 0 && r.status != 2 {
		t.Errorf("%q: status %d, event %+v, %s", args, r.status, r.err, &stderr)
	}
	return r
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// TestMoves pushes an artifact twice and downloads it.
func TestMoves(t *testing.T) {
	s, layer := serve(t), random(100_000)
	dir, digest := folder(t, layer)
	if r := start(t, "put", "--", s.ref("v1"), dir); r.status != 0 || r.moved != int64(len(layer)+len(artifact.Empty)) || s.uploads != 2 {
		t.Errorf("put: %+v, %d uploads", r, s.uploads)
	}
	if r := start(t, "put", s.ref("v2"), dir); r.status != 0 || r.moved != 0 || s.uploads != 2 {
		t.Errorf("put again: %+v, %d uploads", r, s.uploads)
	}
	text, _ := os.ReadFile(filepath.Join(dir, artifact.ManifestFile))
	pinned := artifact.Pin(s.ref("v1"), artifact.Digest(text))
	for _, ref := range []string{s.ref("v1"), s.ref("v2"), pinned} {
		if r := start(t, "manifest", ref); !bytes.Equal(r.manifest, text) {
			t.Errorf("%s: manifest %s", ref, r.manifest)
		}
	}
	to := t.TempDir()
	for _, moved := range []int64{int64(len(layer)), 0} {
		if r := start(t, "get", pinned, to, digest); r.status != 0 || r.moved != moved {
			t.Errorf("get: %+v", r)
		}
		if got, _ := os.ReadFile(filepath.Join(to, artifact.File(digest))); !bytes.Equal(got, layer) {
			t.Errorf("%d bytes", len(got))
		}
	}
	if r := start(t, "get", pinned, to, artifact.Digest(text)); r.err.Error != artifact.Failed {
		t.Errorf("a digest that is not in the manifest: %+v", r)
	}
}

// TestContinues downloads a blob over connections that break, with and without support for ranges, and after runs that ended early or left
// something else.
func TestContinues(t *testing.T) {
	layer := random(1 << 20)
	cut := func(after int) func(w http.ResponseWriter, r *http.Request, data []byte) {
		return func(w http.ResponseWriter, r *http.Request, data []byte) {
			w.(*counter).left = after
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		}
	}
	whole := func(w http.ResponseWriter, r *http.Request, data []byte) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data)
	}
	for _, test := range []struct {
		name   string
		part   []byte // content that an earlier run left
		done   []byte // content under the final name
		blob   func(w http.ResponseWriter, r *http.Request, data []byte)
		moved  int
		ranges bool
	}{
		{"new", nil, nil, nil, 1 << 20, false},
		{"breaks", nil, nil, cut(300_000), 1 << 20, true},
		{"continued", layer[:900_000], nil, nil, 1<<20 - 900_000, true},
		{"complete", layer, nil, nil, 0, false},
		{"without ranges", layer[:900_000], nil, whole, 1 << 20, false},
		{"other beginning", random(900_000), nil, nil, 1<<20 - 900_000 + 1<<20, true},
		{"other content", random(1 << 20), nil, nil, 1 << 20, false},
		{"too long", random(1<<20 + 10), nil, nil, 1 << 20, false},
		{"damaged", nil, layer[:100], nil, 1 << 20, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t)
			dir, digest := folder(t, layer)
			if r := start(t, "put", s.ref("v1"), dir); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			s.blob = test.blob
			path := filepath.Join(t.TempDir(), artifact.File(digest))
			if test.part != nil {
				os.WriteFile(path+".part", test.part, 0o600)
			}
			if test.done != nil {
				os.WriteFile(path, test.done, 0o600)
			}
			r := start(t, "get", s.ref("v1"), filepath.Dir(path), digest)
			if r.status != 0 || r.moved != int64(test.moved) || (len(s.ranges) > 0) != test.ranges {
				t.Errorf("%+v, want %d bytes; ranges %q", r, test.moved, s.ranges)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, layer) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestLies downloads from registries that send something else, deny or do not answer.
func TestLies(t *testing.T) {
	const slow = "too slow"
	layer := random(50_000)
	status := func(code int) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if code == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			}
			w.WriteHeader(code)
			return true
		}
	}
	send := func(data []byte) func(w http.ResponseWriter, r *http.Request, _ []byte) {
		return func(w http.ResponseWriter, r *http.Request, _ []byte) {
			w.(http.Flusher).Flush() // the answer then has no length
			w.Write(data)
		}
	}
	manifest := func(media, text string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Content-Type", media)
			w.Header().Set("Docker-Content-Digest", artifact.Digest([]byte(text)))
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			w.Write([]byte(text))
			return true
		}
	}
	const oci = "application/vnd.oci.image.manifest.v1+json"
	for _, test := range []struct {
		name string
		kind artifact.Kind
		want string
		blob func(w http.ResponseWriter, r *http.Request, data []byte)
		each func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"other bytes", artifact.Wrong, "other content of that size", send(random(len(layer))), nil},
		{"more bytes", artifact.Wrong, "more than 50000 bytes", send(append(layer, 'x')), nil},
		{"endless", artifact.Wrong, "more than 50000 bytes", func(w http.ResponseWriter, r *http.Request, _ []byte) {
			for err := error(nil); err == nil; _, err = w.Write(layer) {
				w.(http.Flusher).Flush()
			}
		}, nil},
		{"fewer bytes", artifact.Away, "unexpected EOF", send(layer[:100]), nil},
		{"another size", artifact.Wrong, "mismatch", func(w http.ResponseWriter, r *http.Request, _ []byte) { w.Write(layer[:100]) }, nil},
		{"stalls", artifact.Away, slow, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, nil},
		{"drips", artifact.Away, slow, func(w http.ResponseWriter, r *http.Request, data []byte) { drip(w, r, data) }, nil},
		{"drips a manifest", artifact.Away, slow, nil, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", oci)
			w.Header().Set("Docker-Content-Digest", artifact.Digest(layer))
			w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
			drip(w, r, layer)
			return true
		}},
		{"drips a token", artifact.Away, slow, nil, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/token" {
				drip(w, r, bytes.Repeat([]byte(" "), len(layer)))
			} else {
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			}
			return true
		}},
		{"no layer", artifact.Wrong, "the registry does not have it", func(w http.ResponseWriter, r *http.Request, _ []byte) { w.WriteHeader(http.StatusNotFound) }, nil},
		{"as gzip", artifact.Wrong, "other content of that size", func(w http.ResponseWriter, r *http.Request, _ []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
			w.Write(bytes.Repeat([]byte("x"), len(layer)))
		}, nil},
		{"header", artifact.Wrong, "invalid response header", nil, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", "sha256:../../x")
			w.Header().Set("Content-Type", oci)
			return true
		}},
		{"400", artifact.Failed, "400 Bad Request; it may want TLS", nil, status(http.StatusBadRequest)},
		{"401", artifact.Denied, "", nil, status(http.StatusUnauthorized)},
		{"403", artifact.Denied, "403 Forbidden", nil, status(http.StatusForbidden)},
		{"404", artifact.Unknown, "", nil, status(http.StatusNotFound)},
		{"index", artifact.Wrong, "media type", nil, manifest("application/vnd.oci.image.index.v1+json",
			`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)},
		{"no JSON", artifact.Wrong, "invalid character", nil, manifest(oci, "<html>")},
		{"size", artifact.Wrong, "layer of -1 bytes", nil, manifest(oci, `{"schemaVersion":2,"config":{"digest":"`+artifact.Digest(nil)+`","size":-1}}`)},
		{"path", artifact.Wrong, "want sha256:", nil, manifest(oci, `{"schemaVersion":2,"config":{"digest":"sha256:../../x"}}`)},
		{"large manifest", artifact.Wrong, "", nil, manifest(oci, strings.Repeat(" ", limits.ArtifactManifest+1))},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t)
			dir, digest := folder(t, layer)
			if r := start(t, "put", s.ref("v1"), dir); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			s.mu.Lock()
			s.blob, s.each = test.blob, test.each
			s.mu.Unlock()
			if test.want == slow { // other registries answer, however long that takes on a busy machine
				impatient(t)
			}
			to := t.TempDir()
			r := start(t, "get", s.ref("v1"), to, digest)
			if r.err.Error != test.kind || !strings.Contains(r.err.Message, test.want) {
				t.Errorf("%+v, want %s, %q", r.err, test.kind, test.want)
			}
			if files, _ := filepath.Glob(filepath.Join(to, "*")); len(files) > 0 && !strings.HasSuffix(files[0], ".part") {
				t.Errorf("files %q", files)
			}
		})
	}
	if r := start(t, "manifest", "127.0.0.1:1/some/corpus:v1"); r.err.Error != artifact.Away || !strings.Contains(r.err.Message, "connection refused") {
		t.Errorf("%+v", r.err)
	}
	for _, ref := range []string{"some", "a b/c:d", "localhost:x/y:z", "localhost/UPPER:v1"} {
		if r := start(t, "manifest", ref); r.err.Error != artifact.Usage {
			t.Errorf("%s: %+v", ref, r.err)
		}
	}
}

// impatient shortens, for a test, the time after which a registry that does not answer is given up.
func impatient(t *testing.T) {
	wait := idle
	idle = 200 * time.Millisecond
	t.Cleanup(func() { idle = wait })
}

// drip sends a byte and then another one, as long as the client waits.
func drip(w http.ResponseWriter, r *http.Request, data []byte) {
	for i := range data {
		if _, err := w.Write(data[i : i+1]); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestNever wants one request to a registry that never answers, and an upload to end that is not read.
func TestNever(t *testing.T) {
	impatient(t)
	s := serve(t)
	var requests atomic.Int64
	s.each = func(_ http.ResponseWriter, r *http.Request) bool {
		requests.Add(1)
		<-r.Context().Done()
		return true
	}
	if r := start(t, "manifest", s.ref("v1")); r.err.Error != artifact.Away || !strings.Contains(r.err.Message, "timeout awaiting response headers") || requests.Load() != 1 {
		t.Errorf("%+v, %d requests, want one", r.err, requests.Load())
	}
	end := make(chan bool)
	defer close(end)
	s.mu.Lock()
	s.each = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength > 1<<20 {
			<-end
		}
		return false
	}
	s.mu.Unlock()
	dir, _ := folder(t, random(32<<20)) // more than sockets buffer
	if r := start(t, "put", s.ref("v1"), dir); r.err.Error != artifact.Away || !strings.Contains(r.err.Message, "too slow") {
		t.Errorf("%+v", r.err)
	}
}

// TestRefused pushes to registries that do not take it.
func TestRefused(t *testing.T) {
	dir, _ := folder(t, random(100))
	for code, want := range map[int]string{
		http.StatusNotFound:   "404 Not Found: name unknown: no; some registries want the repository to be created first",
		http.StatusBadRequest: "400 Bad Request: name unknown: no",
	} {
		s := serve(t)
		s.each = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			w.Write([]byte(`{"errors": [{"code": "NAME_UNKNOWN", "message": "no"}]}`))
			return true
		}
		if r := start(t, "put", s.ref("v1"), dir); r.err.Error != artifact.Failed || r.err.Message != want {
			t.Errorf("%d: %+v, want %s", code, r.err, want)
		}
	}
}

// TestDenied pushes to a registry that wants a password, with and without it.
func TestDenied(t *testing.T) {
	s := serve(t)
	s.each = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "me" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	dir, _ := folder(t, random(100))
	if r := start(t, "put", s.ref("v1"), dir); r.err.Error != artifact.Denied {
		t.Errorf("%+v", r)
	}
	config := t.TempDir()
	os.WriteFile(filepath.Join(config, "config.json"), fmt.Appendf(nil, `{"auths": {%q: {"auth": "bWU6c2VjcmV0"}}}`, strings.TrimPrefix(s.URL, "http://")), 0o600)
	t.Setenv("DOCKER_CONFIG", config)
	var stdout, stderr bytes.Buffer
	if got := run(t.Context(), []string{"put", s.ref("v1"), dir}, &stdout, &stderr); got != 0 {
		t.Errorf("status %d: %s%s", got, &stdout, &stderr)
	}
}

// TestNoHome runs without DOCKER_CONFIG and HOME, as services do. A registry without passwords does not need them.
func TestNoHome(t *testing.T) {
	for _, name := range []string{"DOCKER_CONFIG", "HOME", "USERPROFILE"} {
		t.Setenv(name, "")
	}
	s := serve(t)
	dir, _ := folder(t, random(100))
	if r := startHere(t, "put", s.ref("v1"), dir); r.status != 0 {
		t.Errorf("%+v", r)
	}
	s.each = func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	r := startHere(t, "manifest", s.ref("v1"))
	if r.err.Error != artifact.Denied || !strings.Contains(r.err.Message, "; no configuration of Docker: $DOCKER_CONFIG is not defined, and ") {
		t.Errorf("%+v", r)
	}
}

// TestScheme wants HTTPS for all but this machine, and after a redirect.
func TestScheme(t *testing.T) {
	for registry, plain := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "127.1.2.3": true, "[::1]:5000": true,
		"example.org": false, "localhost.example.org": false, "127.0.0.1.example.org:80": false, "10.0.0.1:5000": false,
	} {
		if loopback(registry) != plain {
			t.Errorf("%s: plain %v", registry, !plain)
		}
	}
	from, _ := http.NewRequest("GET", "https://example.org/", nil)
	for url, ok := range map[string]bool{"https://cdn.example.org/x": true, "http://cdn.example.org/x": false} {
		to, _ := http.NewRequest("GET", url, nil)
		if err := redirect(to, []*http.Request{from}); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestUsage wants status 2 for wrong words.
func TestUsage(t *testing.T) {
	for _, args := range []string{"", "help", "get", "put x", "put x y z", "manifest", "manifest --password x y", "-x"} {
		if r := start(t, strings.Fields(args)...); r.status != 2 {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
