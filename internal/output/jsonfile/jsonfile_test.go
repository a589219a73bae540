// SPDX-License-Identifier: Apache-2.0

package jsonfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// visit reads a value: objects and arrays with Object and Array, fields named skip with Skip.
func visit(d *Decoder, depth int) error {
	return d.Object(func(name string) error {
		switch name {
		case "object":
			if depth == 0 {
				return errors.New("too deep for this test")
			}
			return visit(d, depth-1)
		case "array":
			return d.Array(3, "values", func() error {
				var v any
				return d.Value(&v)
			})
		}
		return d.Skip()
	})
}

func readString(text string) error {
	d := newDecoder(context.Background(), strings.NewReader(text), limits.ManifestBytes)
	if err := visit(d, 100); err != nil {
		return err
	}
	return d.End()
}

func TestDecoder(t *testing.T) {
	for _, good := range []string{
		`{}`, ` { "object" : {"array":[1,"2",{"a":[]}]}, "skip":[[[{"a":[1]}]],2,{}], "array":null, "object":null,"x":"y" } ` + "\n",
	} {
		if err := readString(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{"a":1]`, `{1:2}`, `{null:2}`, `{{}:2}`, `{"array":{}}`, `{"object":[]}`, `{"array":[1,2,3,4]}`,
		`{"array":[1,]}`, `{"array":[1 2]}`, `{"skip":[1}`, `{"skip":}`, `{}{}`, `{} x`, `[]`, `"a"`, `{"object":"a"}`, `{"array":[1`,
	} {
		if err := readString(bad); err == nil {
			t.Errorf("%s: read", bad)
		}
	}
}

// FuzzDecoder checks that Decoder refuses what encoding/json refuses, and does not panic.
func FuzzDecoder(f *testing.F) {
	f.Add(`{"object":{"array":[1,"2",{"a":[]}]},"skip":[[[{"a":[1]}]],2,{}],"array":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		if err := readString(text); err == nil && !json.Valid([]byte(text)) {
			t.Errorf("read %q", text)
		}
	})
}

// endless repeats a text.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[(e.read+i)%len(e.text)]
	}
	e.read += len(p)
	return len(p), nil
}

// TestLimits checks that endless files and values end with an error, with little memory.
func TestLimits(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	skip := func(d *Decoder) error {
		for {
			if err := d.Skip(); err != nil {
				return err
			}
		}
	}
	for text, most := range map[string]int{`["` + strings.Repeat("a", 60000) + `"]`: limits.ManifestBytes, `[`: 1 << 20, `[{"a":`: 1 << 20, ` `: limits.EarlierElement} {
		in := &endless{text: text}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := skip(newDecoder(t.Context(), in, limits.ManifestBytes))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || in.read > most+1<<20 || took > 3*limits.ManifestBytes {
			t.Errorf("%.10q: read %d bytes, allocated %d, %v", text, in.read, took, err)
		}
	}
	for name, begin := range map[string]string{"text": `"`, "number": `1`, "array": `[`} {
		in := &endless{text: map[string]string{"text": "x", "number": "1", "array": "1,"}[name]}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var v any
		err := newDecoder(t.Context(), io.MultiReader(strings.NewReader(begin), in), limits.ManifestBytes).Value(&v)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || in.read > limits.EarlierElement+1<<20 || took > 8*limits.EarlierElement {
			t.Errorf("%s: read %d bytes, allocated %d, %v", name, in.read, took, err)
		}
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	read := func(d *Decoder) error { return d.Skip() }
	if err := Read(t.Context(), path, 1<<30, "a test", read); !errors.Is(err, os.ErrNotExist) || err.Error() != path+": no such file or directory" {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{`: path + ": not a test: unexpected EOF", `x`: path + ": not a test: invalid character 'x' looking for beginning of value", `{}`: "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Read(t.Context(), path, 1<<30, "a test", read); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("1"), limits.EarlierElement+1<<16), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Read(t.Context(), path, 1<<30, "a test", read); err == nil || err.Error() != path+": too large: one of its values has more than 16 MiB" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Read(ctx, path, 1<<30, "a test", read); err != context.Canceled {
		t.Error(err)
	}
}
