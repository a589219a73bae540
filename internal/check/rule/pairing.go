// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Pairing is one object on one kernel: what its programs have in common there.
// It is for one goroutine at a time. What Input and Value return is safe for concurrent use meanwhile.
type Pairing struct {
	Loading
	o         *Object
	k         *Inventory
	decisions Decisions

	needed  []neededPart               // findings on what the object needs for any program
	externs map[*bpfobj.Extern]Finding // why one cannot be used
}

// Loading is how an object is loaded on a kernel.
type Loading struct {
	Loaders []Loader                                               // judge for these
	SetsMap func(name string) bool                                 // the loader sets up this map
	Tail    func(program int) bool                                 // only tail calls reach this program; nil for what the object shows
	Added   bool                                                   // the loader adds types to the kernel's
	Unit    func(section, name string) (*core.UnitDecision, error) // decides a program as cilium/ebpf does; nil if the object is not for the kernel

	WithModules Decisions // on the same kernel with its modules; nil if this one has them
	Together    Decisions // on the same kernel with all modules; nil if this one has them, or if none of them define a type differently
}

// ForKernel reports whether the object is for the kernel.
func (p *Pairing) ForKernel() bool { return p.decisions != nil }

// tailCalled reports whether only tail calls reach program j.
func (p *Pairing) tailCalled(j int) bool {
	if p.Tail == nil {
		return p.o.TailCalled(j)
	}
	return p.Tail(j)
}

// neededPart is a finding on a part of an object, and the name by which code refers to that part.
type neededPart struct {
	name string
	f    Finding
}

// unlessLoaded returns a finding on a record, or that it needs a module if it resolves only with modules, for cilium/ebpf alone where
// libbpf does not look at them.
func (p *Pairing) unlessLoaded(record int, f Finding) Finding {
	if p.WithModules != nil {
		if names := NamesOf(p.enough(record)); names != "" {
			f.Status, f.Code, f.Args = MayFail, ModuleNeeded, Args{Names: names}
			if len(p.WithModules[record].HiddenIn()) > 0 {
				f.Loader = EbpfGo
			}
		}
	}
	return f
}

// counts reports whether the object is judged for a loader.
func (p *Pairing) counts(l Loader) bool { return slices.Contains(p.Loaders, l) }

// alone reports whether libbpf finds a record ambiguous, and cilium/ebpf decides it by itself, with the other records of a program.
func (p *Pairing) alone(record int) bool {
	return p.Unit != nil && p.counts(EbpfGo) && p.decisions[record].Result == relo.Ambiguous
}

// missing looks for a kfunc or a typed ksym, once.
func (p *Pairing) missing(x *bpfobj.Extern) Finding {
	l, ok := p.externs[x]
	if !ok {
		l = p.k.missing(p.o, x)
		if p.externs == nil {
			p.externs = make(map[*bpfobj.Extern]Finding)
		}
		p.externs[x] = l
	}
	return l
}

// hasKsym reports whether the kernel has an extern or may have it. An untyped extern
// may be any symbol, and BTF does not list symbols.
func (p *Pairing) hasKsym(x *bpfobj.Extern) bool {
	if x.Type == 0 {
		has, known := p.k.listed(x.Name)
		return has || !known
	}
	f := p.missing(x)
	return f.Status != Fails && f.Code != KfuncModule && f.Code != KsymModule
}

// ksym returns hasKsym as a number. It is unknown for a weak untyped extern if the kernel's symbols are not known and its BTF has
// no function of the name.
func (p *Pairing) ksym(x *bpfobj.Extern) interp.Number {
	if !p.hasKsym(x) {
		return interp.Number{}
	}
	if _, known := p.k.listed(x.Name); x.Type == 0 && x.Weak && !known {
		if _, ok := p.k.find(btf.Essential(x.Name), btf.KindFunc); !ok {
			return interp.Number{Unknown: ^uint64(0)}
		}
	}
	return interp.Number{V: 1}
}
