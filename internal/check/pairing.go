// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// pairing is one object on one kernel: what its programs have in common there.
// It is for one goroutine at a time.
type pairing struct {
	o        *Object
	k        *inventory
	loader   decisions
	settable func(variable string) bool
	setsMap  func(name string) bool // the loader sets up this map
	loaders  []Loader               // judge for these
	added    bool                   // the loader adds types to the kernel's

	unit func(section, name string) (*core.UnitDecision, error) // decides a program as cilium/ebpf does

	withModules decisions // on the same kernel with its modules; nil if this one has them
	together    decisions // on the same kernel with all modules; nil if this one has them, or if none of them define a type differently

	results *results
	found   *ledger

	whole []part // findings on what the object needs for any program

	functions []function                 // filled by codeOf
	externs   map[*bpfobj.Extern]Finding // why one cannot be used
	work      int                        // of the explorations of its programs so far
	ahead     *atomic.Int64              // of those that are not judged yet, too
	findings  int                        // on their code so far
}

// part is a finding on a part of an object, and the name by which code refers to that part.
type part struct {
	name string
	f    Finding
}

// unlessLoaded returns a finding on a record, or that it needs a module if it resolves only with modules, for cilium/ebpf alone where
// libbpf does not look at them.
func (p *pairing) unlessLoaded(record int, f Finding) Finding {
	if p.withModules != nil {
		if names := namesOf(p.enough(record)); names != "" {
			f.Status, f.Code, f.Args = MayFail, ModuleNeeded, Args{Names: names}
			if len(p.withModules[record].HiddenIn()) > 0 {
				f.Loader = EbpfGo
			}
		}
	}
	return f
}

// counts reports whether the object is judged for a loader.
func (p *pairing) counts(l Loader) bool { return slices.Contains(p.loaders, l) }

// ebpfGoUnit judges the records of the program as cilium/ebpf does, together with those of the functions that it links, unless
// libbpf refuses one, for another reason than that it is ambiguous. A refusal is a finding; instructions that only cilium/ebpf makes invalid are added to e.kind.
// For a type without a match libbpf writes 0 as size and ID, and it accepts IDs of types in modules.
func (e *evaluation) ebpfGoUnit() {
	if !e.counts(EbpfGo) || e.unit == nil {
		return
	}
	for _, r := range e.pr.Records {
		if _, refused, _ := e.loader.outcome(r); refused && !e.alone(r) {
			return // by both
		}
	}
	finding := func(r int, reason relo.Reason) Finding {
		f := e.o.records.finding(r, Fails, reason)
		f.Loader, f.Stops = EbpfGo, ProgramStops
		return f
	}
	refuse := func(r int, err error) { e.add(finding(r, core.ReasonOf(EbpfGoRefuses, err))) }
	poison := func(r int, code Code) {
		e.kind = append(e.kind, absence{at: e.o.Sites[r], f: e.unlessLoaded(r, finding(r, relo.Reason{Code: code}))})
	}
	d, err := e.unit(e.o.Funcs[e.pr.Fn].Section, e.o.Funcs[e.pr.Fn].Name)
	switch {
	case err != nil:
		f := Finding{Status: Unknown, Code: AnalysisUnit, Subject: "relocations", Loader: EbpfGo}
		if limit := (*limits.Exceeded)(nil); errors.As(err, &limit) {
			f.Max = limit.Max
		}
		e.add(f)
		return
	case d == nil: // a static function
		for _, r := range e.pr.Records {
			if _, refused, reason := e.loader.outcome(r); refused {
				e.add(finding(r, reason))
			}
		}
		return
	case d.Err != nil:
		refuse(d.Record, d.Err)
		return
	}
	for _, r := range e.pr.Records {
		f, ok := d.Fixup(r)
		result := e.loader[r].Result
		switch {
		case !ok || !result.OK() && len(e.loader[r].HiddenIn()) == 0 && !e.alone(r):
		case f.Err != nil:
			refuse(r, f.Err)
			return
		case !f.Poison || e.added && result == relo.Resolved:
		case result == relo.Absent:
			poison(r, relo.NoCandidate)
		case e.o.records.asksForID(r) && len(e.loader.modules(r)) > 0:
			poison(r, EbpfGoModuleID)
		default:
			poison(r, EbpfGoNoMatch)
		}
	}
}

// alone reports whether libbpf finds a record ambiguous, and cilium/ebpf decides it by itself, with the other records of a program.
func (p *pairing) alone(record int) bool {
	return p.unit != nil && p.counts(EbpfGo) && p.loader[record].Result == relo.Ambiguous
}

// input returns the parts of the kernel that results for the object's code may depend on.
func (p *pairing) input() *input {
	return &input{p.k.features, func(n int) uint64 { return p.loader[n].New }}
}

// missing looks for a kfunc or a typed ksym, once.
func (p *pairing) missing(x *bpfobj.Extern) Finding {
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
func (p *pairing) hasKsym(x *bpfobj.Extern) bool {
	if x.Type == 0 {
		has, known := p.k.listed(x.Name)
		return has || !known
	}
	return p.missing(x).Status != Fails
}

// ksym returns hasKsym as a number. It is unknown for a weak untyped extern if the kernel's symbols are not known and its BTF has
// no function of the name.
func (p *pairing) ksym(x *bpfobj.Extern) interp.Number {
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

// codeKey returns the key of a program's code. It covers e.kind and e.may, too.
func (e *evaluation) codeKey() programKey {
	key := programKey{o: e.o.Code, fn: e.pr.Fn}
	if len(e.kind) > 0 || e.may != nil {
		var b []byte
		if e.may != nil {
			b = fmt.Appendf(b, "%d %v", e.found.number(e.may.f), *e.may)
		}
		for _, a := range e.kind {
			b = e.appendKey(b, a)
		}
		key.kind = e.results.number(b)
	}
	b := make([]byte, 0, 4*len(e.pr.Funcs))
	for _, fn := range e.pr.Funcs {
		b = binary.NativeEndian.AppendUint32(b, e.codeOf(fn).key)
	}
	key.funcs = string(b)
	return key
}

// appendKey appends what identifies an absence.
func (p *pairing) appendKey(b []byte, a absence) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(a.at.Fn)), uint64(a.at.Insn))
	b = strconv.AppendBool(append(b, byte(a.flaw)), a.anyhow)
	return binary.NativeEndian.AppendUint32(b, uint32(p.found.number(a.f)))
}

// function is the keys of a function on a kernel.
type function struct {
	key   uint32 // number of what its code depends on, without what is relevant; 0 before it is made
	calls uint32 // number of what exploring it and its callees depends on; 0 if calls nest too deep
	lacks bool   // it has absences
}

// codeOf returns the keys of a function, which several programs may share.
func (p *pairing) codeOf(fn int) *function {
	if p.functions == nil {
		p.functions = make([]function, len(p.o.Funcs))
	}
	f := &p.functions[fn]
	if f.key != 0 {
		return f
	}
	explored := p.explored(fn)
	all := slices.Concat(explored, []byte{0})
	p.absences(fn, func(a absence) { f.lacks, all = true, p.appendKey(all, a) })
	f.key = p.results.number(all)
	if c := &p.o.callees[fn]; c.shared {
		for _, fn := range c.calls {
			explored = binary.NativeEndian.AppendUint32(explored, p.codeOf(fn).calls)
		}
		f.calls = p.results.number(explored)
	}
	return f
}

// explored returns what exploring a function depends on, without what is relevant.
func (p *pairing) explored(fn int) (b []byte) {
	for _, r := range p.o.recordsOf[fn] {
		b = strconv.AppendBool(b, p.loader[r].Result.OK())
	}
	for i := range p.o.uses[fn] {
		switch x := p.o.extern(p.o.uses[fn][i].in); {
		case x == nil:
		case x.Kind == bpfobj.ExternKconfig:
			b = fmt.Appendf(b, " %v", p.k.kconfig(p.o, x))
		case x.Kind == bpfobj.ExternKsym:
			b = fmt.Appendf(b, " %v", p.ksym(x))
		}
	}
	return b
}
