// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/limits"
)

// open returns the repository of a reference.
func open(ref string, plain bool) (*remote.Repository, error) {
	repo, err := remote.NewRepository(ref)
	if err != nil {
		return nil, err
	}
	credential, err := credential()
	if err != nil {
		return nil, fmt.Errorf("configuration of Docker: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = idle
	transport.DisableCompression = true // layers are compressed already, and their digests must match
	repo.PlainHTTP = plain || loopback(repo.Reference.Registry)
	repo.Client = &auth.Client{
		Client: &http.Client{
			Transport:     &retry.Transport{Base: transport, Policy: func() retry.Policy { return answered{} }},
			CheckRedirect: redirect,
		},
		Header: http.Header{"User-Agent": {"btfgen-registry/" + versionText()}},
		Cache:  auth.NewCache(), Credential: credential,
	}
	repo.MaxMetadataBytes = limits.ArtifactManifest
	return repo, nil
}

// credential returns the function that finds credentials in Docker's configuration. It is nil if no variable says where that is.
func credential() (auth.CredentialFunc, error) {
	if configured() != nil {
		return nil, nil
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, err
	}
	return credentials.Credential(store), nil
}

// configured returns an error if no variable of the environment says where Docker's configuration is.
func configured() error {
	if os.Getenv("DOCKER_CONFIG") != "" {
		return nil
	}
	_, err := os.UserHomeDir()
	return err
}

// idle is how long to wait for an answer, or for the next RegistryBytes of a layer.
var idle = limits.RegistrySeconds * time.Second

// answered repeats requests that a registry has answered with a temporary failure, such as 503. One without an answer has taken long enough.
type answered struct{}

func (answered) Retry(attempt int, resp *http.Response, err error) (time.Duration, error) {
	if err != nil {
		return -1, nil
	}
	return retry.DefaultPolicy.Retry(attempt, resp, nil)
}

// loopback reports whether a registry is on this machine. It is then used without TLS, as by Docker.
func loopback(registry string) bool {
	host := registry
	if h, _, err := net.SplitHostPort(registry); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// redirect refuses to go from HTTPS to HTTP.
func redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirects")
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("redirect to %s, which is not HTTPS", req.URL.Host)
	}
	return nil
}

// errWrong is wrapped by errors about a registry that does not send what its manifest says.
var errWrong = errors.New("not what the manifest says")

// classify returns the kind of an error, and what to say.
func classify(err error) (artifact.Kind, string) {
	text := strings.TrimSpace(err.Error())
	var answer *errcode.ErrorResponse
	if errors.As(err, &answer) {
		text = fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
		switch {
		case len(answer.Errors) > 0:
			text += ": " + answer.Errors.Error()
		case answer.StatusCode == http.StatusBadRequest && answer.URL != nil && answer.URL.Scheme == "http":
			text += "; it may want TLS, which is not used on this machine and with --plain-http"
		}
		switch s := answer.StatusCode; {
		case s == http.StatusUnauthorized, s == http.StatusForbidden:
			return artifact.Denied, text
		case s == http.StatusNotFound:
			return artifact.Unknown, text
		case s == http.StatusTooManyRequests, s >= 500:
			return artifact.Away, text
		}
		return artifact.Failed, text
	}
	for _, c := range []struct {
		err  error
		kind artifact.Kind
	}{
		{errWrong, artifact.Wrong},
		{content.ErrMismatchedDigest, artifact.Wrong},
		{content.ErrTrailingData, artifact.Wrong},
		{content.ErrInvalidDescriptorSize, artifact.Wrong},
		{errdef.ErrSizeExceedsLimit, artifact.Wrong},
		{auth.ErrBasicCredentialNotFound, artifact.Denied},
		{errdef.ErrNotFound, artifact.Unknown},
		{errdef.ErrInvalidReference, artifact.Usage},
		{errSlow, artifact.Away},
		{io.ErrUnexpectedEOF, artifact.Away},
	} {
		if errors.Is(err, c.err) {
			return c.kind, text
		}
	}
	var at *url.Error // the error of a request without an answer
	if errors.As(err, &at) {
		text = at.Err.Error()
		var record tls.RecordHeaderError
		if errors.As(err, &record) || strings.Contains(text, "HTTP response to HTTPS client") {
			text += "; if it has no TLS, use --plain-http"
		}
		return artifact.Away, text
	}
	// The library's errors about headers have no value.
	if strings.Contains(text, "mismatch") || strings.Contains(text, "invalid response") {
		return artifact.Wrong, text
	}
	return artifact.Failed, text
}

// fetchManifest returns the manifest of an artifact.
func fetchManifest(ctx context.Context, repo *remote.Repository, ref string) (text []byte, err error) {
	ctx, stop := brief(ctx, &err)
	defer stop()
	desc, body, err := repo.Manifests().FetchReference(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if desc.Size > limits.ArtifactManifest {
		return nil, fmt.Errorf("%w: %w", errWrong,
			&limits.Exceeded{Max: limits.ArtifactManifest, What: "bytes of a manifest"})
	}
	if text, err = content.ReadAll(body, desc); err != nil {
		return nil, err
	}
	if d := repo.Reference.Reference; strings.Contains(d, ":") && d != artifact.Digest(text) {
		return nil, fmt.Errorf("%w: the manifest has another digest", errWrong)
	}
	return text, nil
}

func printManifest(ctx context.Context, out *printer, ref string, plain bool) error {
	repo, err := open(ref, plain)
	if err != nil {
		return err
	}
	text, err := fetchManifest(ctx, repo, repo.Reference.Reference)
	if err == nil {
		out.print(&artifact.Event{Manifest: text, Digest: artifact.Digest(text)})
	}
	return err
}

var errSlow = errors.New("the registry is too slow")

// brief returns a context for a short request, including the tokens for it. When its time is over, stop replaces its error by errSlow.
func brief(ctx context.Context, failed *error) (_ context.Context, stop func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.RegistryRequest*idle/limits.RegistrySeconds, errSlow)
	return ctx, func() {
		*failed = slowOr(ctx, *failed)
		cancel()
	}
}

// patience returns a context for a request with a layer, and a function for the reader of the layer. When less than RegistryBytes move for a
// while, the context is done and reading fails. The caller calls stop.
func patience(ctx context.Context) (_ context.Context, alive func(io.Reader) io.Reader, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	// The transport itself waits idle for the start of an answer, so this limit is longer.
	timer := time.AfterFunc(2*idle, func() { cancel(errSlow) })
	return ctx, func(r io.Reader) io.Reader {
			timer.Reset(idle)
			return &patient{ctx: ctx, r: r, timer: timer}
		}, func() {
			timer.Stop()
			cancel(nil)
		}
}

// patient reads a layer.
type patient struct {
	ctx   context.Context
	r     io.Reader
	timer *time.Timer // cancels ctx
	moved int         // bytes since the timer was reset
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if p.moved += n; p.moved >= limits.RegistryBytes || err == io.EOF { // after the end, an answer may follow
		p.moved = 0
		p.timer.Reset(idle)
	}
	if err != nil && err != io.EOF {
		err = slowOr(p.ctx, err)
	}
	return n, err
}

// slowOr returns errSlow if a context is done because of it, otherwise the error.
func slowOr(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == errSlow {
		return errSlow
	}
	return err
}

// put pushes the artifact in a folder.
func put(ctx context.Context, out *printer, ref string, plain bool, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, artifact.ManifestFile))
	if err != nil {
		return err
	}
	blobs, err := artifact.Blobs(text)
	if err != nil {
		return err
	}
	repo, err := open(ref, plain)
	if err != nil {
		return err
	}
	var missing []ocispec.Descriptor
	for _, b := range blobs {
		d := ocispec.Descriptor{MediaType: b.MediaType, Digest: digest.Digest(b.Digest), Size: b.Size}
		there, err := exists(ctx, repo, d)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, d)
			out.size += d.Size
		}
	}
	stop := out.watch()
	defer stop()
	for _, d := range missing {
		if err := putBlob(ctx, out, repo, dir, d); err != nil {
			return err
		}
		out.print(&artifact.Event{Moved: d.Size})
	}
	media := ocispec.MediaTypeImageManifest
	d := content.NewDescriptorFromBytes(media, text)
	if err := putManifest(ctx, repo, d, text); err != nil {
		return err
	}
	out.print(&artifact.Event{Digest: d.Digest.String()})
	return nil
}

// exists reports whether the registry has a blob.
func exists(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor) (there bool, err error) {
	ctx, stop := brief(ctx, &err)
	defer stop()
	return repo.Blobs().Exists(ctx, d)
}

// putManifest pushes a manifest.
func putManifest(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, text []byte) (err error) {
	ctx, stop := brief(ctx, &err)
	defer stop()
	return repo.Manifests().PushReference(ctx, d, bytes.NewReader(text), repo.Reference.Reference)
}

// putBlob pushes a file.
func putBlob(ctx context.Context, out *printer, repo *remote.Repository, dir string, d ocispec.Descriptor) error {
	f, err := os.Open(filepath.Join(dir, artifact.File(d.Digest.String())))
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, alive, stop := patience(ctx)
	defer stop()
	return slowOr(ctx, repo.Blobs().Push(ctx, d, alive(&counted{f, out})))
}

// counted counts the bytes that are read.
type counted struct {
	r   io.Reader
	out *printer
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.out.add(int64(n))
	return n, err
}
