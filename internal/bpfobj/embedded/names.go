// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest symbol or source in bytes that serves as a name.
const maxName = 256

// name sets the names of objects found in a host. A variable points at an object or holds it:
//
//	//go:embed bpf_bpfel.o
//	var _BpfBytes []byte                          Go: the symbol is a slice of it
//	unsigned char probe_bpf_o[] = {0x7f, 'E', …}; C: the symbol covers the object
//
// The first of these counts. If there are several objects, those without a symbol, as in a stripped host, are named after their
// source, and those without that by their place in the file. Names are distinct.
func name(host *image, objs []Object) {
	if host != nil && (host.typ == elf.ET_EXEC || host.typ == elf.ET_DYN) {
		host.nameBySymbols(objs)
	}
	if len(objs) == 1 {
		return
	}
	taken := make(map[string]bool, len(objs))
	for i := range objs {
		nth := "#" + strconv.Itoa(i+1)
		n := cmp.Or(objs[i].Name, source(objs[i].Data), nth)
		for taken[n] {
			n += nth
		}
		taken[n] = true
		objs[i].Name = n
	}
}

// source returns the name of the only C file that the symbols or the BTF of an object name, without directory and ".bpf.c", or "".
func source(object []byte) (base string) {
	for s := range bytes.SplitSeq(object, []byte{0}) {
		if !bytes.HasSuffix(s, []byte(".c")) {
			continue
		}
		n := label(bytes.TrimSuffix(bytes.TrimSuffix(s[bytes.LastIndexByte(s, '/')+1:], []byte(".c")), []byte(".bpf")))
		if n == "" || base != "" && base != n {
			return ""
		}
		base = n
	}
	return base
}

// nameBySymbols sets the names of the objects for which the host has a symbol.
func (im *image) nameBySymbols(objs []Object) {
	var mem, tables []sectionHeader // those with bytes in memory, by offset; the first symbol table of each type
	for i := range im.numSections() {
		s := im.section(i)
		switch {
		case s.typ == elf.SHT_SYMTAB, s.typ == elf.SHT_DYNSYM:
			if !slices.ContainsFunc(tables, func(t sectionHeader) bool { return t.typ == s.typ }) {
				tables = append(tables, s)
			}
		case s.flags&elf.SHF_ALLOC != 0 && len(im.bytes(s)) > 0:
			mem = append(mem, s)
		}
	}
	slices.SortStableFunc(mem, func(a, b sectionHeader) int { return cmp.Compare(a.offset, b.offset) })
	objects := make(map[uint64]*Object) // keyed by address
	for i := range objs {
		off := uint64(objs[i].Offset)
		k := sort.Search(len(mem), func(k int) bool { return mem[k].offset > off }) - 1
		if k >= 0 && off-mem[k].offset < mem[k].size {
			objects[mem[k].addr+off-mem[k].offset] = &objs[i]
		}
	}
	covering, pointing := make(map[*Object]string), make(map[*Object]string) // names
	for _, t := range tables {
		im.eachSymbol(t, func(s hostSymbol) {
			const padding = 16
			names, o, size := covering, objects[s.value], s.size
			if to, length, ok := im.slice(s); ok && objects[to] != nil {
				names, o, size = pointing, objects[to], length
			}
			if o != nil && names[o] == "" && size >= uint64(len(o.Data)) && size-uint64(len(o.Data)) < padding {
				names[o] = s.text()
			}
		})
	}
	for i := range objs {
		objs[i].Name = cmp.Or(pointing[&objs[i]], covering[&objs[i]])
	}
}

// hostSymbol is a defined symbol of the host.
type hostSymbol struct {
	name        []byte // bytes from the first one of the name to the end of the string table
	section     int
	value, size uint64
}

// eachSymbol calls f for every symbol of a table that has a size.
func (im *image) eachSymbol(t sectionHeader, f func(hostSymbol)) {
	if int64(t.link) >= int64(im.numSections()) {
		return
	}
	names, table := im.bytes(im.section(int(t.link))), im.bytes(t)
	sectionAt := 6
	if im.word == 4 {
		sectionAt = 14
	}
	size := 8 + 2*im.word
	for ; len(table) >= size; table = table[size:] {
		section := int(im.order.Uint16(table[sectionAt:]))
		s := hostSymbol{section: section, value: im.uint(table[im.word:]), size: im.uint(table[2*im.word:])}
		at := uint64(im.order.Uint32(table))
		if s.size > 0 && s.section != int(elf.SHN_UNDEF) && at < uint64(len(names)) {
			s.name = names[at:]
			f(s)
		}
	}
}

// slice reads a variable that may be a string (pointer, length) or a slice (pointer, length, capacity).
func (im *image) slice(s hostSymbol) (to, length uint64, ok bool) {
	w := uint64(im.word)
	if s.size != 2*w && s.size != 3*w || s.section >= im.numSections() {
		return 0, 0, false
	}
	sec := im.section(s.section)
	d := im.bytes(sec)
	if s.value < sec.addr || s.value-sec.addr > uint64(len(d)) || uint64(len(d))-(s.value-sec.addr) < s.size {
		return 0, 0, false
	}
	d = d[s.value-sec.addr:]
	return im.uint(d), im.uint(d[w:]), true
}

// text returns the symbol's name, "" if it should not be shown.
func (s hostSymbol) text() string {
	n, _, ended := bytes.Cut(s.name[:min(len(s.name), maxName+1)], []byte{0})
	if !ended {
		return ""
	}
	return label(n)
}

// label returns a name if it can be shown, else "".
func label(n []byte) string {
	if len(n) > maxName || !utf8.Valid(n) || bytes.ContainsFunc(n, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return ""
	}
	return string(n)
}
