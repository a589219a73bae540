// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// callees are the functions that one calls, or has called back.
type callees struct {
	calls  []int // without repetitions, in order of the code
	shared bool  // see Callees
}

// Callees returns the functions that one calls or has called back, each once, and whether its exploration can be kept
// for other programs and kernels: calls nest no deeper than verifiers accept.
func (o *Object) Callees(fn int) (calls []int, shared bool) {
	c := &o.calls[fn]
	return c.calls, c.shared
}

// findCallees returns those of each function.
func findCallees(o *bpfobj.Code) []callees {
	const (
		deepest = 8
		busy    = deepest + 1 // a function whose callees are being visited: it calls itself
	)
	all, depth := make([]callees, len(o.Funcs)), make([]int, len(o.Funcs))
	for fn := range o.Funcs {
		all[fn].calls = o.Funcs[fn].Calls()
	}
	var visit func(fn int) int
	visit = func(fn int) int {
		if depth[fn] == 0 {
			depth[fn] = busy
			d := 1
			for _, c := range all[fn].calls {
				d = max(d, 1+visit(c))
			}
			depth[fn] = min(d, busy)
			all[fn].shared = d <= deepest
		}
		return depth[fn]
	}
	for fn := range o.Funcs {
		visit(fn)
	}
	return all
}

// voidPointers is what global functions with pointers to void need. The tables do not have it: verifiers that check
// global functions on their own refuse such functions.
const voidPointers = ^facts.Every

// globalNeeds returns the facts that global functions need because of their prototypes (btf_prepare_func_args in
// kernel/bpf/btf.c), and which arguments are pointers to memory, by function.
func globalNeeds(o *bpfobj.Code) (map[int][]facts.Fact, map[int]bpfobj.Registers) {
	named := make(map[string]int)
	for i := range o.Funcs {
		if o.Funcs[i].Global {
			named[o.Funcs[i].Name] = i
		}
	}
	out, memory := make(map[int][]facts.Fact), make(map[int]bpfobj.Registers)
	if o.BTF == nil || len(named) == 0 {
		return out, memory
	}
	tags := argumentTags(o.BTF)
	eachPrototype(o.BTF, func(id btf.TypeID, name string, proto btf.Type) {
		fn, ok := named[name]
		if !ok {
			return
		}
		for i := range proto.Vlen() {
			tagged := tags[argument{id, i}]
			out[fn] = append(out[fn], tagged...)
			if len(tagged) > 0 && !slices.Equal(tagged, []facts.Fact{facts.GlobalArgumentNonnull}) {
				continue // its tags decide
			}
			if fact := ofPointer(o.BTF, proto.Param(i).Type); fact != facts.Every {
				out[fn] = append(out[fn], fact)
				if r := asm.R1 + asm.Register(i); fact == facts.MemoryForGlobalFunctions && r <= asm.R5 {
					memory[fn] |= 1 << r
				}
			}
		}
		if t, ok := o.BTF.SkipMods(proto.Ref()); ok && t.Kind() == btf.KindVoid {
			out[fn] = append(out[fn], facts.GlobalResultVoid)
		}
	})
	return out, memory
}

// argument is one of a FUNC.
type argument struct {
	of btf.TypeID
	n  uint32
}

// argumentTags returns the facts that arguments of functions need because of their declaration tags, "arg:nonnull".
func argumentTags(b *btf.BTF) map[argument][]facts.Fact {
	tags := make(map[argument][]facts.Fact)
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		if t.Kind() != btf.KindDeclTag {
			continue
		}
		tag, ok := strings.CutPrefix(string(t.Name()), "arg:")
		for _, n := range t.Words() {
			if a := (argument{t.Ref(), n}); ok {
				tags[a] = append(tags[a], facts.GlobalArgument(tag))
			}
		}
	}
	return tags
}

// eachPrototype calls f for each function of an object's BTF.
func eachPrototype(b *btf.BTF, f func(id btf.TypeID, name string, proto btf.Type)) {
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		t := b.Type(id)
		if t.Kind() != btf.KindFunc {
			continue
		}
		if proto := b.Type(t.Ref()); proto.Kind() == btf.KindFuncProto {
			f(id, string(t.Name()), proto)
		}
	}
}

// ofPointer returns the fact that a global function needs to take an argument without tags: a pointer to something of a
// known size, except a context.
func ofPointer(b *btf.BTF, id btf.TypeID) facts.Fact {
	t, ok := b.SkipMods(id)
	if !ok || t.Kind() != btf.KindPtr {
		return facts.Every
	}
	to, ok := b.SkipMods(t.Ref())
	name := string(b.Name(to.NameOff))
	_, err := b.SizeOf(t.Ref())
	switch {
	case !ok, to.Kind() == btf.KindStruct && facts.IsContext(name):
	case to.Kind() == btf.KindVoid:
		return voidPointers
	case to.Kind() == btf.KindStruct && name == "bpf_dynptr":
		return facts.GlobalArgumentDynptr
	case err == nil:
		return facts.MemoryForGlobalFunctions
	}
	return facts.Every
}

// TagsContext reports whether a program calls a global function with an argument that a tag says is the context.
func (o *Object) TagsContext(program int) bool {
	for _, fn := range o.Programs[program].Funcs {
		for i := range o.uses[fn] {
			if u := &o.uses[fn][i]; u.in.Op == bpfobj.OpCall && slices.Contains(u.facts, facts.GlobalArgumentCtx) {
				return true
			}
		}
	}
	return false
}

// judgeGlobal judges what a call of a global function needs. Older verifiers do not check the function on its own, but
// with the arguments of each call.
func (s *Scene) judgeGlobal(fact facts.Fact) Finding {
	f := Finding{Status: Fails, Code: FeatureMissing, Subject: "global functions with pointers to void"}
	if fact != voidPointers {
		f = s.k.judge(fact, FeatureMissing)
	}
	f.Status = min(f.Status, s.k.strict())
	switch fact {
	// libbpf replaces the type for older kernels: bpf_program_fixup_func_info in its src/libbpf.c.
	case facts.GlobalArgumentCtx:
		if f.Loader = EbpfGo; s.loader != EbpfGo {
			return Finding{}
		}
	case facts.GlobalArgumentNonnull: // the function may compare the pointer
		f.Status = min(f.Status, MayFail)
	}
	return f
}
