// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"context"
	"errors"

	"github.com/btfgen/btfgen/internal/limits"
)

// Extras are the configuration and the symbols of a kernel: lines with a newline each. Nil is unknown.
//
// Both are encoded together, like the BTF of a kernel that has a string for each line and no types.
type Extras struct {
	Config, Symbols []byte
}

// lineBytes is the minimum of bytes of a line: "t x" and the newline.
const lineBytes = 4

// check returns an error if a file cannot have the extras.
func (x *Extras) check() error {
	switch {
	case len(x.Config) > limits.KconfigBytes:
		return &limits.Exceeded{Max: limits.KconfigBytes, What: "bytes of configuration"}
	case len(x.Symbols) > limits.SymbolBytes:
		return &limits.Exceeded{Max: limits.SymbolBytes, What: "bytes of symbols"}
	}
	count := 0
	for _, text := range [][]byte{x.Config, x.Symbols} {
		if len(text) > 0 && text[len(text)-1] != '\n' {
			return errors.New("configuration or symbols: the last line has no end")
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return errors.New("configuration or symbols: a NUL byte")
		}
		count += bytes.Count(text, []byte("\n"))
	}
	if count > (len(x.Config)+len(x.Symbols))/lineBytes {
		return errors.New("configuration or symbols: too many short lines")
	}
	return nil
}

// encodeExtras returns the parts of the payload of extras.
func encodeExtras(parent *state, k *known, x Extras) ([][]byte, error) {
	p := newParsed()
	for _, text := range [][]byte{x.Config, x.Symbols} {
		for line := range bytes.Lines(text) {
			p.strings = append(p.strings, p.number(k, line[:len(line)-1]))
		}
	}
	s, err := write(parent, p, new(matching))
	if err != nil {
		return nil, err
	}
	return s.parts(), nil
}

// Extras returns the configuration and the symbols of kernel i.
func (f *File) Extras(ctx context.Context, i int) (x Extras, err error) {
	e := &f.entries[i]
	if !e.has(partExtras) {
		return x, nil
	}
	st, err := f.states.get(ctx, chunkID{partExtras, i})
	if err == nil {
		x, err = st.extras(e.Config, e.Symbols)
	}
	if err != nil {
		return Extras{}, e.wrap(ctx, partExtras, err)
	}
	return x, nil
}

// extras returns the lines of a state, as so many bytes of configuration and of symbols.
func (st *state) extras(config, symbols int64) (x Extras, err error) {
	list, err := st.list()
	if err != nil {
		return x, err
	}
	text := make([]byte, 0, config+symbols)
	for _, n := range list {
		line := st.name(n)
		if len(line) > cap(text)-len(text) {
			return x, errWrong
		}
		text = append(text, line...)
		text[len(text)-1] = '\n'
	}
	if len(text) < cap(text) || config > 0 && text[config-1] != '\n' || st.numBase()+len(st.types)+len(st.rest) > 0 {
		return x, errWrong
	}
	if config > 0 {
		x.Config = text[:config:config]
	}
	if symbols > 0 {
		x.Symbols = text[config:]
	}
	return x, nil
}
