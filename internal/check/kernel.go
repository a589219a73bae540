package check

import (
	"path"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/internal/unwrap"
	kernelkey "github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// enumNames are the enums of the kernel's interface.
var enumNames = [...]string{"bpf_func_id", "bpf_map_type", "bpf_prog_type", "bpf_attach_type", "bpf_link_type", "bpf_cond_pseudo_jmp", "btf_field_type"}

const (
	enumHelper = iota
	enumMap
	enumProg
	enumAttach
	enumLink
	enumCond
	enumField
)

// wanted is what the objects ask of a kernel's BTF by name. It is immutable.
type wanted struct {
	names    map[string]int
	patterns []string // of functions, with * and ?
}

func (w *wanted) add(names ...string) {
	for _, n := range names {
		if _, ok := w.names[n]; !ok && n != "" {
			w.names[n] = len(w.names)
		}
	}
}

// symbol is a type of a kernel found by its name.
type symbol struct {
	view   *rawbtf.BTF
	id     rawbtf.TypeID
	module string
}

func (y symbol) typ() rawbtf.Type { return y.view.Type(y.id) }

// kernel is what a kernel's BTF says about the things that are wanted.
type kernel struct {
	name     string
	key      kernelkey.Key
	arch     string
	want     *wanted
	enums    [len(enumNames)]map[string]uint64 // nil where the BTF has no such enum
	helpers  map[int32]bool
	symbols  [][]symbol // by number of the name
	matches  []int      // functions by pattern
	funcs    int
	wrapper  bool // system calls are __x64_sys_*
	features features
	version  value
}

// inspect reads all that is wanted from a kernel's BTF in one pass.
func inspect(t *relolog.Target, w *wanted, key kernelkey.Key, arch string) *kernel {
	if arch == "" {
		arch = kernelkey.CanonicalArch(key.Arch)
	}
	k := &kernel{
		name: t.Name(), key: key, arch: arch, want: w,
		symbols: make([][]symbol, len(w.names)), matches: make([]int, len(w.patterns)),
	}
	for module, b := range unwrap.Kernel(t).Views() {
		for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
			k.visit(module, b, id)
		}
	}
	k.readFeatures()
	k.version = versionOf(key)
	return k
}

func (k *kernel) visit(module string, b *rawbtf.BTF, id rawbtf.TypeID) {
	t := b.Type(id)
	switch t.Kind() {
	case rawbtf.KindFunc:
		k.funcs++
		for i, p := range k.want.patterns {
			if ok, _ := path.Match(p, string(t.Name())); ok {
				k.matches[i]++
			}
		}
	case rawbtf.KindEnum, rawbtf.KindEnum64:
		for i, n := range enumNames {
			if b.NameIs(t.NameOff, n) && k.enums[i] == nil {
				k.enums[i] = enumValues(b, &t)
			}
		}
		return
	case rawbtf.KindVar, rawbtf.KindTypedef, rawbtf.KindStruct:
	default:
		return
	}
	if t.NameOff == 0 {
		return
	}
	if i, ok := k.want.names[string(t.Name())]; ok {
		k.symbols[i] = append(k.symbols[i], symbol{b, id, module})
	}
}

func enumValues(b *rawbtf.BTF, t *rawbtf.Type) map[string]uint64 {
	m := make(map[string]uint64, t.Vlen())
	for i := range t.Vlen() {
		e := t.Enumerator(i)
		m[string(b.Name(e.NameOff))] = e.Value
	}
	return m
}

// find returns the type of a kind with a name, vmlinux before modules.
func (k *kernel) find(name string, kind rawbtf.Kind) (symbol, bool) {
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

// Names whose presence tells what a verifier can do.
var featureNames = []string{"bpf_func_info_aux", anyTracepoint}

func (k *kernel) readFeatures() {
	has := func(enum int, name string) bool {
		_, ok := k.enums[enum][name]
		return ok
	}
	k.helpers = make(map[int32]bool, len(k.enums[enumHelper]))
	for n, v := range k.enums[enumHelper] {
		if strings.HasPrefix(n, "BPF_FUNC_") {
			k.helpers[int32(v)] = true
		}
	}
	f := &k.features
	f.rodata = has(enumHelper, "BPF_FUNC_probe_read_kernel")
	f.partial = has(enumHelper, "BPF_FUNC_kallsyms_lookup_name")
	f.narrow = has(enumMap, "BPF_MAP_TYPE_ARENA")
	f.stImm = has(enumAttach, "BPF_NETFILTER")
	if y, ok := k.find("bpf_func_info_aux", rawbtf.KindStruct); ok {
		t := y.typ()
		for i := range t.Vlen() {
			m := t.Member(i)
			f.globals = f.globals || y.view.NameIs(m.NameOff, "linkage")
			f.lazyGlobals = f.lazyGlobals || y.view.NameIs(m.NameOff, "called")
		}
	}
	for _, n := range syscallNames("bpf", k.arch) {
		if _, ok := k.find(n, rawbtf.KindFunc); ok && strings.HasPrefix(n, "__") {
			k.wrapper = true
		}
	}
}

// versionOf is LINUX_KERNEL_VERSION on a kernel. Debian's and Ubuntu's releases
// keep their first patch level in the name, 5.10.0 for 5.10.218.
func versionOf(key kernelkey.Key) value {
	v := value{m: 0xffffffff, taint: true}
	var n [3]uint64
	for i, s := range strings.SplitN(key.Release, ".", 3) {
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
	out := constant(n[0]<<16 | n[1]<<8 | min(n[2], 255))
	if id := kernelkey.CanonicalID(key.ID); n[2] == 0 && (id == "debian" || id == "ubuntu") {
		out.m, out.taint = 0xff, true
	}
	return out
}

// syscallNames returns the functions that a system call may have on an
// architecture, best first.
func syscallNames(name, arch string) []string {
	var prefix string
	switch kernelkey.CanonicalArch(arch) {
	case "x86_64", "i386":
		prefix = map[string]string{"x86_64": "__x64_sys_", "i386": "__ia32_sys_"}[kernelkey.CanonicalArch(arch)]
	case "arm64":
		prefix = "__arm64_sys_"
	case "s390x":
		prefix = "__s390x_sys_"
	case "riscv64":
		prefix = "__riscv_sys_"
	}
	names := []string{"sys_" + name, "__se_sys_" + name}
	if prefix != "" {
		names = append([]string{prefix + name}, names...)
	}
	return names
}

// allSyscallNames is syscallNames for every architecture.
func allSyscallNames(name string) (all []string) {
	for _, a := range []string{"x86_64", "i386", "arm64", "s390x", "riscv64"} {
		all = append(all, syscallNames(name, a)...)
	}
	return all
}

// hasHelper reports whether the kernel has a helper, or an older one that
// loaders put in its place.
func (k *kernel) hasHelper(id int32) bool {
	if k.helpers[id] {
		return true
	}
	switch id {
	case 112, 113: // probe_read_user, probe_read_kernel
		return k.helpers[4]
	case 114, 115: // their _str
		return k.helpers[45]
	}
	return false
}

// kconfig is what a loader puts into a .kconfig variable.
func (k *kernel) kconfig(name string) value {
	switch name {
	case "LINUX_KERNEL_VERSION":
		return k.version
	case "LINUX_HAS_BPF_COOKIE":
		if _, ok := k.enums[enumHelper]["BPF_FUNC_get_attach_cookie"]; ok {
			return constant(1)
		}
		return constant(0)
	case "LINUX_HAS_SYSCALL_WRAPPER":
		if k.funcs == 0 {
			break
		}
		if k.wrapper {
			return constant(1)
		}
		return constant(0)
	}
	return value{m: ^uint64(0), taint: true}
}
