// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/limits"
)

// link finds the programs and the functions that they can call.
func (p *parser) link() error {
	for i := range p.Funcs {
		p.calls = append(p.calls, p.Funcs[i].Calls())
	}
	for i := range p.Funcs {
		f := &p.Funcs[i]
		name := strings.TrimPrefix(f.Section, "?")
		attach := SectionOf(name)
		// Old compilers make programs static, in sections that loaders know.
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
	caller := make([]int, len(p.Funcs)) // the last program that calls it, from 1
	for i := range p.Programs {
		pr := &p.Programs[i]
		pr.Funcs = append(pr.Funcs, pr.Fn)
		caller[pr.Fn] = i + 1
		for k := 0; k < len(pr.Funcs); k++ {
			called := pr.Funcs[k]
			p.spent.called.Step(1)
			p.spent.calledInsns.Step(len(p.Funcs[called].Insns))
			if err := cmp.Or(p.spent.called.Err(), p.spent.calledInsns.Err()); err != nil {
				return fmt.Errorf("%s: %w", p.Funcs[pr.Fn].Name, err)
			}
			for _, fn := range p.calls[called] {
				if caller[fn] != i+1 {
					caller[fn] = i + 1
					pr.Funcs = append(pr.Funcs, fn)
				}
			}
		}
	}
	return nil
}

// Calls returns the functions that f refers to, without duplicates.
func (f *Function) Calls() (funcs []int) {
	seen := make(map[Ref]bool)
	for i := range f.Insns {
		if r := f.Insns[i].Ref; r.Kind() == RefFunc && r.N() >= 0 && !seen[r] {
			seen[r] = true
			funcs = append(funcs, r.N())
		}
	}
	return funcs
}

// place finds the instructions of CO-RE records and the programs that they belong to.
func (p *parser) place(sections []*ExtSection) error {
	spans := make(map[string][]span)
	for i, s := range p.file.Sections {
		if code, ok := p.code[i]; ok {
			spans[s.Name] = append(spans[s.Name], code)
		}
	}
	records := make([][]int, len(p.Funcs)) // indices of the sites of each function
	for _, s := range sections {
		for _, r := range s.Records {
			at, ok := Site{}, false
			for _, code := range spans[s.Name] {
				if ok || !p.spent.steps.Step(1) {
					break
				}
				at, ok = p.at(code, int(r.Off/asm.InstructionSize))
			}
			if !ok {
				p.Sites = append(p.Sites, Site{Fn: -1})
				continue
			}
			records[at.Fn] = append(records[at.Fn], len(p.Sites))
			p.Sites = append(p.Sites, at)
			p.Funcs[at.Fn].Insns[at.Insn].Record = int32(len(p.Sites))
		}
	}
	for i := range p.Programs {
		pr := &p.Programs[i]
		for _, fn := range pr.Funcs {
			if !p.spent.calledRecords.Step(len(records[fn])) {
				return fmt.Errorf("%s: %w", p.Funcs[pr.Fn].Name, p.spent.calledRecords.Err())
			}
			pr.Records = append(pr.Records, records[fn]...)
		}
	}
	return p.spent.steps.Err()
}
