// SPDX-License-Identifier: Apache-2.0

// Package jsonfile reads JSON files of earlier runs piece by piece. It needs memory only for the pieces that the caller keeps. The
// files are not trusted.
package jsonfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/btfgen/btfgen/internal/limits"
)

// Read opens the file at path, of up to limit bytes, and calls read with its content. Errors name path and what is expected.
func Read(ctx context.Context, path string, limit int, what string, read func(*Decoder) error) error {
	f, err := os.Open(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	err = read(newDecoder(ctx, f, limit))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%s: %w", path, err)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: not %s: %w", path, what, err)
}

// Decoder reads one value after the other.
type Decoder struct {
	dec *json.Decoder
	in  *source
}

func newDecoder(ctx context.Context, r io.Reader, limit int) *Decoder {
	in := &source{ctx: ctx, r: r, limit: limit, left: limit}
	return &Decoder{json.NewDecoder(in), in}
}

// source limits the bytes of the file and of each value.
type source struct {
	ctx   context.Context
	r     io.Reader
	limit int // bytes
	left  int // of limit
	value int // bytes left for the current value
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.value <= 0 {
		return 0, fmt.Errorf("%w: one of its values has more than %d MiB", errTooLarge, limits.EarlierElement>>20)
	}
	n, err := s.r.Read(p[:min(len(p), s.value)])
	if s.left -= n; s.left < 0 {
		return 0, fmt.Errorf("%w: has more than %d MiB", errTooLarge, s.limit>>20)
	}
	s.value -= n
	return n, err
}

// errTooLarge is the error for a file or value that is larger than any that btfgen writes.
var errTooLarge = errors.New("too large")

// Value reads a value as encoding/json does. At the end of the file it returns io.EOF.
func (d *Decoder) Value(v any) error {
	d.in.value = limits.EarlierElement
	return d.dec.Decode(v)
}

func (d *Decoder) token() (json.Token, error) {
	d.in.value = limits.EarlierElement
	return d.dec.Token()
}

// Object reads an object. field reads or skips the value of each of its fields.
func (d *Decoder) Object(field func(name string) error) error {
	return d.list('{', func(int) error {
		name, err := d.token()
		if err != nil {
			return err
		}
		return field(name.(string)) // Token returns no other type here
	})
}

// Array reads an array of up to most values, or null. element reads each value; what is their name in errors.
func (d *Decoder) Array(most int, what string, element func() error) error {
	return d.list('[', func(n int) error {
		if n == most {
			return fmt.Errorf("more than %d %s", most, what)
		}
		if err := element(); err != nil {
			return fmt.Errorf("%s, number %d: %w", what, n+1, err)
		}
		return nil
	})
}

// list reads what starts with a delimiter, or null.
func (d *Decoder) list(begin json.Delim, element func(n int) error) error {
	switch t, err := d.token(); {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != begin:
		return fmt.Errorf("%v where %v is expected", shown(t), begin)
	}
	for n := 0; d.dec.More(); n++ {
		if err := element(n); err != nil {
			return err
		}
	}
	_, err := d.token() // the closing delimiter
	return err
}

// shown returns a token for messages.
func shown(t json.Token) any {
	if s, ok := t.(string); ok {
		return fmt.Sprintf("%.40q", s)
	}
	return t
}

// Skip skips a value.
func (d *Decoder) Skip() error {
	for depth := 0; ; {
		t, err := d.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > limits.EarlierDepth {
				return fmt.Errorf("more than %d values in each other", limits.EarlierDepth)
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// End returns an error unless it is at the end of the file.
func (d *Decoder) End() error {
	t, err := d.token()
	if err == io.EOF {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%v after the end", shown(t))
	}
	return err
}
