// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers/program"
)

// Kind is the kind of an error of btfgen-registry.
type Kind string

const (
	Unknown Kind = "unknown" // there is no such artifact
	Denied  Kind = "denied"
	Away    Kind = "away"  // the registry cannot be reached, or does not answer
	Wrong   Kind = "wrong" // the registry answers with something else
	Usage   Kind = "usage"
	Failed  Kind = "failed"
)

// Event is a line that btfgen-registry prints, as JSON.
type Event struct {
	Done int64 `json:"done,omitempty"` // bytes so far
	Size int64 `json:"size,omitempty"` // bytes of all

	Manifest []byte `json:"manifest,omitempty"` // its text; JSON has it in base64
	Digest   string `json:"digest,omitempty"`   // SHA-256 of the manifest, as sha256:…

	Moved int64 `json:"moved,omitempty"` // bytes of blobs and parts of blobs that were not there already

	Error   Kind   `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
}

// Program is the name of the program.
const Program = "btfgen-registry"

// Error is an error of btfgen-registry about an artifact.
type Error struct {
	Reference string
	Kind      Kind
	Message   string
}

func (e *Error) Error() string {
	registry, _, _ := strings.Cut(e.Reference, "/")
	said := map[Kind]string{
		Unknown: "the registry has no such artifact",
		Denied:  "the registry denies access: check the name, and log in with 'docker login " + registry + "' or 'oras login " + registry + "'",
		Away:    "the registry is not available",
		Wrong:   "the registry sent something else",
	}[e.Kind]
	if said == "" {
		return e.Reference + ": " + e.Message
	}
	return fmt.Sprintf("%s: %s (%s)", e.Reference, said, e.Message)
}

// Client moves artifacts.
type Client struct {
	PlainHTTP bool                   // even if the registry is not on this machine
	Progress  func(done, size int64) // is called several times a second; may be nil
	Waiting   func(registry string)  // is called once for a request in which nothing has moved for a while; may be nil
}

// quiet is how long nothing moves before Waiting is called.
var quiet = 5 * time.Second

// Manifest returns the manifest of an artifact and its digest.
func (c *Client) Manifest(ctx context.Context, ref string) (text []byte, digest string, err error) {
	err = c.run(ctx, ref, func(e *Event) {
		if e.Manifest != nil {
			text, digest = e.Manifest, e.Digest
		}
	}, "manifest", ref)
	switch {
	case err != nil:
		return nil, "", err
	case Digest(text) != digest:
		return nil, "", &Error{ref, Wrong, "its manifest has another digest"}
	}
	return text, digest, nil
}

// Get downloads blobs of the manifest that ref names to a folder. They have the names of [File]. It returns how many bytes were moved.
func (c *Client) Get(ctx context.Context, ref, dir string, digests []string) (moved int64, err error) {
	err = c.run(ctx, ref, func(e *Event) { moved += e.Moved }, append([]string{"get", ref, dir}, digests...)...)
	return moved, err
}

// Put pushes the manifest in a folder, [ManifestFile], and those of its blobs that the registry lacks, which have the names of [File].
func (c *Client) Put(ctx context.Context, ref, dir string) (digest string, moved int64, err error) {
	err = c.run(ctx, ref, func(e *Event) {
		moved += e.Moved
		digest = cmp.Or(e.Digest, digest)
	}, "put", ref, dir)
	return digest, moved, err
}

// ManifestFile is the name of the manifest in a folder.
const ManifestFile = "manifest.json"

// run runs btfgen-registry, and calls do with what it prints.
func (c *Client) run(ctx context.Context, ref string, do func(*Event), words ...string) error {
	var failed *Error
	var done int64
	waiting := time.AfterFunc(quiet, func() {
		if c.Waiting != nil {
			registry, _, _ := strings.Cut(ref, "/")
			c.Waiting(registry)
		}
	})
	defer waiting.Stop()
	out := &lines{do: func(line []byte) error {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: prints something else than events: %w", Program, err)
		}
		if e.Done != done && waiting.Stop() {
			done = e.Done
			waiting.Reset(quiet)
		}
		switch {
		case e.Error != "":
			failed = &Error{ref, e.Error, e.Message}
		case e.Size > 0 && c.Progress != nil:
			c.Progress(e.Done, e.Size)
		}
		do(&e)
		return nil
	}}
	said := new(tail)
	options := words[:1:1]
	if c.PlainHTTP {
		options = append(options, "--plain-http")
	}
	p, err := program.Start(ctx, &program.Command{
		Name: Program, Options: options, Words: words[1:], Stdout: out, Stderr: said, FileSize: limits.ArtifactLayer,
	})
	if err != nil {
		return err
	}
	err = p.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case out.err != nil:
		return out.err
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("%s: %w", Program, cmp.Or(said.reason(), err))
	}
	return nil
}

// lines calls do with each line that is written.
type lines struct {
	do   func([]byte) error
	rest []byte
	err  error
}

// eventBytes limits a line. A manifest takes four bytes for three.
const eventBytes = 2 * limits.ArtifactManifest

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for l.err == nil {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.err = l.do(line)
		l.rest = rest
	}
	if l.err == nil && len(l.rest) > eventBytes {
		l.err = &limits.Exceeded{Max: eventBytes, What: "bytes of a line of " + Program}
	}
	if l.err != nil {
		return 0, l.err
	}
	return len(b), nil
}

// tail keeps the end of what is written.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	const keep = 4 << 10
	t.b = append(t.b, b...)
	t.b = t.b[max(len(t.b)-keep, 0):]
	return len(b), nil
}

// reason returns the last line as an error, or nil.
func (t *tail) reason() error {
	text := strings.TrimSpace(string(t.b))
	if text == "" {
		return nil
	}
	return errors.New(text[strings.LastIndexByte(text, '\n')+1:])
}
