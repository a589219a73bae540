// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"cmp"
	"debug/elf"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest symbol or source in bytes that serves as a name.
const maxName = 256

// name sets the name of each object found in a host. A variable points at the object or holds it, or its skeleton has a name:
//
//	//go:embed bpf_bpfel.o
//	var _BpfBytes []byte                    Go: the symbol is a slice of it
//	s->name = "execsnoop_bpf";              C: the name of the skeleton
//	static const char data[] = "\177ELF…";  C: the symbol covers the object
//
// The first of these counts. Other objects are named by their place in the file. Names are distinct. rest is the host without
// its objects.
func name(host *image, objs []Object, rest [][]byte) {
	if host != nil && (host.typ == elf.ET_EXEC || host.typ == elf.ET_DYN) {
		nameBySkeletons(objs, rest)
		host.nameBySymbols(objs)
	}
	taken := make(map[string]bool, len(objs))
	for i := range objs {
		nth := "#" + strconv.Itoa(i+1)
		n := cmp.Or(objs[i].Name, nth)
		for taken[n] {
			n += nth
		}
		taken[n] = true
		objs[i].Name = n
	}
}

// nameBySkeletons names objects after their skeletons. A stripped host has the name of a skeleton only as a string, such as
// execsnoop_bpf, and no data connects it with the object. But bpftool derives it from the name of the object's file, and the
// object's symbols or BTF have the name of its source, execsnoop.bpf.c. If the host has the name that follows from one object's
// source, it is the name of that object.
func nameBySkeletons(objs []Object, rest [][]byte) {
	named := make(map[string]bool) // skeletons that the objects may have; true if the host has the name
	guesses := make([][]string, len(objs))
	for i := range objs {
		guesses[i] = skeletons(objs[i].Data)
		for _, g := range guesses[i] {
			named[g] = false
		}
	}
	if len(named) == 0 {
		return
	}
	for _, r := range rest {
		for s := range bytes.SplitSeq(r, []byte{0}) {
			if _, ok := named[string(s)]; ok {
				named[string(s)] = true
			}
		}
	}
	of := make(map[string][]*Object)
	for i, l := range guesses {
		if k := slices.IndexFunc(l, func(g string) bool { return named[g] }); k >= 0 {
			of[l[k]] = append(of[l[k]], &objs[i])
		}
	}
	for skeleton, l := range of {
		if len(l) == 1 {
			l[0].Name = skeleton
		}
	}
}

// skeletons returns what bpftool may call the skeleton of an object, the default first, or nil if it has several sources.
func skeletons(object []byte) []string {
	source := ""
	for s := range bytes.SplitSeq(object, []byte{0}) {
		if !bytes.HasSuffix(s, []byte(".c")) {
			continue
		}
		base := strings.TrimSuffix(path.Base(string(s)), ".c")
		if len(base) >= maxName {
			return nil
		}
		if source != "" && source != base {
			return nil
		}
		source = base
	}
	identifier := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
				return r
			}
			return '_'
		}, s)
	}
	if source == "" {
		return nil
	}
	return []string{identifier(source), identifier(strings.TrimSuffix(source, ".bpf"))}
}

// place is an object in the host's memory.
type place struct {
	addr, size uint64 // bytes
	object     *Object
	points     bool   // the symbol of its name points at the object rather than holds it
	symbolSize uint64 // bytes
}

// nameBySymbols sets the names of the objects for which the host has a symbol.
func (im *image) nameBySymbols(objs []Object) {
	var mem, tables []section // those with bytes in memory, by offset; the first symbol table of each type
	for i := range im.numSections() {
		s := im.section(i)
		switch {
		case s.typ == elf.SHT_SYMTAB, s.typ == elf.SHT_DYNSYM:
			if !slices.ContainsFunc(tables, func(t section) bool { return t.typ == s.typ }) {
				tables = append(tables, s)
			}
		case s.flags&elf.SHF_ALLOC != 0 && len(im.bytes(s)) > 0:
			mem = append(mem, s)
		}
	}
	slices.SortStableFunc(mem, func(a, b section) int { return cmp.Compare(a.offset, b.offset) })
	var places []place // by address
	for i := range objs {
		off := uint64(objs[i].Offset)
		k := sort.Search(len(mem), func(k int) bool { return mem[k].offset > off }) - 1
		if k >= 0 && off-mem[k].offset < mem[k].size {
			places = append(places, place{addr: mem[k].addr + off - mem[k].offset, size: uint64(len(objs[i].Data)), object: &objs[i]})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.addr, b.addr) })
	for _, t := range tables {
		im.eachSymbol(t, func(s symbol) { s.offer(im, places) })
	}
}

// symbol is a defined symbol of the host.
type symbol struct {
	name        []byte // from its first byte to the end of the string table
	section     int
	value, size uint64
}

// eachSymbol calls f for every symbol of a table that has a size.
func (im *image) eachSymbol(t section, f func(symbol)) {
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
		s := symbol{section: int(im.order.Uint16(table[sectionAt:])), value: im.uint(table[im.word:]), size: im.uint(table[2*im.word:])}
		at := uint64(im.order.Uint32(table))
		if s.size > 0 && s.section != int(elf.SHN_UNDEF) && at < uint64(len(names)) {
			s.name = names[at:]
			f(s)
		}
	}
}

// offer names the object that s points at or covers after s. Pointing symbols are preferred to skeletons, these to covering
// symbols, then smaller ones, then earlier ones.
func (s symbol) offer(im *image, places []place) {
	p, points := s.pointee(im, places), true
	if p == nil {
		p, points = s.covered(places), false
	}
	if p == nil || p.object.Name != "" && (p.points && !points || p.points == points && p.symbolSize <= s.size) {
		return
	}
	if n := s.text(); n != "" {
		p.object.Name, p.symbolSize, p.points = n, s.size, points
	}
}

// covered returns the one place that lies within s, nil if none or several do.
func (s symbol) covered(places []place) *place {
	i := sort.Search(len(places), func(i int) bool { return places[i].addr >= s.value })
	within := func(i int, size uint64) bool {
		off := places[i].addr - s.value
		return off < s.size && size <= s.size-off
	}
	if i == len(places) || !within(i, places[i].size) || i+1 < len(places) && within(i+1, 1) {
		return nil
	}
	return &places[i]
}

// pointee returns the place that s points at, if s is a string (pointer, length) or a slice (pointer, length, capacity).
func (s symbol) pointee(im *image, places []place) *place {
	w := uint64(im.word)
	if s.size != 2*w && s.size != 3*w || s.section >= im.numSections() {
		return nil
	}
	sec := im.section(s.section)
	d := im.bytes(sec)
	if s.value < sec.addr || s.value-sec.addr > uint64(len(d)) || uint64(len(d))-(s.value-sec.addr) < s.size {
		return nil
	}
	d = d[s.value-sec.addr:]
	i, ok := slices.BinarySearchFunc(places, im.uint(d), func(p place, addr uint64) int { return cmp.Compare(p.addr, addr) })
	if !ok || im.uint(d[w:]) < places[i].size {
		return nil
	}
	return &places[i]
}

// text returns the symbol's name, "" if it should not be shown.
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
