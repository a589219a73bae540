// SPDX-License-Identifier: Apache-2.0

package rule

// Loader is a library that loads objects.
//
// libbpf creates all maps of an object, looks up all its externs and then loads
// its programs. If one of these steps fails, it gives up on the object
// (bpf_object_load in libbpf.c). cilium/ebpf creates a map or looks up an extern
// only if a program that it loads refers to it (collectionLoader in
// collection.go, fixupKfuncs and resolveKsymReferences in linker.go). This is
// what LoadAndAssign does; NewCollection creates every map. aya resolves the relocations of all programs and
// creates all maps before the application loads the programs it wants, one by one (EbpfLoader::load in aya's
// src/bpf.rs).
type Loader string

// The supported loaders.
const (
	Libbpf Loader = "libbpf"
	EbpfGo Loader = "ebpf-go" // github.com/cilium/ebpf
	Aya    Loader = "aya"     // version 0.14; only judged alone
)

// Loaders are those that are judged together.
func Loaders() []Loader { return []Loader{Libbpf, EbpfGo} }

// stops returns what a loader gives up on if it refuses a relocation or a map.
func (l Loader) stops() Stops {
	switch l {
	case EbpfGo:
		return ProgramStops
	case Aya:
		return LoadStops
	}
	return ObjectStops
}

// stopsWithout returns what a loader gives up on if the kernel lacks something that the object needs. cilium/ebpf gives up only on the programs
// that refer to it.
func (l Loader) stopsWithout() Stops {
	if l == EbpfGo {
		return NothingStops
	}
	return l.stops()
}

// Concerns reports whether a finding counts with a loader.
func (f *Finding) Concerns(l Loader) bool { return f.Loader == "" || f.Loader == l }

// OfObject reports whether a finding is about an object that a loader does not open.
func (f *Finding) OfObject() bool { return FamilyOf(f.Code) == FamilyObject }
