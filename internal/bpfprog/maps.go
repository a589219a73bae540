package bpfprog

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

func isMapSection(name string) bool { return name == ".maps" || name == "maps" }

// eachVar calls f for each entry of each DATASEC, with its name.
func (p *parser) eachVar(f func(section, name string, v rawbtf.Type, size uint32)) error {
	if p.BTF == nil {
		return nil
	}
	for id := btfenc.TypeID(1); int(id) < p.BTF.NumTypes(); id++ {
		t := p.BTF.Type(id)
		if t.Kind() != btfenc.KindDatasec {
			continue
		}
		section := string(t.Name())
		for i := range t.Vlen() {
			vi := t.VarSecinfo(i)
			v := p.BTF.Type(vi.Type)
			name := v.Name()
			if err := p.spent.name(len(name)); err != nil {
				return fmt.Errorf(".BTF: %w", err)
			}
			f(section, string(name), v, vi.Size)
		}
		if err := p.spent.name(len(section)); err != nil {
			return fmt.Errorf(".BTF: %w", err)
		}
	}
	if err := p.spent.steps.Err(); err != nil {
		return fmt.Errorf(".BTF: %w", err)
	}
	return nil
}

// readMaps finds the map definitions and their types.
func (p *parser) readMaps() error {
	err := p.eachVar(func(sec, name string, v rawbtf.Type, _ uint32) {
		switch strings.TrimPrefix(sec, "?") {
		case ".struct_ops":
			p.StructOps.Plain = true
		case ".struct_ops.link":
			p.StructOps.Link = true
		}
		if sec != ".maps" {
			return
		}
		if kind, ok := p.mapType(v.Ref()); ok {
			p.Maps = append(p.Maps, Map{name, kind})
		}
	})
	if err != nil {
		return err
	}
	for _, y := range p.syms {
		i := int(y.Section)
		if i <= 0 || i >= len(p.f.Sections) || p.f.Sections[i].Name != "maps" || elf.ST_TYPE(y.Info) != elf.STT_OBJECT {
			continue
		}
		if b, err := p.bytes(p.f.Sections[i]); err == nil && y.Value+4 <= uint64(len(b)) {
			p.Maps = append(p.Maps, Map{y.Name, p.Order.Uint32(b[y.Value:])})
		}
	}
	slices.SortStableFunc(p.Maps, func(a, b Map) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// mapNamed returns the index of the first map of a name, or -1.
func (p *parser) mapNamed(name string) int {
	i, ok := slices.BinarySearchFunc(p.Maps, name, func(m Map, name string) int { return cmp.Compare(m.Name, name) })
	if !ok {
		return -1
	}
	return i
}

// mapType reads the member type of a BTF-defined map: __uint(type, N) is a
// pointer to an array of N.
func (p *parser) mapType(id btfenc.TypeID) (uint32, bool) {
	t, ok := p.BTF.SkipMods(id)
	if !ok || !t.Kind().IsComposite() {
		return 0, false
	}
	for i := range t.Vlen() {
		m := t.Member(i)
		if !p.spent.steps.Step(1) {
			return 0, false
		}
		if !p.BTF.NameIs(m.NameOff, "type") {
			continue
		}
		if ptr, ok := p.BTF.SkipMods(m.Type); ok && ptr.Kind() == btfenc.KindPtr {
			if a, ok := p.BTF.SkipMods(ptr.Ref()); ok && a.Kind() == btfenc.KindArray {
				return a.Array().Nelems, true
			}
		}
	}
	return 0, false
}

// readExterns finds what the .ksyms and .kconfig sections declare, which exist
// in the BTF alone.
func (p *parser) readExterns() error {
	weak := make(map[string]bool)
	for _, y := range p.syms {
		if y.Section == elf.SHN_UNDEF && elf.ST_BIND(y.Info) == elf.STB_WEAK {
			weak[y.Name] = true
		}
	}
	return p.eachVar(func(sec, name string, v rawbtf.Type, size uint32) {
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

// isTyped reports whether a ksym is looked up by its type: a function or a variable that is
// not void.
func isTyped(v rawbtf.Type) bool {
	t, ok := v.BTF().SkipMods(v.Ref())
	return v.Kind() != btfenc.KindVar || !ok || t.Kind() != btfenc.KindVoid
}

// TypedKsyms returns the names of the kfuncs and typed variables of the kernel that an object
// declares, each once and at most limits.Externals.
func TypedKsyms(b *rawbtf.BTF) (names []string) {
	seen := make(map[string]bool)
	for id := btfenc.TypeID(1); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		if t.Kind() != btfenc.KindDatasec || !b.NameIs(t.NameOff, ".ksyms") {
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

// extern returns the index of an extern, which it makes if there is none of
// the name.
func (p *parser) extern(name string) int {
	i, ok := p.externs[name]
	if !ok {
		i = len(p.Externs)
		p.externs[name] = i
		p.Externs = append(p.Externs, Extern{Name: name})
	}
	return i
}
