// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// enumNames are the enums of the kernel's interface.
var enumNames = [...]string{
	enumHelper: "bpf_func_id", enumMap: "bpf_map_type", enumProg: "bpf_prog_type", enumAttach: "bpf_attach_type", enumLink: "bpf_link_type",
	enumCond: "bpf_cond_pseudo_jmp", enumMapFlag: "BPF_F_NO_PREALLOC", // which has no name, but that in it
}

// enumNumber returns the index of an enum in enumNames, which has it.
func enumNumber(name string) int { return slices.Index(enumNames[:], name) }

const (
	enumHelper = iota
	enumMap
	enumProg
	enumAttach
	enumLink
	enumCond
	enumMapFlag
)

// symbol is a type of a kernel found by its name.
type symbol struct {
	module string // "" for vmlinux
	view   *btf.BTF
	id     btf.TypeID
}

func (y symbol) typ() btf.Type { return y.view.Type(y.id) }

// Inventory is what a kernel's BTF says about the things that are wanted.
type Inventory struct {
	Arch     string
	want     *Wanted
	enums    [len(enumNames)]map[string]uint64 // nil where the BTF has no such enum
	helpers  map[int64]bool
	symbols  [][]symbol // by number of the name
	matches  []int      // functions by pattern
	funcs    int
	statics  bool                             // the BTF lists static functions, too
	kfuncs   map[*btf.BTF]map[btf.TypeID]bool // functions that are tagged as such, where a BTF has such tags
	wrapper  bool                             // system calls are __x64_sys_*
	features interp.Features
	refuses  map[*bpfobj.Section]*helperSet // filled by forbids
	version  interp.Number                  // LINUX_KERNEL_VERSION, V 0 if it is not known
	known    knowledge
	maker    string   // what made the BTF from DWARF, "" if the kernel came with it
	noOwnBTF bool     // the caller says that kernels have no BTF of their own
	whole    bool     // the BTF is that of a whole kernel: see wholeBTF
	facts    []ruling // by fact
	shown    Release  // the newest that the BTF shows
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
	for module, b := range t.Views() {
		k.known.modules = k.known.modules || module != ""
		for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
			if id%4096 == 0 && ctx.Err() != nil {
				break
			}
			k.visit(module, b, id)
		}
	}
	_, k.whole = k.find(wholeBTF, btf.KindStruct)
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
		for i, p := range k.want.patterns {
			if ok, _ := path.Match(p, string(t.Name())); ok {
				k.matches[i]++
			}
		}
	case btf.KindEnum, btf.KindEnum64:
		if t.NameOff == 0 && k.enums[enumMapFlag] == nil && t.Vlen() > 0 && b.NameIs(t.Enumerator(0).NameOff, "BPF_F_NO_PREALLOC") {
			k.enums[enumMapFlag] = enumValues(b, &t)
		}
		for i, n := range enumNames[:enumMapFlag] {
			if b.NameIs(t.NameOff, n) && k.enums[i] == nil {
				k.enums[i] = enumValues(b, &t)
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
	if i, ok := k.want.names[string(t.Name())]; ok {
		k.symbols[i] = append(k.symbols[i], symbol{module, b, id})
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

// find returns the type of a kind with a name, vmlinux before modules.
func (k *Inventory) find(name string, kind btf.Kind) (symbol, bool) {
	i, ok := k.want.names[name]
	if !ok {
		return symbol{}, false
	}
	for _, y := range k.symbols[i] {
		t := y.typ()
		if t.Kind() == kind {
			return y, true
		}
	}
	return symbol{}, false
}

// features are the facts of those abilities of verifiers on which guards depend.
var features = map[interp.Features]string{
	interp.Constants:   "verifier constants",
	interp.Rodata:      "verifier constants in read-only maps",
	interp.Globals:     "verifier global functions",
	interp.NonNull:     "verifier pointers that are not null",
	interp.Partly:      "verifier partly known spills",
	interp.Partial:     "verifier partial spills",
	interp.StImm:       "verifier stored immediates",
	interp.LazyGlobals: "verifier global functions if called",
	interp.Narrow:      "verifier partial fills",
	interp.Halves:      halfSizes,
	interp.Unequal:     zeroSizes,
}

// readHelpers finds the helpers, and how system calls are called.
func (k *Inventory) readHelpers() {
	k.helpers = make(map[int64]bool, len(k.enums[enumHelper]))
	for n, v := range k.enums[enumHelper] {
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

// VersionOf is LINUX_KERNEL_VERSION on a kernel. Debian's and Ubuntu's releases
// keep their first patch level in the name, 5.10.0 for 5.10.218, and names that begin with a word may have none.
func VersionOf(key kernel.Key) interp.Number {
	v := interp.Number{Unknown: 0xffffffff}
	var n [3]uint64
	for i, s := range strings.SplitN(key.Linux(), ".", 3) {
		digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
		if digits < 0 {
			digits = len(s)
		}
		x, err := strconv.ParseUint(s[:digits], 10, 16)
		if err != nil {
			if i < 2 {
				return v
			}
			x = 0
		}
		n[i] = x
	}
	if n[0] == 0 {
		return v
	}
	out := interp.Number{V: n[0]<<16 | n[1]<<8 | min(n[2], 255)}
	if id := kernel.CanonicalID(key.ID); n[2] == 0 && (id == "debian" || id == "ubuntu" || key.Linux() != key.Release) {
		out.Unknown = 0xff
	}
	return out
}

// ReleaseOf returns the release of Linux that a kernel's name shows, 0 if it shows none.
func ReleaseOf(key kernel.Key) Release { return Release(VersionOf(key).V) &^ 0xff }

// syscallNames returns the functions that a system call may have on an
// architecture, best first.
func syscallNames(name, arch string) []string {
	names := []string{"sys_" + name, "__se_sys_" + name}
	if prefix := syscallPrefixes[kernel.CanonicalArch(arch)]; prefix != "" {
		names = slices.Insert(names, 0, prefix+name)
	}
	return names
}

// syscallPrefixes begin the names of wrappers of system calls.
var syscallPrefixes = map[string]string{
	"x86_64": "__x64_sys_", "i386": "__ia32_sys_", "arm64": "__arm64_sys_", "s390x": "__s390x_sys_", "riscv64": "__riscv_sys_",
}

// allSyscallNames is syscallNames for every architecture.
func allSyscallNames(name string) (all []string) {
	for _, arch := range slices.Sorted(maps.Keys(syscallPrefixes)) {
		all = append(all, syscallNames(name, arch)...)
	}
	return all
}

// dated reports whether the kernel's name shows its release.
func (k *Inventory) dated() bool { return k.version.V != 0 }

// before reports whether the kernel is older than a release, by its name.
func (k *Inventory) before(r Release) bool {
	return k.dated() && k.version.V|k.version.Unknown < uint64(r)
}

// lacks reports whether the BTF has the enum, and the enum has no such name.
func (k *Inventory) lacks(enum int, name string) bool {
	m := k.enums[enum]
	_, ok := m[name]
	return m != nil && !ok
}

// lacksHelper reports that the BTF lists helpers, but neither this one nor an
// older one that loaders put in its place.
func (k *Inventory) lacksHelper(id int64) bool {
	if len(k.helpers) == 0 || k.helpers[id] {
		return false
	}
	switch asm.BuiltinFunc(id) {
	case asm.FnProbeReadUser, asm.FnProbeReadKernel:
		return !k.helpers[int64(asm.FnProbeRead)]
	case asm.FnProbeReadUserStr, asm.FnProbeReadKernelStr:
		return !k.helpers[int64(asm.FnProbeReadStr)]
	}
	return true
}
