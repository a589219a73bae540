// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// facts are the inspected properties of a kernel.
type facts struct {
	Entry
	sum     [sha256.Size]byte // of the BTF
	damage  error             // why the BTF cannot be loaded; then nothing below is set
	bad     []*corpus.Error   // modules whose BTF cannot be loaded
	wrong   string            // how it contradicts its path
	debug   []string          // options of debug kernels
	funcs   int               // FUNC types
	modules bool              // the kernel has BTF for modules

	structs    int    // named structs
	names      int    // distinct names of them
	worst      string // the most frequent name
	worstCount int

	moduleCopies int // structs of modules whose names vmlinux has, too
}

// inspector inspects kernels one after the other. It is not safe for concurrent use.
type inspector struct {
	sources     []string // of the corpus, for newEntry
	btf, module btf.BTF
	names       map[string]int
	found       map[string]btf.Type
}

// wanted are the structs that inspect looks into.
var wanted = []string{"pt_regs", "module", "raw_spinlock", "lockdep_map", "mutex", "task_struct", "kasan_global"}

// describe returns the listing's entry of a kernel, or the damage.
func (in *inspector) describe(ctx context.Context, k *corpus.Kernel) (f facts) {
	f.Entry = newEntry(k.Key, k.Path, k.SourceSize, in.sources)
	if f.damage = in.btf.Load(ctx, k.BTF, nil); f.damage != nil {
		return f
	}
	f.Kernel = k.Name
	f.Details = &Details{
		Bytes: int64(len(k.BTF)), Types: in.btf.NumTypes() - 1, // without void
		ByteOrder: orderOf(in.btf.Order()), Pointer: in.btf.PointerSize(), Modules: len(k.Modules), AsBytes: k.AsBytes,
		ConfigBytes: int64(len(k.Config)), SymbolBytes: int64(len(k.Symbols)), Maker: k.Made.By,
	}
	for _, m := range k.Modules {
		f.ModuleBytes += int64(len(m.BTF))
	}
	return f
}

// inspect gathers the facts of a kernel.
func (in *inspector) inspect(ctx context.Context, k *corpus.Kernel) facts {
	f := in.describe(ctx, k)
	f.sum = sha256.Sum256(k.BTF)
	if f.damage != nil {
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
		for id := range in.module.Named {
			if t := in.module.Type(id); t.Kind() == btf.KindStruct && in.names[string(t.Name())] > 0 {
				f.moduleCopies++
			}
		}
	}
	return f
}

// count counts functions and structs, and finds the first struct with members of each wanted name.
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
		f.worst = name // the best known
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

// debugMembers are the members that options of debug kernels add. See the package comment.
var debugMembers = []struct{ option, strct, member string }{
	{"DEBUG_SPINLOCK", "raw_spinlock", "magic"},
	{"LOCKDEP", "lockdep_map", ""}, // any member
	{"DEBUG_MUTEXES", "mutex", "magic"},
	{"KASAN", "task_struct", "kasan_depth"},
	{"KCSAN", "task_struct", "kcsan_ctx"},
	{"KMSAN", "task_struct", "kmsan_ctx"},
	{"KCOV", "task_struct", "kcov_mode"},
}

// debugOptions returns the options of debug kernels that show in the structs found.
func debugOptions(b *btf.BTF, found map[string]btf.Type) (options []string) {
	for _, m := range debugMembers {
		t := found[m.strct]
		if m.member == "" && t.Vlen() > 0 || m.member != "" && b.HasMember(&t, m.member) {
			options = append(options, m.option)
		}
	}
	if _, ok := found["kasan_global"]; ok {
		if at := slices.Index(options, "KASAN"); at >= 0 {
			options[at] = "KASAN_GENERIC"
		}
	}
	return options
}

// Byte orders in listings and findings.
const (
	little = "little"
	big    = "big"
)

func orderOf(order binary.ByteOrder) string {
	if order == binary.BigEndian {
		return big
	}
	return little
}

// contradiction returns how a BTF, or its file, differs from the architecture in its path, or "". fileArch is the file's
// architecture, or empty.
func contradiction(pathArch, fileArch string, b *btf.BTF, regs *btf.Type) string {
	arch := kernel.CanonicalArch(pathArch)
	if fileArch != "" && arch != "" && fileArch != arch {
		return fmt.Sprintf("the file is for %s, its path says %s", fileArch, arch)
	}
	m := machine.Named(arch)
	if m == nil {
		return ""
	}
	if o := machine.Of(b, regs); o != nil && o.Arch != arch {
		return fmt.Sprintf("struct pt_regs is that of %s, the path says %s", o.Arch, arch)
	}
	if b.Order() != m.Order {
		return fmt.Sprintf("the BTF is %s-endian, %s is %s-endian", orderOf(b.Order()), arch, orderOf(m.Order))
	}
	if p := b.PointerSize(); p != m.Pointer {
		return fmt.Sprintf("long has %d bytes, on %s it has %d", p, arch, m.Pointer)
	}
	if regs.Vlen() > 0 && !b.HasMember(regs, m.Register) {
		return fmt.Sprintf("struct pt_regs has no %s, on %s it has", m.Register, arch)
	}
	return ""
}
