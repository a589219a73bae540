// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

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
	Aya    Loader = "aya"     // 0.14; only judged alone
)

// Loaders are those that are judged together.
func Loaders() []Loader { return []Loader{Libbpf, EbpfGo} }

// Concerns reports whether a finding counts with a loader.
func (f *Finding) Concerns(l Loader) bool { return f.Loader == "" || f.Loader == l }

// OfObject reports whether a finding is about an object that a loader does not open.
func (f *Finding) OfObject() bool { return FamilyOf(f.Code) == FamilyObject }

// ofProgram returns a finding on an object as a finding on one of its programs, and
// whether it counts there. refers says that the program's code refers to the subject.
func (p *Pairing) ofProgram(f Finding, refers bool) (Finding, bool) {
	switch {
	case refers, f.OfObject(), p.counts(Aya):
	case f.Loader == EbpfGo:
		return f, false
	default:
		f.Loader = Libbpf
	}
	switch {
	case p.counts(Libbpf):
	case p.counts(Aya) && f.Stops == ObjectStops:
		f.Stops = LoadStops
	default:
		f.Stops = NothingStops
	}
	return f, f.Loader == "" || p.counts(f.Loader)
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
