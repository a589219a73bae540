// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"slices"
)

// The beginnings of lines of symbols.
const (
	variablePrefix = "d "
	functionPrefix = "t "
)

// splitSymbols splits lines of symbols where the first function is.
func splitSymbols(symbols []byte) (variables, functions []byte) {
	at := 0
	for line := range bytes.Lines(symbols) {
		if bytes.HasPrefix(line, []byte(functionPrefix)) {
			break
		}
		at += len(line)
	}
	return symbols[:at], symbols[at:]
}

// prefixOf returns the prefix of unit i of the extras, which a reader adds to each line, so that a name is the same as in BTF. It is empty
// unless all lines have it.
func prefixOf(i int, blob []byte) string {
	prefix := [extrasUnits]string{"", variablePrefix, functionPrefix}[i]
	for line := range bytes.Lines(blob) {
		if !bytes.HasPrefix(line, []byte(prefix)) {
			return ""
		}
	}
	return prefix
}

// SortSymbols returns lines of symbols in the order in which they take the fewest bytes in a file: variables, then functions; of each first
// those whose name is a string of the kernel's BTF, in the order of its strings, then the others by name.
func SortSymbols(btf, symbols []byte) []byte {
	if len(symbols) == 0 {
		return symbols
	}
	s, err := readSections(btf, int64(len(btf)))
	if err != nil {
		return symbols
	}
	at := make(map[string]int)
	for i, name := range bytes.Split(section(btf, s.Strings), []byte{0}) {
		at[string(name)] = i
	}
	type symbol struct {
		line []byte
		kind byte
		at   int // index of its name in BTF's strings, or a number behind all of them
	}
	all := make([]symbol, 0, bytes.Count(symbols, []byte{'\n'}))
	for line := range bytes.Lines(symbols) {
		if len(line) < len("d \n") {
			return symbols
		}
		i, ok := at[string(line[len("d "):len(line)-1])]
		if !ok {
			i = len(btf)
		}
		all = append(all, symbol{line, line[0], i})
	}
	slices.SortFunc(all, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.at, b.at), bytes.Compare(a.line, b.line))
	})
	out := make([]byte, 0, len(symbols))
	for _, x := range all {
		out = append(out, x.line...)
	}
	return out
}
