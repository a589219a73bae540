// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// symbol is a type of a kernel found by its name.
type symbol struct {
	module string // "" for vmlinux
	view   *btf.BTF
	id     btf.TypeID
}

func (y symbol) typ() btf.Type { return y.view.Type(y.id) }

// Inventory is what a kernel's BTF says about the things that are wanted. It is for one goroutine at a time, as forbids remembers what it
// finds.
type Inventory struct {
	Arch     string
	pointer  uint32 // bytes
	want     *Wanted
	enums    [facts.Enums]map[string]uint64 // nil if the BTF lacks the enum
	helpers  map[int64]bool
	symbols  [][]symbol    // by number of the name
	matches  []int         // number of functions by pattern
	globs    *limits.Meter // steps of matching patterns; if it has an error, matches is not valid
	funcs    int
	kfuncs   map[*btf.BTF]map[btf.TypeID]bool // functions with the tag of kfuncs, for a BTF with such tags
	wrapper  bool                             // system calls are __x64_sys_*
	safe     map[string]symbol                // the verifier's lists of members, by name: see readSafe
	features interp.Features
	refuses  map[*bpfobj.Section]*helperSet // filled by forbids
	version  interp.Number                  // LINUX_KERNEL_VERSION, V 0 if it is not known
	known    knowledge
	maker    string // the program that made the BTF from DWARF, "" for the kernel's own BTF
	noOwnBTF bool   // the caller says that kernels have no BTF of their own
	whole    bool   // the BTF is that of a whole kernel: see wholeBTF
	facts    facts.Answers
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
var features = map[interp.Features]facts.Fact{
	interp.Constants:   facts.VerifierConstants,
	interp.Rodata:      facts.VerifierConstantsInReadOnlyMaps,
	interp.Globals:     facts.VerifierGlobalFunctions,
	interp.NonNull:     facts.VerifierPointersThatAreNotNull,
	interp.Partly:      facts.VerifierPartlyKnownSpills,
	interp.Partial:     facts.VerifierPartialSpills,
	interp.StImm:       facts.VerifierStoredImmediates,
	interp.LazyGlobals: facts.VerifierGlobalFunctionsIfCalled,
	interp.Narrow:      facts.VerifierPartialFills,
	interp.Halves:      facts.VerifierBoundsOfLowerHalves,
	interp.Unequal:     facts.VerifierBoundsOfInequality,
}

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
	"x86_64": "__x64_sys_", "i386": "__ia32_sys_", "arm64": "__arm64_sys_", "s390x": "__s390x_sys_",
	"riscv64": "__riscv_sys_",
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
func (k *Inventory) lacks(enum facts.Enum, name string) bool {
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
	if instead := facts.HelperNumbered(id).Instead; instead != 0 {
		return !k.helpers[instead]
	}
	return true
}
