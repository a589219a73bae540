// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// oldMaps is the section of maps without BTF.
const oldMaps = "maps"

func isMapSection(name string) bool { return name == ".maps" || name == oldMaps }

// isData reports whether loaders make a map of a section of variables.
func isData(name string) bool {
	for _, prefix := range []string{".data", ".bss", ".rodata"} {
		if name == prefix || strings.HasPrefix(name, prefix+".") {
			return true
		}
	}
	return name == arenaData
}

// arenaData is the section of the variables of an arena.
const arenaData = ".addr_space.1"

// eachVar calls f for each entry of each DATASEC, with its name.
func (p *parser) eachVar(f func(section, name string, v btf.Type, size uint32)) error {
	if p.BTF == nil {
		return nil
	}
	var err error
	for id := btf.TypeID(1); int(id) < p.BTF.NumTypes() && err == nil; id++ {
		t := p.BTF.Type(id)
		if t.Kind() != btf.KindDatasec {
			continue
		}
		section := string(t.Name())
		err = p.spent.name(len(section))
		for i := uint32(0); i < t.Vlen() && err == nil; i++ {
			vi := t.VarSecinfo(i)
			v := p.BTF.Type(vi.Type)
			if err = p.spent.name(len(v.Name())); err == nil {
				f(section, string(v.Name()), v, vi.Size)
			}
		}
	}
	if err = cmp.Or(err, p.spent.steps.Err()); err != nil {
		return fmt.Errorf(".BTF: %w", err)
	}
	return nil
}

// readMaps finds the map definitions and their types.
func (p *parser) readMaps() error {
	err := p.eachVar(func(sec, name string, v btf.Type, _ uint32) {
		switch plain, optional := strings.CutPrefix(sec, "?"); plain {
		case ".struct_ops", ".struct_ops.link":
			if t, ok := p.BTF.SkipMods(v.Ref()); ok && t.Kind().IsComposite() && p.spent.name(len(t.Name())) == nil {
				p.StructOps = append(p.StructOps, StructOpsMap{
					Name: name, Type: btf.Essential(string(t.Name())),
					Optional: optional, Link: plain != ".struct_ops", typ: t.ID, section: sec,
				})
			}
		case ".maps":
			if m, ok := p.mapOf(v.Ref(), false); ok && !optional {
				m.Name = name
				p.Maps = append(p.Maps, m)
			}
		}
	})
	if err != nil {
		return err
	}
	if p.file.Section(oldMaps) != nil {
		p.Unread = oldMaps
	}
	if s := p.file.Section(arenaData); s != nil && s.Type == elf.SHT_PROGBITS && s.Size > 0 {
		p.ArenaData = true
	}
	weak := p.readMapSymbols()
	slices.SortStableFunc(p.Maps, func(a, b Map) int { return cmp.Compare(a.Name, b.Name) })
	for i := range p.Maps {
		p.Maps[i].Weak = weak[p.Maps[i].Name]
	}
	return nil
}

// readMapSymbols reads the maps without BTF, and returns the names of weak symbols of any maps.
func (p *parser) readMapSymbols() (weak map[string]bool) {
	weak = make(map[string]bool)
	for _, y := range p.syms {
		s := p.section(&y)
		if s == nil || !isMapSection(s.Name) {
			continue
		}
		weak[y.Name] = weak[y.Name] || elf.ST_BIND(y.Info) == elf.STB_WEAK
		if s.Name == oldMaps && elf.ST_TYPE(y.Info) == elf.STT_OBJECT {
			if b, err := p.bytes(s); err == nil && y.Value+4 <= uint64(len(b)) {
				p.Maps = append(p.Maps, p.plainMap(y, b[y.Value:]))
			}
		}
	}
	return weak
}

// readStructOps finds the members of struct_ops maps that are set: to functions by relocations, and to anything but zeros.
func (p *parser) readStructOps() error {
	for n := range p.StructOps {
		m := &p.StructOps[n]
		i := slices.IndexFunc(p.syms, func(y elf.Symbol) bool {
			s := p.section(&y)
			return s != nil && s.Name == m.section && y.Name == m.Name
		})
		if i < 0 {
			continue
		}
		y := &p.syms[i]
		data, err := p.bytes(p.section(y))
		if err != nil {
			return err
		}
		data = data[min(y.Value, uint64(len(data))):]
		funcs, err := p.pointers(y, data)
		if err != nil {
			return err
		}
		t := p.BTF.Type(m.typ)
		for i := range t.Vlen() {
			x := t.Member(i)
			size, err := p.BTF.SizeOf(x.Type)
			from := min(uint64(x.BitOffset/8), uint64(len(data)))
			to := min(from+uint64(size), uint64(len(data)))
			fn, set := funcs[from]
			if !p.spent.steps.Step(1+int(to-from)) || p.spent.name(len(p.BTF.Name(x.NameOff))) != nil {
				return cmp.Or(p.spent.steps.Err(), p.spent.names.Err())
			}
			if err == nil && (set || slices.ContainsFunc(data[from:to], func(b byte) bool { return b != 0 })) {
				if !set {
					fn = -1
				}
				m.Members, m.Funcs = append(m.Members, string(p.BTF.Name(x.NameOff))), append(m.Funcs, fn)
			}
		}
	}
	return nil
}

// readProgramArrays finds the programs in the initial values of program arrays, for which loaders fill the array before they attach
// a program (bpf_object_init_prog_arrays in libbpf.c).
func (p *parser) readProgramArrays() error {
	for i := range p.syms {
		y := &p.syms[i]
		s := p.section(y)
		if s == nil || s.Name != ".maps" {
			continue
		}
		m := p.mapNamed(y.Name)
		if m < 0 || ebpf.MapType(p.Maps[m].Type) != ebpf.ProgramArray {
			continue
		}
		data, err := p.bytes(s)
		if err != nil {
			return err
		}
		data = data[min(y.Value, uint64(len(data))):]
		funcs, err := p.pointers(y, data[:min(y.Size, uint64(len(data)))])
		if err != nil {
			return err
		}
		for _, at := range slices.Sorted(maps.Keys(funcs)) {
			if fn := funcs[at]; fn >= 0 && !slices.Contains(p.Maps[m].Funcs, fn) {
				p.Maps[m].Funcs = append(p.Maps[m].Funcs, fn)
			}
		}
	}
	return nil
}

// pointers returns the functions that relocations of a variable refer to by their offset in it, -1 for unknown ones.
func (p *parser) pointers(y *elf.Symbol, data []byte) (map[uint64]int, error) {
	funcs := make(map[uint64]int)
	for _, s := range p.file.Sections {
		if s.Type != elf.SHT_REL || int(s.Info) != int(y.Section) {
			continue
		}
		b, err := p.bytes(s)
		if err != nil {
			return nil, err
		}
		for ; len(b) >= relSize; b = b[relSize:] {
			if !p.spent.relocations.Step(1) {
				return nil, fmt.Errorf("%s: %w", s.Name, p.spent.relocations.Err())
			}
			off, n := p.Order.Uint64(b)-y.Value, p.Order.Uint64(b[8:])>>32
			if off >= uint64(len(data)) || n < 1 || n > uint64(len(p.syms)) {
				continue
			}
			to := &p.syms[n-1]
			at := to.Value
			if elf.ST_TYPE(to.Info) == elf.STT_SECTION && off+8 <= uint64(len(data)) {
				at += p.Order.Uint64(data[off:])
			}
			funcs[off] = p.functionAt(int(to.Section), at)
		}
	}
	return funcs, nil
}

// functionAt returns the function with the instruction at an offset of a section, or -1.
func (p *parser) functionAt(section int, off uint64) int {
	code, ok := p.code[section]
	if !ok || off%asm.InstructionSize != 0 || off >= limits.SectionBytes {
		return -1
	}
	site, ok := p.at(code, int(off/asm.InstructionSize))
	if !ok {
		return -1
	}
	return site.Fn
}

// plainMap reads a struct bpf_map_def, which may be cut short.
func (p *parser) plainMap(y elf.Symbol, b []byte) Map {
	b = b[:min(uint64(len(b)), max(y.Size, 4))]
	m := Map{Name: y.Name}
	for _, field := range []*uint32{&m.Type, &m.KeySize, &m.ValueSize, &m.MaxEntries, &m.Flags} {
		if len(b) >= 4 {
			*field, b = p.Order.Uint32(b), b[4:]
		}
	}
	return m
}

// mapNamed returns the index of the first map of a name, or -1.
func (p *parser) mapNamed(name string) int {
	i, ok := slices.BinarySearchFunc(p.Maps, name, func(m Map, name string) int { return cmp.Compare(m.Name, name) })
	if !ok {
		return -1
	}
	return i
}

// special are the structs in values of maps that the kernel finds by name: btf_get_field_type in kernel/bpf/btf.c.
var special = []string{"bpf_spin_lock", "bpf_res_spin_lock", "bpf_timer", "bpf_wq", "bpf_task_work", "bpf_list_head", "bpf_rb_root"}

// readValue adds the type tags of pointers in a struct, its structs and arrays to a map, and the names of special structs.
func (p *parser) readValue(m *Map, id btf.TypeID, depth int) {
	t, ok := p.BTF.SkipMods(id)
	for ok && t.Kind() == btf.KindArray {
		t, ok = p.BTF.SkipMods(t.Array().Elem)
	}
	switch {
	case !ok || depth == 0 || !p.spent.steps.Step(1):
	case t.Kind() == btf.KindPtr && t.Ref() != 0:
		if to := p.BTF.Type(t.Ref()); to.Kind() == btf.KindTypeTag {
			if name := string(to.Name()); !slices.Contains(m.Tags, name) && p.spent.name(len(name)) == nil {
				m.Tags = append(m.Tags, name)
			}
		}
	case t.Kind() == btf.KindStruct && slices.Contains(special, string(t.Name())):
		if name := string(t.Name()); !slices.Contains(m.Special, name) {
			m.Special = append(m.Special, name)
		}
	case t.Kind().IsComposite():
		for i := range t.Vlen() {
			p.readValue(m, t.Member(i).Type, depth-1)
		}
	}
}

// mapOf reads a BTF-defined map: __uint(type, N) is a pointer to an array of N, __type(key, T) a pointer to T, and
// __array(values, M) an array of pointers to the definition of an inner map. It reports false if the map has no type.
func (p *parser) mapOf(id btf.TypeID, inner bool) (m Map, ok bool) {
	t, known := p.BTF.SkipMods(id)
	if !known || !t.Kind().IsComposite() {
		return m, false
	}
	for i := range t.Vlen() {
		x := t.Member(i)
		if !p.spent.steps.Step(1) {
			return m, false
		}
		of, known := p.BTF.SkipMods(x.Type)
		if !known {
			continue
		}
		switch name := string(p.BTF.Name(x.NameOff)); name {
		case "type":
			m.Type, ok = p.uintOf(of)
		case "key_size":
			m.KeySize, _ = p.uintOf(of)
		case "value_size":
			m.ValueSize, _ = p.uintOf(of)
		case "max_entries":
			m.MaxEntries, _ = p.uintOf(of)
		case "map_flags":
			m.Flags, _ = p.uintOf(of)
		case "key":
			m.KeySize, _ = p.sizeOf(of)
		case "value":
			m.ValueSize, m.TypedValue = p.sizeOf(of)
			if of.Kind() == btf.KindPtr {
				p.readValue(&m, of.Ref(), 3)
			}
		case "pinning":
			m.Pinning, _ = p.uintOf(of)
			m.Pinned = true
		case "values":
			if of.Kind() != btf.KindArray || inner {
				continue
			}
			if ptr, known := p.BTF.SkipMods(of.Array().Elem); known && ptr.Kind() == btf.KindPtr {
				if in, ok := p.mapOf(ptr.Ref(), true); ok {
					m.Inner = &in
				}
			}
		}
	}
	return m, ok
}

// uintOf reads the N of __uint.
func (p *parser) uintOf(ptr btf.Type) (uint32, bool) {
	if ptr.Kind() != btf.KindPtr {
		return 0, false
	}
	a, ok := p.BTF.SkipMods(ptr.Ref())
	if !ok || a.Kind() != btf.KindArray {
		return 0, false
	}
	return a.Array().Nelems, true
}

// sizeOf returns the size of the T of __type.
func (p *parser) sizeOf(ptr btf.Type) (uint32, bool) {
	if ptr.Kind() != btf.KindPtr {
		return 0, false
	}
	size, err := p.BTF.SizeOf(ptr.Ref())
	return size, err == nil
}

// readExterns reads the declarations in .ksyms and .kconfig, which are in the BTF only.
func (p *parser) readExterns() error {
	weak := make(map[string]bool)
	for _, y := range p.syms {
		if y.Section == elf.SHN_UNDEF && elf.ST_BIND(y.Info) == elf.STB_WEAK {
			weak[y.Name] = true
		}
	}
	return p.eachVar(func(sec, name string, v btf.Type, size uint32) {
		e := Extern{Name: name, Weak: weak[name], Type: v.ID, Size: int(size)}
		switch sec {
		case ".ksyms":
			e.Kind = ExternKsym
			if !isTyped(v) {
				e.Type = 0
			}
		case ".kconfig":
			e.Kind = ExternKconfig
		default:
			return
		}
		p.Externs[p.extern(name)] = e
	})
}

// isTyped reports whether loaders look up a ksym by its type: a function, or a variable that is not void.
func isTyped(v btf.Type) bool {
	t, ok := v.BTF().SkipMods(v.Ref())
	return v.Kind() != btf.KindVar || !ok || t.Kind() != btf.KindVoid
}

// TypedKsyms returns the names of the kfuncs and typed variables of the kernel that an object declares, without duplicates
// and at most limits.Externals.
func TypedKsyms(b *btf.BTF) (names []string) {
	seen := make(map[string]bool)
	for id := btf.TypeID(1); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		if t.Kind() != btf.KindDatasec || !b.NameIs(t.NameOff, ".ksyms") {
			continue
		}
		for i := range t.Vlen() {
			v := b.Type(t.VarSecinfo(i).Type)
			if name := v.Name(); isTyped(v) && !seen[string(name)] && len(names) < limits.Externals {
				seen[string(name)] = true
				names = append(names, string(name))
			}
		}
	}
	return names
}

// extern returns the index of an extern, which it adds if necessary.
func (p *parser) extern(name string) int {
	i, ok := p.externs[name]
	if !ok {
		i = len(p.Externs)
		p.externs[name] = i
		p.Externs = append(p.Externs, Extern{Name: name})
	}
	return i
}
