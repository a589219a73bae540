// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/core"
)

// Scene is an object on a kernel with one loader, in one state of the kernel's modules. Rules are its methods and those of [Evaluation].
// They make findings for this loader alone; merge.go merges the findings of several loaders. A finding that is about the loader has its
// name as well, whichever others are judged.
//
// A scene is for one goroutine at a time. What Input and Value of [Scenes] return is safe for concurrent use meanwhile.
type Scene struct {
	Loading
	loader    Loader
	o         *Object
	k         *Inventory
	decisions Decisions // nil if the object is not for the kernel
	needed    []neededPart
	externs   map[*bpfobj.Extern]Finding // results of missing
}

// Loading is how an object is loaded on a kernel, whichever loader does it.
type Loading struct {
	SetsMap func(name string) bool // reports whether the loader sets up a map
	Tail    func(program int) bool // reports whether only tail calls reach a program; if nil, TailCalled does
	Added   bool                   // the loader adds types to the kernel's
	// Linked decides a program like cilium/ebpf. It is nil if the object is not for the kernel.
	Linked func(section, name string) (*core.LinkedDecision, error)

	WithModules Decisions // with the kernel's modules; nil if the scene has them
	Together    Decisions // with all modules at once; nil if the scene has them, or none defines a type differently
}

// neededPart is a finding on a part of an object, and the name by which code refers to that part.
type neededPart struct {
	name string
	f    Finding
}

// Evaluation is what rules find of a program in a scene.
type Evaluation struct {
	Findings []Finding // without those on the code

	*Scene
	pr    *bpfobj.Program
	tail  bool      // only tail calls reach it: it is loaded, and not attached
	shape *Shape    // the context's shape; nil if it is not known or not read
	hook  *hook     // the attach target; nil if it is not known or the program is not attached by BTF
	given int64     // bytes of a tracepoint's context, 0 if they are not known
	raw   *hook     // arguments of a raw tracepoint or a function with a kprobe at its entry; nil if not known
	kind  []absence // absences by the type or the whole of the program; for those of its functions see Scenes.absences
	may   *returned // the results that it may have, nil for any
}

// absence is an instruction that the verifier refuses if it reaches it.
type absence struct {
	at     bpfobj.Site
	f      Finding
	flaw   interp.Flaw // the verifier refuses it only with this flaw, NoFlaw for always
	anyhow bool        // the verifier refuses it even if it does not reach it
}

// findNeeds judges what the object needs for any of its programs, except what the loader sets up.
func (s *Scene) findNeeds() {
	s.needed = s.definitions()
	var all []Finding
	if s.loader == Aya {
		all = s.ayaRefusal()
	} else {
		s.needed = append(s.needed, s.opening()...)
		all = slices.Concat(s.strong(), s.typedKsyms())
	}
	for _, f := range append(all, s.o.Unopened(s.loader)...) {
		s.needed = append(s.needed, neededPart{f.Subject, f})
	}
}

// ofProgram returns a finding on an object as a finding on one of its programs, and whether it counts there. refers
// says that the program's code refers to the subject: cilium/ebpf needs nothing else.
func (s *Scene) ofProgram(f Finding, refers bool) (Finding, bool) {
	if refers || f.OfObject() || s.loader == Aya {
		return f, true
	}
	f.Loader = Libbpf
	return f, s.loader == Libbpf
}

// evaluate judges program j of the object without its code.
func (s *Scene) evaluate(j int) *Evaluation {
	e := &Evaluation{Scene: s, pr: &s.o.Programs[j], tail: s.tailCalled(j)}
	if !s.forKernel() {
		e.add(s.o.otherMachine())
		return e
	}
	e.attachment()
	e.license()
	e.interfaces()
	e.ownTypes()
	e.variables()
	for _, w := range s.needed {
		if f, ok := s.ofProgram(w.f, s.o.refers[j][w.name]); ok {
			e.add(f)
		}
	}
	e.disagreements()
	e.ebpfGoLinked()
	e.kind = slices.Concat(e.kind, e.accesses(j), e.walks(j), e.calls(j), e.stacks(), e.freshReads(j), e.kfuncCalls(),
		e.reads(j), e.shiftedReads(j), e.bitfields())
	e.may = e.returns(j)
	return e
}

// add adds a finding, unless it counts where the program is attached and it never is.
func (e *Evaluation) add(f Finding) {
	if f.Attach && e.tail {
		return
	}
	e.Findings = append(e.Findings, f)
}

// addAll adds findings that are not OK.
func (e *Evaluation) addAll(all []Finding) {
	for _, f := range all {
		if f.Status != OK {
			e.add(f)
		}
	}
}

func (e *Evaluation) eachUse(f func(*use)) {
	for _, fn := range e.pr.Funcs {
		for i := range e.o.uses[fn] {
			f(&e.o.uses[fn][i])
		}
	}
}

// atRecord calls f if the loader makes the instruction of a record invalid, or refuses the record, whatever the program
// is.
func (s *Scene) atRecord(r int, f func(absence)) {
	poisoned, refused, reason := s.outcome(r)
	if !poisoned && !refused {
		return
	}
	a := absence{at: s.o.Sites[r], f: s.unlessLoaded(r, s.o.records.finding(r, Fails, reason)), anyhow: refused}
	if refused {
		a.f.Stops = s.loader.stops()
	}
	if poisoned && s.onlyLibbpf(r) {
		a.f.Loader = Libbpf
	}
	f(a)
}

// poisonedCall is a helper that no kernel has. Loaders call it where a relocation does not resolve
// (bpf_core_poison_insn in libbpf's relo_core.c), and libraries for BPF programs where control must not get.
const poisonedCall = 0xbad2310

// atUse calls f for each reason why the kernel does not take an instruction of a function, whatever the program is.
func (s *Scene) atUse(fn int, u *use, f func(absence)) {
	found := func(of Finding, anyhow bool) {
		if of.Status != OK {
			of.Source = s.o.Source(u.at)
			f(absence{at: u.at, f: of, anyhow: anyhow})
		}
	}
	switch {
	case u.in.IsHelper() && u.in.Imm == poisonedCall:
		found(Finding{Status: Fails, Code: HelperPoisoned, Subject: fmt.Sprintf("in %s", s.o.Funcs[fn].Name)}, false)
	case u.in.IsHelper():
		if s.k.lacksHelper(u.in.Imm) {
			found(Finding{
				Status: Fails, Code: HelperMissing, Subject: facts.HelperName(u.in.Imm),
				Args: Args{Decided: ByWitness, Witness: facts.HelperEnumerator(u.in.Imm)},
			}, false)
		}
	case u.in.Op == bpfobj.OpCall:
		found(s.called(s.o.extern(u.in)), false)
	case u.newer != nil && !s.replaces(u.in):
		found(s.instruction(u.newer))
	}
	for _, fact := range u.facts {
		if u.in.Op == bpfobj.OpCall {
			found(s.judgeGlobal(fact), !s.k.has(facts.VerifierGlobalFunctionsIfCalled))
		} else {
			found(s.k.judge(fact, FeatureMissing), true)
		}
	}
}

// called judges the call of a function of the object, if x is nil, or of the kernel. Where a strong kfunc is absent,
// loaders refuse the object before the verifier sees it: see strong.
func (s *Scene) called(x *bpfobj.Extern) (f Finding) {
	switch {
	case x == nil:
		return s.k.judge(facts.FunctionCalls, FeatureMissing)
	case x.Weak && !s.hasKsym(x):
		f = s.missing(x)
		f.Subject = x.Name
	case x.Kind == bpfobj.ExternKsym:
		f = s.k.judge(facts.KfuncCalls, FeatureMissing)
		if on := s.k.judge(facts.KfuncCallsOn(s.k.Arch), FeatureMissing); on.Status > f.Status {
			f = on
		}
		f = f.named(x.Name)
	}
	return f
}

// replaces reports whether the loader puts an invalid instruction in the place of one.
func (s *Scene) replaces(in *bpfobj.Insn) bool {
	if in.Record == 0 {
		return false
	}
	poisoned, _, _ := s.outcome(int(in.Record - 1))
	return poisoned
}

// forKernel reports whether the object is for the kernel.
func (s *Scene) forKernel() bool { return s.decisions != nil }

// tailCalled reports whether only tail calls reach program j.
func (s *Scene) tailCalled(j int) bool {
	if s.Tail == nil {
		return s.o.TailCalled(j)
	}
	return s.Tail(j)
}

// unlessLoaded returns a finding on a record, or that it fails without a module if it resolves only with modules.
func (s *Scene) unlessLoaded(record int, f Finding) Finding {
	if s.WithModules == nil {
		return f
	}
	names := NamesOf(s.enough(record))
	if names == "" {
		return f
	}
	// Only cilium/ebpf finds the type in the module.
	if len(s.WithModules[record].HiddenIn()) > 0 {
		if f.Loader = s.loader; s.loader != EbpfGo {
			return f
		}
	}
	f.Code, f.Args = ModuleNeeded, Args{Names: names}
	return f
}

// missing looks for a kfunc or a typed ksym, once.
func (s *Scene) missing(x *bpfobj.Extern) Finding {
	l, ok := s.externs[x]
	if !ok {
		l = s.k.missing(s.o, x)
		if s.externs == nil {
			s.externs = make(map[*bpfobj.Extern]Finding)
		}
		s.externs[x] = l
	}
	return l
}

// hasKsym reports whether the kernel has an extern or may have it. An untyped extern
// may be any symbol, and BTF does not list symbols.
func (s *Scene) hasKsym(x *bpfobj.Extern) bool {
	if x.Type == 0 {
		has, known := s.k.listed(x.Name)
		return has || !known
	}
	f := s.missing(x)
	return f.Status != Fails && f.Code != KfuncModule && f.Code != KsymModule
}

// ksym returns hasKsym as a number. It is unknown for a weak untyped extern if the kernel's symbols are not known and
// its BTF has no function of the name.
func (s *Scene) ksym(x *bpfobj.Extern) interp.Number {
	if !s.hasKsym(x) {
		return interp.Number{}
	}
	if _, known := s.k.listed(x.Name); x.Type == 0 && x.Weak && !known {
		if _, ok := s.k.find(btf.Essential(x.Name), btf.KindFunc); !ok {
			return interp.Number{Unknown: ^uint64(0)}
		}
	}
	return interp.Number{V: 1}
}
