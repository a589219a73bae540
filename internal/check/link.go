package check

import (
	"cmp"
	"debug/elf"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/unwrap"
)

// link finds the programs, what they can call, and whose the relocations are.
func (p *parser) link() {
	p.funcIDs()
	p.pointees = slices.Sorted(maps.Keys(p.data))
	p.pointees = append(p.pointees, slices.Sorted(maps.Keys(p.kconfig))...)
	for i := range p.funcs {
		p.funcs[i].findLeaders()
	}
	for i := range p.funcs {
		f := &p.funcs[i]
		if f.section == ".text" || !f.global && !isEntrySection(f.section) {
			continue
		}
		pr := program{fn: i, section: strings.TrimPrefix(f.section, "?"), auto: !strings.HasPrefix(f.section, "?")}
		pr.funcs = p.closure(i)
		p.programs = append(p.programs, pr)
	}
	slices.SortStableFunc(p.programs, func(a, b program) int {
		return cmp.Or(cmp.Compare(a.section, b.section), cmp.Compare(p.funcs[a.fn].start, p.funcs[b.fn].start))
	})
	type key struct{ section, name string }
	byName := make(map[key]int)
	for i := range p.funcs {
		byName[key{p.funcs[i].section, p.funcs[i].name}] = i
	}
	owner := make(map[int][]int) // records by function
	for i, r := range unwrap.Object(p.relo).Records() {
		fn, ok := byName[key{r.Section, r.Program}]
		at := site{fn, r.Insn}
		if !ok {
			if at, ok = p.locate(r.Section, r.Insn); !ok {
				continue
			}
		}
		p.reloAt[at] = i
		owner[at.fn] = append(owner[at.fn], i)
	}
	for i := range p.programs {
		pr := &p.programs[i]
		for _, fn := range pr.funcs {
			pr.relos = append(pr.relos, owner[fn]...)
			for k := range p.funcs[fn].insns {
				p.useMap(i, &p.funcs[fn].insns[k])
			}
		}
	}
}

func (p *parser) useMap(prog int, in *insn) {
	if in.ref.kind != refMap {
		return
	}
	for m := range p.maps {
		if p.maps[m].name == in.ref.name && !slices.Contains(p.maps[m].used, prog) {
			p.maps[m].used = append(p.maps[m].used, prog)
		}
	}
}

// isEntrySection reports whether functions of the section are programs even
// if they are static, as old compilers made them.
func isEntrySection(name string) bool { return sectionOf(name) != nil }

// locate finds the function of an instruction of a section.
func (p *parser) locate(section string, insn int) (site, bool) {
	for i := range p.funcs {
		f := &p.funcs[i]
		if f.section == section && insn >= f.start && insn < f.start+len(f.insns) {
			return site{i, insn - f.start}, true
		}
	}
	return site{}, false
}

// closure returns fn and all that it can call, directly or not.
func (p *parser) closure(fn int) []int {
	out := []int{fn}
	for i := 0; i < len(out); i++ {
		for k := range p.funcs[out[i]].insns {
			r := &p.funcs[out[i]].insns[k].ref
			if r.kind == refFunc && r.fn >= 0 && !slices.Contains(out, r.fn) {
				out = append(out, r.fn)
			}
		}
	}
	return out
}

// funcIDs finds the FUNC of each function.
func (p *parser) funcIDs() {
	if p.btf == nil {
		return
	}
	ids := make(map[string]rawbtf.TypeID)
	for id := rawbtf.TypeID(1); int(id) < p.btf.NumTypes(); id++ {
		if t := p.btf.Type(id); t.Kind() == rawbtf.KindFunc {
			ids[string(t.Name())] = id
		}
	}
	for i := range p.funcs {
		p.funcs[i].id = ids[p.funcs[i].name]
	}
}

// readMaps finds the map definitions and their types.
func (p *parser) readMaps() {
	if p.btf != nil {
		p.eachVar(func(sec string, v rawbtf.Type, _, _ uint32) {
			switch strings.TrimPrefix(sec, "?") {
			case ".struct_ops":
				p.ops.plain = true
			case ".struct_ops.link":
				p.ops.link = true
			}
			if sec != ".maps" {
				return
			}
			if kind, ok := p.mapType(v.Ref()); ok {
				p.maps = append(p.maps, mapDef{name: string(v.Name()), kind: kind})
			}
		})
	}
	for _, y := range p.syms {
		i := int(y.Section)
		if i <= 0 || i >= len(p.f.Sections) || p.f.Sections[i].Name != "maps" || elf.ST_TYPE(y.Info) != elf.STT_OBJECT {
			continue
		}
		if b, err := p.bytes(p.f.Sections[i]); err == nil && y.Value+4 <= uint64(len(b)) {
			p.maps = append(p.maps, mapDef{name: y.Name, kind: p.order.Uint32(b[y.Value:])})
		}
	}
	slices.SortFunc(p.maps, func(a, b mapDef) int { return cmp.Compare(a.name, b.name) })
}

// mapType reads the member type of a BTF-defined map: __uint(type, N) is a
// pointer to an array of N.
func (p *parser) mapType(id rawbtf.TypeID) (uint32, bool) {
	t, ok := p.btf.SkipMods(id)
	if !ok || !t.Kind().IsComposite() {
		return 0, false
	}
	for i := range t.Vlen() {
		m := t.Member(i)
		if !p.btf.NameIs(m.NameOff, "type") {
			continue
		}
		if ptr, ok := p.btf.SkipMods(m.Type); ok && ptr.Kind() == rawbtf.KindPtr {
			if a, ok := p.btf.SkipMods(ptr.Ref()); ok && a.Kind() == rawbtf.KindArray {
				return a.Array().Nelems, true
			}
		}
	}
	return 0, false
}

// findLeaders marks the targets of jumps and calls and where calls return to.
func (f *function) findLeaders() {
	f.leader = make([]bool, len(f.insns)+1)
	f.leader[0] = true
	mark := func(i int) {
		if i >= 0 && i < len(f.leader) {
			f.leader[i] = true
		}
	}
	for i := range f.insns {
		switch in := &f.insns[i]; {
		case in.op == opJA || in.isCondJump():
			mark(i + 1 + int(in.off))
		case in.op == opJA32:
			mark(i + 1 + int(in.imm))
		case in.op == opCall && in.src == pseudoCall:
			mark(i + 1)
		}
	}
}
