package bpfprog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
)

// link finds the programs, and what they can call and use.
func (p *parser) link() error {
	uses := make([]uses, len(p.Funcs))
	for i := range p.Funcs {
		uses[i] = p.usesOf(&p.Funcs[i])
		p.calls = append(p.calls, uses[i].funcs)
	}
	if err := p.spent.steps.Err(); err != nil {
		return err
	}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		name := strings.TrimPrefix(f.Section, "?")
		attach := SectionOf(name)
		// Old compilers make programs static, in sections that say what they are.
		if f.Section == ".text" || !f.Global && attach == nil {
			continue
		}
		p.Programs = append(p.Programs, Program{Fn: i, Section: name, Attach: attach, AutoLoad: name == f.Section})
		if err := atMost(len(p.Programs), limits.Programs, "programs"); err != nil {
			return fmt.Errorf("%s: %w", f.Section, err)
		}
	}
	slices.SortStableFunc(p.Programs, func(a, b Program) int {
		return cmp.Or(cmp.Compare(a.Section, b.Section), cmp.Compare(p.Funcs[a.Fn].Start, p.Funcs[b.Fn].Start))
	})
	called := make([]int, len(p.Funcs)) // by the last program that calls it, from 1
	used := make([]bool, len(p.Maps))
	for i := range p.Programs {
		pr := &p.Programs[i]
		pr.Funcs = append(pr.Funcs, pr.Fn)
		called[pr.Fn] = i + 1
		for k := 0; k < len(pr.Funcs); k++ {
			u := &uses[pr.Funcs[k]]
			if err := p.spent.call(len(p.Funcs[pr.Funcs[k]].Insns), len(u.maps)); err != nil {
				return fmt.Errorf("%s: %w", p.Funcs[pr.Fn].Name, err)
			}
			for _, fn := range u.funcs {
				if called[fn] != i+1 {
					called[fn] = i + 1
					pr.Funcs = append(pr.Funcs, fn)
				}
			}
			pr.Maps = append(pr.Maps, u.maps...)
		}
		slices.Sort(pr.Maps)
		pr.Maps = slices.Compact(pr.Maps)
		for _, m := range pr.Maps {
			used[m] = true
		}
	}
	for m := range used {
		if !used[m] && len(p.Programs) > 0 {
			p.Programs[0].Maps = append(p.Programs[0].Maps, m)
		}
	}
	if len(p.Programs) > 0 {
		slices.Sort(p.Programs[0].Maps)
	}
	return nil
}

// call counts that a program has one more function, of so many instructions,
// which uses so many maps.
func (s *spent) call(insns, maps int) error {
	for _, m := range []struct {
		of *limits.Meter
		n  int
	}{{s.called, 1}, {s.calledInsns, insns}, {s.steps, maps}} {
		if !m.of.Step(m.n) {
			return m.of.Err()
		}
	}
	return nil
}

// uses is what the instructions of one function refer to, each once.
type uses struct{ funcs, maps []int }

func (p *parser) usesOf(f *Function) (u uses) {
	seen := make(map[Ref]bool)
	for i := range f.Insns {
		r := f.Insns[i].Ref
		if r.Kind != RefFunc && r.Kind != RefMap || r.N < 0 || seen[r] {
			continue
		}
		seen[r] = true
		if r.Kind == RefFunc {
			u.funcs = append(u.funcs, int(r.N))
			continue
		}
		for m := int(r.N); m < len(p.Maps) && p.spent.steps.Step(1) && p.Maps[m].Name == p.Maps[r.N].Name; m++ {
			u.maps = append(u.maps, m)
		}
	}
	return u
}

// place finds the instructions of the records, and the programs that they
// belong to.
func (p *parser) place(records []Record) error {
	type key struct{ section, name string }
	byName := make(map[key]int)
	for i := range p.Funcs {
		byName[key{p.Funcs[i].Section, p.Funcs[i].Name}] = i
	}
	spans := make(map[string][]span)
	for i, s := range p.f.Sections {
		if code, ok := p.code[i]; ok {
			spans[s.Name] = append(spans[s.Name], code)
		}
	}
	p.Sites = make([]Site, len(records))
	owner := make([][]int, len(p.Funcs)) // records by function
	for i, r := range records {
		fn, ok := byName[key{r.Section, r.Func}]
		at := Site{fn, r.Insn}
		for _, s := range spans[r.Section] {
			if ok || !p.spent.steps.Step(1) {
				break
			}
			at, ok = p.at(s, r.Insn)
		}
		if !ok {
			p.Sites[i].Fn = -1
			continue
		}
		p.Sites[i] = at
		owner[at.Fn] = append(owner[at.Fn], i)
		if code := p.Funcs[at.Fn].Insns; at.Insn < len(code) {
			code[at.Insn].Record = int32(i + 1)
		}
	}
	for i := range p.Programs {
		pr := &p.Programs[i]
		for _, fn := range pr.Funcs {
			if !p.spent.calledRecords.Step(len(owner[fn])) {
				return fmt.Errorf("%s: %w", p.Funcs[pr.Fn].Name, p.spent.calledRecords.Err())
			}
			pr.Records = append(pr.Records, owner[fn]...)
		}
	}
	return p.spent.steps.Err()
}
