// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"crypto/sha256"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
)

// facts is what is kept of a kernel.
type facts struct {
	Entry
	rank    walk.Rank
	known   bool              // the key is
	sum     [sha256.Size]byte // of the BTF
	damage  error             // why the BTF cannot be loaded; nothing below is known then
	bad     []*corpus.Error   // modules that do not fit
	wrong   string            // how it contradicts its path
	debug   []string          // options of debug kernels
	funcs   int               // FUNC types
	modules bool              // the kernel gives BTF to its modules

	structs    int    // named structs
	names      int    // how many names they have
	worst      string // the most frequent name
	worstCount int

	moduleCopies int // structs of modules that vmlinux has too
}

// inspector looks at kernels one after the other. It is not safe for concurrent use. The zero value
// is ready.
type inspector struct {
	sources     []string // of the corpus, for newEntry
	btf, module btf.BTF
	names       map[string]int
	found       map[string]btf.Type
}

// wanted are the structs that something is to be learnt from.
var wanted = []string{"pt_regs", "module", "raw_spinlock", "lockdep_map", "mutex", "task_struct", "kasan_global"}

// describe returns what a listing says of a kernel. It fails if the BTF is damaged.
func (in *inspector) describe(ctx context.Context, k *corpus.Kernel) (Entry, error) {
	e := newEntry(k.Key, k.Path, k.SourceSize, in.sources)
	if err := in.btf.Load(ctx, k.BTF, nil); err != nil {
		return e, err
	}
	e.Kernel = k.Name
	e.Details = &Details{
		Bytes: int64(len(k.BTF)), Types: in.btf.NumTypes() - 1, // void is none
		ByteOrder: orderOf(in.btf.Order()), Pointer: in.btf.PointerSize(), Modules: len(k.Modules), AsBytes: k.AsBytes,
		ConfigBytes: int64(len(k.Config)), SymbolBytes: int64(len(k.Symbols)),
	}
	e.Maker = k.Made.By
	for _, m := range k.Modules {
		e.ModuleBytes += int64(len(m.BTF))
	}
	return e, nil
}

// inspect gathers the facts of a kernel.
func (in *inspector) inspect(ctx context.Context, r walk.Rank, k *corpus.Kernel) facts {
	f := facts{rank: r, known: k.Key.Known(), sum: sha256.Sum256(k.BTF)}
	if f.Entry, f.damage = in.describe(ctx, k); f.damage != nil {
		return f
	}
	b := &in.btf
	in.count(&f)
	regs, mod := in.found["pt_regs"], in.found["module"]
	f.wrong = contradiction(k.Key.Arch, k.Arch, b, &regs)
	f.debug = debugOptions(b, in.found)
	f.modules = b.HasMember(&mod, "btf_data")
	for i, m := range k.Modules {
		if err := in.module.Load(ctx, m.BTF, b); err != nil {
			f.bad = append(f.bad, &corpus.Error{Path: k.ModulePaths[i], Err: err})
			continue
		}
		f.moduleCopies += in.copies()
	}
	return f
}

// count counts functions and structs, and finds the first one with members of each wanted name.
func (in *inspector) count(f *facts) {
	if in.names == nil {
		in.names, in.found = make(map[string]int), make(map[string]btf.Type)
	}
	clear(in.names)
	clear(in.found)
	b := &in.btf
	for id := range btf.TypeID(b.NumTypes()) {
		if t := b.Type(id); t.Kind() == btf.KindFunc {
			f.funcs++
		}
	}
	for id := range b.Named {
		if t := b.Type(id); t.Kind() == btf.KindStruct {
			f.structs++
			in.names[string(t.Name())]++
			in.find(&t)
		}
	}
	f.names = len(in.names)
	for name, n := range in.names {
		if n > f.worstCount || n == f.worstCount && name < f.worst {
			f.worst, f.worstCount = name, n
		}
	}
	if name := "task_struct"; in.names[name] == f.worstCount {
		f.worst = name // everybody knows it
	}
}

func (in *inspector) find(t *btf.Type) {
	if t.Vlen() == 0 {
		return
	}
	for _, w := range wanted {
		if t.BTF().NameIs(t.NameOff, w) {
			if _, ok := in.found[w]; !ok {
				in.found[w] = *t
			}
			return
		}
	}
}

// copies counts the module's own structs of which vmlinux has one with that name.
func (in *inspector) copies() (n int) {
	for id := range in.module.Named {
		if t := in.module.Type(id); t.Kind() == btf.KindStruct && in.names[string(t.Name())] > 0 {
			n++
		}
	}
	return n
}
