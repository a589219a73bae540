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
	transport.DisableCompression = true // layers are compressed, and digests are of what is sent
	repo.PlainHTTP = plain || loopback(repo.Reference.Registry)
	repo.Client = &auth.Client{
		Client: &http.Client{Transport: retry.NewTransport(transport), CheckRedirect: redirect},
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

// idle is how long to wait for an answer or for more of one.
var idle = limits.RegistrySeconds * time.Second

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
		{errIdle, artifact.Away},
		{io.ErrUnexpectedEOF, artifact.Away},
	} {
		if errors.Is(err, c.err) {
			return c.kind, text
		}
	}
	var at *url.Error // requests that have no answer
	if errors.As(err, &at) {
		text = at.Err.Error()
		var record tls.RecordHeaderError
		if errors.As(err, &record) || strings.Contains(text, "HTTP response to HTTPS client") {
			text += "; if it has no TLS, use --plain-http"
		}
		return artifact.Away, text
	}
	if strings.Contains(text, "mismatch") || strings.Contains(text, "invalid response") { // the library's errors about headers have no value
		return artifact.Wrong, text
	}
	return artifact.Failed, text
}

// fetchManifest returns the manifest of an artifact.
func fetchManifest(ctx context.Context, repo *remote.Repository, ref string) ([]byte, error) {
	ctx, alive := patience(ctx)
	desc, body, err := repo.Manifests().FetchReference(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if desc.Size > limits.ArtifactManifest {
		return nil, fmt.Errorf("%w: %w", errWrong, &limits.Exceeded{Max: limits.ArtifactManifest, What: "bytes of a manifest"})
	}
	text, err := content.ReadAll(alive(body), desc)
	if err != nil {
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

var errIdle = errors.New("nothing arrives any more")

// patience returns a context for a request, and a function for the body of its answer. When nothing arrives for a while, the context is done
// and reading the body fails.
func patience(ctx context.Context) (context.Context, func(io.Reader) io.Reader) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(2*idle, func() { cancel(errIdle) }) // the answer has a limit of its own
	return ctx, func(r io.Reader) io.Reader { return &patient{ctx, r, timer, cancel} }
}

// patient reads the body of an answer.
type patient struct {
	ctx    context.Context
	r      io.Reader
	timer  *time.Timer // cancels ctx
	cancel context.CancelCauseFunc
}

func (p *patient) Read(b []byte) (int, error) {
	p.timer.Reset(idle)
	n, err := p.r.Read(b)
	if err != nil {
		p.timer.Stop()
		if cause := context.Cause(p.ctx); err != io.EOF && cause != nil {
			err = cause
		}
		p.cancel(nil)
	}
	return n, err
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
		there, err := repo.Blobs().Exists(ctx, d)
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
	if err := repo.Manifests().PushReference(ctx, d, bytes.NewReader(text), repo.Reference.Reference); err != nil {
		return err
	}
	out.print(&artifact.Event{Digest: d.Digest.String()})
	return nil
}

// putBlob pushes a file.
func putBlob(ctx context.Context, out *printer, repo *remote.Repository, dir string, d ocispec.Descriptor) error {
	f, err := os.Open(filepath.Join(dir, artifact.File(d.Digest.String())))
	if err != nil {
		return err
	}
	defer f.Close()
	return repo.Blobs().Push(ctx, d, &counted{f, out})
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
