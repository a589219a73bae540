// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest symbol in bytes that serves as a name.
const maxName = 256

// name sets the name of each object found in host. Two variables point at an
// object or hold it:
//
//	static const char data[] = "\177ELF…";  C: the symbol covers the object
//	//go:embed bpf_bpfel.o
//	var _BpfBytes []byte                    Go: the symbol is a slice of it
//
// Objects without a symbol are called by their place in the file. Names are
// distinct.
func name(host []byte, objs []Object) {
	hints := symbolNames(host, objs)
	taken := make(map[string]bool, len(objs))
	for i := range objs {
		nth := "#" + strconv.Itoa(i+1)
		n := nth
		if hints != nil && hints[i] != "" {
			n = hints[i]
			if taken[n] {
				n += nth
			}
		}
		for taken[n] { // by a symbol that looks like one of ours
			n += nth
		}
		taken[n] = true
		objs[i].Name = n
	}
}

// place is an object in the host's memory.
type place struct {
	addr, size uint64 // bytes
	object     int    // index into objs
	hint       string // name of the best symbol so far
	hintSize   uint64 // bytes it covers
	points     bool   // it points at the object rather than holds it
}

// symbolNames returns the host's symbol for each object, "" where it has
// none, and nil where host is no linked ELF file.
func symbolNames(host []byte, objs []Object) []string {
	im, err := parseImage(host)
	if err != nil || (im.typ != elf.ET_EXEC && im.typ != elf.ET_DYN) {
		return nil
	}
	mem, tables := im.memory()
	places := locate(mem, objs)
	for _, t := range tables {
		im.eachSymbol(t, func(s symbol) { s.offer(im, places) })
	}
	hints := make([]string, len(objs))
	for _, p := range places {
		hints[p.object] = p.hint
	}
	return hints
}

// memory returns the sections that are part of the running program and have
// bytes in the file, sorted by file offset, and the first symbol table of each
// kind. More than one is not a linker's work.
func (im *image) memory() (mem, tables []section) {
	var symtab, dynsym bool
	for i := range im.shnum {
		s := im.section(i)
		switch {
		case s.typ == elf.SHT_SYMTAB && !symtab:
			symtab, tables = true, append(tables, s)
		case s.typ == elf.SHT_DYNSYM && !dynsym:
			dynsym, tables = true, append(tables, s)
		case s.flags&elf.SHF_ALLOC != 0 && len(im.bytes(s)) > 0:
			mem = append(mem, s)
		}
	}
	slices.SortStableFunc(mem, func(a, b section) int { return cmp.Compare(a.offset, b.offset) })
	return mem, tables
}

// locate returns the places of the objects that lie in a section of mem,
// sorted by address.
func locate(mem []section, objs []Object) []place {
	var places []place
	for i, o := range objs {
		off := uint64(o.Offset)
		k := sort.Search(len(mem), func(k int) bool { return mem[k].offset > off }) - 1
		if k < 0 || off-mem[k].offset >= mem[k].size {
			continue
		}
		places = append(places, place{
			addr: mem[k].addr + off - mem[k].offset, size: uint64(len(o.Data)), object: i,
		})
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.addr, b.addr) })
	return places
}

// symbol is a defined symbol of the host.
type symbol struct {
	name        []byte // from its first byte to the string table's end
	section     uint64
	value, size uint64
}

// eachSymbol calls f for every symbol of the table t that has a size.
func (im *image) eachSymbol(t section, f func(symbol)) {
	if uint64(t.link) >= im.shnum {
		return
	}
	names, table := im.bytes(im.section(uint64(t.link))), im.bytes(t)
	step := pick(im.is64, symbol64, symbol32)
	for ; len(table) >= step; table = table[step:] {
		s := symbol{section: uint64(im.u16(table, pick(im.is64, 6, 14)))}
		s.value = im.word(table, pick(im.is64, 8, 4))
		s.size = im.word(table, pick(im.is64, 16, 8))
		at := uint64(im.u32(table, 0))
		if s.size == 0 || s.section == uint64(elf.SHN_UNDEF) || at >= uint64(len(names)) {
			continue
		}
		s.name = names[at:]
		f(s)
	}
}

// offer makes s the hint of the place it points at or covers, if it is a
// better one than the place has: a pointing one before a covering one, then
// the smaller, then the earlier.
func (s symbol) offer(im *image, places []place) {
	p, points := s.pointee(im, places), true
	if p == nil {
		p, points = s.covered(places), false
	}
	if p == nil {
		return
	}
	if p.hint != "" && (p.points && !points || p.points == points && p.hintSize <= s.size) {
		return
	}
	if n := s.text(); n != "" {
		p.hint, p.hintSize, p.points = n, s.size, points
	}
}

// covered returns the one place that lies within s, nil if none or several do.
func (s symbol) covered(places []place) *place {
	i := sort.Search(len(places), func(i int) bool { return places[i].addr >= s.value })
	if i == len(places) || !within(s, places[i].addr, places[i].size) {
		return nil
	}
	if i+1 < len(places) && within(s, places[i+1].addr, 1) {
		return nil
	}
	return &places[i]
}

func within(s symbol, addr, size uint64) bool {
	return addr >= s.value && addr-s.value < s.size && size <= s.size-(addr-s.value)
}

// pointee returns the place that s points at, if s is a string (pointer,
// length) or a slice (pointer, length, capacity) of it.
func (s symbol) pointee(im *image, places []place) *place {
	w := uint64(pick(im.is64, 8, 4))
	if s.size != 2*w && s.size != 3*w || s.section >= im.shnum {
		return nil
	}
	sec := im.section(s.section)
	if s.value < sec.addr {
		return nil
	}
	at, d := s.value-sec.addr, im.bytes(sec)
	if at > uint64(len(d)) || uint64(len(d))-at < s.size {
		return nil
	}
	addr, size := im.word(d[at:], 0), im.word(d[at:], int(w))
	i := sort.Search(len(places), func(i int) bool { return places[i].addr >= addr })
	if i == len(places) || places[i].addr != addr || size < places[i].size {
		return nil
	}
	return &places[i]
}

// text returns the symbol's name, "" if it is not one to show.
func (s symbol) text() string {
	end := bytes.IndexByte(s.name[:min(len(s.name), maxName+1)], 0)
	if end <= 0 {
		return ""
	}
	n := string(s.name[:end])
	if !utf8.ValidString(n) || strings.ContainsFunc(n, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return ""
	}
	return n
}
