// SPDX-License-Identifier: Apache-2.0

// Package extras reads the configuration and the symbols of a kernel. It keeps only lines that set or name something.
package extras

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
)

// lines calls f for each line, whose bytes are valid until it returns.
func lines(r *bufio.Reader, f func(line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4<<10), limits.ExtraLine)
	for s.Scan() {
		if bytes.IndexByte(s.Bytes(), 0) >= 0 {
			return errors.New("a NUL byte in a line")
		}
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line of more than %d bytes", limits.ExtraLine)
	} else if err != nil {
		return err
	}
	return nil
}

// room returns an error if n bytes more are more than most.
func room(have []byte, n, most int) error {
	if len(have)+n > most {
		return fmt.Errorf("more than %d MiB", most>>20)
	}
	return nil
}

// ReadConfig returns the lines of a configuration that are kept, or nil.
func ReadConfig(r *bufio.Reader) (out []byte, err error) {
	any := false
	err = lines(r, func(line []byte) error {
		sets := bytes.HasPrefix(line, []byte("CONFIG_")) && bytes.IndexByte(line, '=') > 0
		if !sets && !bytes.HasSuffix(line, []byte(" Kernel Configuration")) {
			return nil
		}
		any = any || sets
		if err := room(out, len(line)+1, limits.KconfigBytes); err != nil {
			return err
		}
		out = append(append(out, line...), '\n')
		return nil
	})
	if err != nil || !any {
		return nil, err
	}
	return out, nil
}

// uselessSymbols are prefixes of symbols that are not kept.
var uselessSymbols = []string{"__ksymtab_", "__kstrtab_", "__kstrtabns_", "__crc_", "__pfx_"}

// ReadSymbols returns the symbols of a System.map or /proc/kallsyms, or those that it returned before; nil if they are not a kernel's.
func ReadSymbols(r *bufio.Reader) (out []byte, err error) {
	whole := false
	err = lines(r, func(line []byte) error {
		kind, name, module := parseSymbol(line)
		if kind == 0 {
			return nil
		}
		whole = whole || kind == 't' && (string(name) == "_stext" || string(name) == "_text")
		if err := room(out, len(name)+len(module)+4, limits.SymbolBytes); err != nil {
			return err
		}
		out = append(append(out, kind, ' '), name...)
		if module != nil {
			out = append(append(out, ' '), module...)
		}
		out = append(out, '\n')
		return nil
	})
	if err != nil || !whole {
		return nil, err
	}
	return out, nil
}

// parseSymbol returns the kind of a line's symbol, 't' or 'd', its name and its module in brackets. The kind is 0 for a line that is not kept.
func parseSymbol(line []byte) (kind byte, name, module []byte) {
	fields := bytes.Fields(line)
	if len(fields) > 2 && len(fields[0]) > 1 { // an address
		fields = fields[1:]
	}
	if len(fields) < 2 || len(fields[0]) != 1 || len(fields) > 3 || len(fields) == 3 && fields[2][0] != '[' {
		return 0, nil, nil
	}
	kind, name = 'd', fields[1]
	switch fields[0][0] {
	case 'T', 't', 'W', 'w', 'i':
		kind = 't'
	case 'U', 'N', 'n':
		return 0, nil, nil
	}
	if slices.ContainsFunc(uselessSymbols, func(p string) bool { return bytes.HasPrefix(name, []byte(p)) }) {
		return 0, nil, nil
	}
	if len(fields) == 3 {
		module = fields[2]
		// Loaded programs and probes have symbols, too.
		if string(module) == "[bpf]" || bytes.HasPrefix(module, []byte("[__builtin__")) {
			return 0, nil, nil
		}
	}
	return kind, name, module
}
