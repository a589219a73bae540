// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Inspect finds the wanted names in a kernel's BTF, loaded as t, its configuration and its symbols. noOwnBTF says that
// a kernel has no BTF of its own unless something else shows it. Inspect stops early when ctx ends.
func Inspect(ctx context.Context, t *core.Target, w *Wanted, it *corpus.Kernel, noOwnBTF bool) *Inventory {
	k := inspectBTF(ctx, t, w, it.Key, it.Arch)
	k.learn(ctx, &it.Extras)
	k.maker, k.noOwnBTF = it.Made.By, noOwnBTF
	return k
}

// learn reads a kernel's configuration and symbols. It stops early when ctx ends.
func (k *Inventory) learn(ctx context.Context, x *corpus.Extras) {
	if x.Config != nil {
		k.readConfig(x.Config)
	}
	if x.Symbols != nil {
		k.readSymbols(ctx, x.Symbols)
	}
	k.settle()
}

// inspectBTF finds the wanted names in a kernel's BTF in one pass. It stops early when
// ctx ends.
func inspectBTF(ctx context.Context, t *core.Target, w *Wanted, key kernel.Key, arch string) *Inventory {
	if arch == "" {
		arch = kernel.CanonicalArch(key.Arch)
	}
	if arch == "" {
		arch = t.Machine()
	}
	k := &Inventory{Arch: arch, want: w, symbols: make([][]symbol, len(w.names)), matches: make([]int, len(w.patterns))}
	k.globs = limits.NewMeter(ctx, limits.PatternSteps, "bytes compared with patterns")
	for module, b := range t.Views() {
		k.known.modules = k.known.modules || module != ""
		if module == "" {
			k.pointer = b.PointerSize()
		}
		for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
			if id%4096 == 0 && ctx.Err() != nil {
				break
			}
			k.visit(module, b, id)
		}
	}
	k.whole = facts.Whole(k)
	_, loads := k.find(loadsModules, btf.KindStruct)
	k.known.modules = k.known.modules || k.whole && !loads
	k.version = VersionOf(key)
	k.readHelpers()
	k.settle()
	return k
}

func (k *Inventory) visit(module string, b *btf.BTF, id btf.TypeID) {
	t := b.Type(id)
	switch t.Kind() {
	case btf.KindFunc:
		k.funcs++
		k.count(k.matches, t.Name())
	case btf.KindEnum, btf.KindEnum64:
		flags := t.NameOff == 0 && t.Vlen() > 0 && b.NameIs(t.Enumerator(0).NameOff, facts.EnumMapFlag.String())
		if flags && k.enums[facts.EnumMapFlag] == nil {
			k.enums[facts.EnumMapFlag] = enumValues(b, &t)
		}
		for e := range facts.EnumMapFlag {
			if b.NameIs(t.NameOff, e.String()) && k.enums[e] == nil {
				k.enums[e] = enumValues(b, &t)
			}
		}
		return
	case btf.KindDeclTag:
		if b.NameIs(t.NameOff, kfuncTag) {
			k.tag(b, t.Ref())
		}
		return
	case btf.KindVar, btf.KindTypedef, btf.KindStruct:
	default:
		return
	}
	if t.NameOff == 0 {
		return
	}
	if k.want.walks && module == "" && t.Kind() == btf.KindStruct {
		k.readSafe(b, &t)
	}
	if i, ok := k.want.names[string(t.Name())]; ok {
		k.symbols[i] = append(k.symbols[i], symbol{module, b, id})
	}
}

// count counts a function for the patterns that its name matches.
func (k *Inventory) count(matches []int, name []byte) {
	if len(matches) == 0 || k.globs.Err() != nil {
		return
	}
	for i := range k.want.patterns {
		if k.want.patterns[i].matches(name, k.globs) {
			matches[i]++
		}
	}
}

func enumValues(b *btf.BTF, t *btf.Type) map[string]uint64 {
	m := make(map[string]uint64, t.Vlen())
	for i := range t.Vlen() {
		e := t.Enumerator(i)
		m[string(b.Name(e.NameOff))] = e.Value
	}
	return m
}

// readHelpers finds the helpers, and how system calls are called.
func (k *Inventory) readHelpers() {
	k.helpers = make(map[int64]bool, len(k.enums[facts.EnumHelper]))
	for n, v := range k.enums[facts.EnumHelper] {
		if strings.HasPrefix(n, "BPF_FUNC_") {
			k.helpers[int64(v)] = true
		}
	}
	for _, n := range syscallNames("bpf", k.Arch) {
		if _, ok := k.find(n, btf.KindFunc); ok && strings.HasPrefix(n, "__") {
			k.wrapper = true
		}
	}
}
