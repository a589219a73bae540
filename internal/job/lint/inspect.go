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
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// facts are the inspected properties of a kernel.
type facts struct {
	key      kernel.Key
	name     string // the key, or the path if the key is incomplete
	path     string
	sum      [sha256.Size]byte // SHA-256 of the BTF
	modules  int               // number of modules with BTF
	damage   error             // why the BTF cannot be loaded; then nothing below is set
	bad      []*corpus.Error   // modules whose BTF cannot be loaded
	wrong    string            // how it contradicts its path
	debug    []string          // options of debug kernels
	loadable bool              // modules can have BTF
	types    int
	funcs    int // FUNC types
	structs  int // named structs
	names    int // distinct names of them
	cut      int // enums whose enumerators were cut
	cutName  string
}

// inspector inspects kernels one after the other. It is not safe for concurrent use.
type inspector struct {
	btf, module btf.BTF
	found       map[string]btf.Type // the first struct with members of each wanted name
}

// wanted are the structs that inspect looks into.
var wanted = []string{"pt_regs", "module", "raw_spinlock", "lockdep_map", "mutex", "task_struct", "kasan_global"}

// inspectAll returns what inspect returns for all kernels of a corpus, in its order, and what was skipped.
func inspectAll[T any](ctx context.Context, cfg walk.Config,
	inspect func(*inspector, context.Context, *corpus.Kernel) T) ([]T, []*corpus.Error, error) {
	all := make([][]T, len(cfg.Corpus.Files)) // each file has its own slice, so workers need no lock
	skipped, err := walk.Kernels(ctx, cfg, func() *inspector { return new(inspector) },
		func(in *inspector, file int, k *corpus.Kernel) error {
			all[file] = append(all[file], inspect(in, ctx, k))
			return nil
		})
	return slices.Concat(all...), skipped, err
}

// inspect gathers the facts of a kernel.
func (in *inspector) inspect(ctx context.Context, k *corpus.Kernel) facts {
	f := facts{key: k.Key, name: k.Name, path: k.Path, sum: sha256.Sum256(k.BTF), modules: len(k.Modules)}
	b := &in.btf
	if f.damage = k.LoadBTF(ctx, b); f.damage != nil {
		return f
	}
	in.count(&f)
	regs, mod := in.found["pt_regs"], in.found["module"]
	f.wrong = contradiction(k.Key.Arch, k.Arch, b, &regs)
	f.debug = debugOptions(b, in.found)
	f.loadable = b.HasMember(&mod, "btf_data")
	for _, m := range k.Modules {
		if err := in.module.Load(ctx, m.BTF, b); err != nil {
			f.bad = append(f.bad, &corpus.Error{Path: m.Path, Err: err})
		}
	}
	return f
}

// count counts types, functions and structs, and finds the wanted structs.
func (in *inspector) count(f *facts) {
	b := &in.btf
	in.found = make(map[string]btf.Type)
	f.types = b.NumTypes() - 1 // void is not counted
	for id := range btf.TypeID(b.NumTypes()) {
		switch t := b.Type(id); {
		case t.Kind() == btf.KindFunc:
			f.funcs++
		case t.Kind() == btf.KindEnum && t.Size() == 8:
			if f.cut++; f.cutName == "" {
				f.cutName = cutName(b, &t)
			}
		}
	}
	names := make(map[string]bool)
	for id := range b.Named {
		t := b.Type(id)
		if t.Kind() != btf.KindStruct {
			continue
		}
		f.structs++
		name := string(t.Name())
		names[name] = true
		if _, ok := in.found[name]; !ok && t.Vlen() > 0 && slices.Contains(wanted, name) {
			in.found[name] = t
		}
	}
	f.names = len(names)
}

// cutName names an enum, by its first enumerator if it has no name.
func cutName(b *btf.BTF, t *btf.Type) string {
	if name := t.Name(); len(name) > 0 || t.Vlen() == 0 {
		return string(name)
	}
	return "that of " + string(b.Name(t.Enumerator(0).NameOff))
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
