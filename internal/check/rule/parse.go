// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
)

// Parse reads a BPF ELF object. Errors and reports call it by the name.
func Parse(ctx context.Context, name string, data []byte) (*Object, error) {
	f, err := bpfobj.Open(data)
	if err != nil {
		return nil, &bpfobj.Error{Object: name, Err: err}
	}
	prog, err := f.Parse(ctx)
	if err != nil {
		return nil, &bpfobj.Error{Object: name, Err: err}
	}
	r, err := core.NewObject(name, f, func() (*bpfobj.Code, error) { return prog, nil })
	if err != nil {
		return nil, err
	}
	o := NewObject(name, prog, r)
	o.unread = o.ebpfGoReads(ctx, data)
	if err := o.follow(ctx); err != nil {
		return nil, &bpfobj.Error{Object: name, Err: err}
	}
	return o, nil
}

// NewObject returns an object of code. r has its relocations; it may be nil in tests.
func NewObject(name string, prog *bpfobj.Code, r *core.Object) *Object {
	o := &Object{
		Code: prog, name: name, records: records{r},
		uses: make([][]use, len(prog.Funcs)), recordsOf: make([][]int32, len(prog.Funcs)),
	}
	o.calls = findCallees(prog)
	o.stacks = findStacks(prog, o.calls)
	for r, at := range prog.Sites {
		if at.Fn >= 0 {
			o.recordsOf[at.Fn] = append(o.recordsOf[at.Fn], int32(r))
		}
	}
	for _, l := range o.recordsOf {
		slices.SortStableFunc(l, func(a, b int32) int { return cmp.Compare(prog.Sites[a].Insn, prog.Sites[b].Insn) })
	}
	needs, memory := globalNeeds(prog)
	o.memory = memory
	for fn := range prog.Funcs {
		code, data := prog.Funcs[fn].Insns, false
		o.flawed = append(o.flawed, interp.MayBeFlawed(code))
		back := prog.Funcs[fn].BackEdge()
		for i := range code {
			u := use{at: bpfobj.Site{Fn: fn, Insn: i}, in: &code[i]}
			if n, ok := u.in.Newer(); ok {
				u.newer = &n
			}
			switch x := o.extern(u.in); {
			case i == back:
				u.facts = []facts.Fact{facts.Loops}
			case u.in.IsFuncCall() && u.in.Ref.Kind() == bpfobj.RefFunc:
				u.facts = needs[u.in.Ref.N()]
			case !data && (u.in.Ref.Kind() == bpfobj.RefData || x != nil && x.Kind == bpfobj.ExternKconfig):
				u.facts, data = []facts.Fact{facts.GlobalData}, true
			}
			calls := u.in.IsHelper() || u.in.IsFuncCall()
			if u.newer != nil || len(u.facts) > 0 || calls || u.in.Ref.Kind() == bpfobj.RefExtern {
				o.uses[fn] = append(o.uses[fn], u)
			}
		}
	}
	o.accesses, o.mapCalls = make([][]flow.Access, len(prog.Programs)), make([][]flow.MapCall, len(prog.Programs))
	o.fresh, o.unjudged = make([][]flow.Fresh, len(prog.Programs)), make([][]Finding, len(prog.Programs))
	o.walks = make([]flow.Walks, len(prog.Programs))
	for i := range prog.Programs {
		o.called = append(o.called, o.helpersOf(&prog.Programs[i]))
		o.refers = append(o.refers, o.references(&prog.Programs[i]))
	}
	o.tailOnly = o.findTailCalled()
	return o
}

// follow finds what the programs read of their context. An error is ctx's.
func (o *Object) follow(ctx context.Context) error {
	steps := limits.NewMeter(ctx, limits.AccessSteps, "instructions")
	for i := range o.Programs {
		pr := &o.Programs[i]
		all, calls, fresh, walks := flow.Accesses(o.Code, pr, o.memory, steps)
		o.unjudged[i] = o.findUnjudged(pr, all)
		o.accesses[i], o.mapCalls[i], o.fresh[i], o.walks[i] = contextAccesses(pr, all), calls, fresh, walks
	}
	o.contexts = o.findContexts()
	return ctx.Err()
}

// references are the names of an object's maps and externs to which the code of a program
// refers. A setting of the kernel's build counts as all of them, which are in one map.
func (o *Object) references(pr *bpfobj.Program) map[string]bool {
	names := make(map[string]bool)
	settings := false
	for _, fn := range pr.Funcs {
		code := o.Funcs[fn].Insns
		for i := range code {
			switch in := &code[i]; {
			case in.Ref.N() < 0:
			case in.Ref.Kind() == bpfobj.RefMap:
				names[o.Maps[in.Ref.N()].Name] = true
			case in.Ref.Kind() == bpfobj.RefExtern:
				x := &o.Externs[in.Ref.N()]
				names[x.Name] = true
				settings = settings || x.Kind == bpfobj.ExternKconfig
			}
		}
	}
	for i := range o.StructOps {
		if m := &o.StructOps[i]; slices.Contains(m.Funcs, pr.Fn) {
			names[structOpsOf(m.Type)] = true
		}
	}
	for i := range o.Externs {
		if x := &o.Externs[i]; settings && x.Kind == bpfobj.ExternKconfig {
			names[x.Name] = true
		}
	}
	return names
}
