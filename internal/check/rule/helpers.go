// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// maySleep reports whether programs of a section are loaded as such that may sleep.
func maySleep(s *bpfobj.Section) bool {
	return facts.ProgramType(s.ProgType).Sleeps || strings.HasSuffix(s.Prefix, ".s")
}

// settingRealTime is that of kernels with PREEMPT_RT.
const settingRealTime = settingPrefix + "PREEMPT_RT"

// realTime judges helpers for timers, which newer kernels with PREEMPT_RT refuse (process_timer_func in kernel/bpf/verifier.c).
func (k *Inventory) realTime(id int64) Finding {
	if id < int64(asm.FnTimerInit) || id > int64(asm.FnTimerCancel) || k.known.config[settingRealTime] == "" {
		return Finding{}
	}
	return k.judge(facts.RealTimeTimers, FeatureMissing)
}

// unset judges a helper that only kernels with a setting have, by the configuration, or by the function that implements it.
func (k *Inventory) unset(id int64) Finding {
	setting := facts.HelperNumbered(id).Setting
	_, set := k.known.config[setting]
	_, compiled := k.find(facts.HelperName(id), btf.KindFunc)
	switch {
	case setting == "", set, compiled, k.known.symbols[facts.HelperName(id)].text > 0:
		return Finding{}
	case k.known.config == nil && !k.knowsSymbols():
		return Finding{Status: MayFail, Code: HelperSetting, Args: Args{Name: setting}}
	}
	return Finding{Status: Fails, Code: HelperUnset, Args: Args{Name: setting}}
}

// forbidden judges a call of a helper that the kernel has by the programs of a
// section.
func (k *Inventory) forbidden(s *bpfobj.Section, id int64) Finding {
	if s == nil || id < 1 || id > facts.LastHelper || k.lacksHelper(id) {
		return Finding{}
	}
	name, h := facts.CallersName(s.ProgType, s.Type), facts.HelperNumbered(id)
	if name == "" {
		return Finding{}
	}
	p, ok := h.Callable(name)
	switch {
	case !ok && k.atLeast(facts.HelpersRead().Next()):
		return Finding{Status: MayFail, Code: HelperForbidden, Args: Args{Name: name, Until: facts.HelpersRead()}}
	case !ok, h.Refused(name):
		return Finding{Status: Fails, Code: HelperForbidden, Args: Args{Name: name}}
	case h.Sleeps && !maySleep(s):
		return Finding{Status: Fails, Code: HelperSleeps, Args: Args{Name: s.Prefix}}
	}
	if f := k.realTime(id); f.Status != OK {
		return f
	}
	if f := k.unset(id); f.Status != OK {
		return f
	}
	f := k.permits(p, HelperForbidden)
	f.Name = name
	// Loaders call another helper where the kernel lacks this one.
	if f.Status == MayFail && h.Instead != 0 && len(k.helpers) > 0 && !k.helpers[id] {
		return k.forbidden(s, h.Instead)
	}
	return f
}

// helperSet is a set of helpers, by number.
type helperSet [facts.LastHelper/64 + 1]uint64

func (s *helperSet) add(id int64) {
	if id >= 0 && id <= facts.LastHelper {
		s[id/64] |= 1 << (id % 64)
	}
}

func (s *helperSet) has(id int64) bool {
	return id >= 0 && id <= facts.LastHelper && s[id/64]&(1<<(id%64)) != 0
}

// meets reports whether the sets have something in common.
func (s *helperSet) meets(o *helperSet) bool {
	for i := range s {
		if s[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// helpersOf returns the helpers that a program calls.
func (o *Object) helpersOf(pr *bpfobj.Program) (s helperSet) {
	for _, fn := range pr.Funcs {
		for i := range o.uses[fn] {
			if in := o.uses[fn][i].in; in.IsHelper() {
				s.add(in.Imm)
			}
		}
	}
	return s
}

// forbids returns the helpers that programs of a section may not call, or perhaps
// not.
func (k *Inventory) forbids(s *bpfobj.Section) *helperSet {
	set, ok := k.refuses[s]
	if !ok {
		set = new(helperSet)
		for id := int64(1); id <= facts.LastHelper; id++ {
			if k.forbidden(s, id).Status != OK {
				set.add(id)
			}
		}
		if k.refuses == nil {
			k.refuses = make(map[*bpfobj.Section]*helperSet)
		}
		k.refuses[s] = set
	}
	return set
}

// iteratedHelpers is the function of the kernel that lets programs which iterate over something call more
// helpers than others do: get_func_proto of its struct bpf_iter_reg.
func iteratedHelpers(over string) string { return "bpf_iter_" + over + "_get_func_proto" }

// iterated reports whether the program may call a helper because of what it iterates over: sockets of TCP
// since "bpf: tcp: Support bpf_(get|set)sockopt in bpf tcp iter" (Linux 5.15), of Unix since
// "bpf: Support bpf_(get|set)sockopt() in bpf unix iter". None of these functions allows anything else.
func (e *Evaluation) iterated(helper int64) bool {
	s := e.pr.Attach
	if s.Kind != bpfobj.AttachIter || !facts.HelperNumbered(helper).Iterators {
		return false
	}
	_, ok := e.k.find(iteratedHelpers(s.Target(e.pr.Section)), btf.KindFunc)
	return ok
}

// isGPL reports whether the kernel takes the object's license for compatible with the GPL (license_is_gpl_compatible in
// include/linux/license.h).
func (o *Object) isGPL() bool {
	return slices.Contains([]string{
		"GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL",
	}, o.License)
}

// licensed judges a call of a helper by the object's license.
func (e *Evaluation) licensed(id int64) Finding {
	if e.o.isGPL() || e.pr.Attach == nil {
		return Finding{}
	}
	name := facts.HelperName(id)
	forAll, forType := facts.License(name, ""), facts.License(name, e.pr.Attach.ProgType)
	f := Finding{Status: Fails, Code: HelperLicense}
	if forType != facts.Every || !facts.HelperNumbered(id).GPL {
		f = e.k.judge(cmp.Or(forType, forAll), HelperLicense)
	}
	f.Name = e.o.License
	return f
}

// license judges the object's license by the type of the program (bpf_lsm_verify_prog in kernel/bpf/bpf_lsm.c and
// check_struct_ops_btf_id in kernel/bpf/verifier.c).
func (e *Evaluation) license() {
	s := e.pr.Attach
	if s == nil || e.o.isGPL() {
		return
	}
	when := facts.ProgramType(s.ProgType).License
	if when == nil {
		return
	}
	f := Finding{Code: ProgTypeLicense, Subject: s.ProgType, Args: Args{Name: e.o.License}}
	switch e.k.facts.During(when).Presence {
	case facts.Yes:
		f.Status = Fails
	case facts.Perhaps:
		f.Status, f.Doubt, f.Decided = MayFail, NotShown, ByRelease
	default:
		return
	}
	e.add(f)
}

// calls judges the helpers that program number n of the object calls by whether
// programs of its type may.
func (e *Evaluation) calls(n int) (l []absence) {
	forbids := e.k.forbids(e.pr.Attach)
	tail := Finding{}
	if e.o.called[n].has(int64(asm.FnTailCall)) && len(e.pr.Funcs) > 1 {
		tail = e.k.judge(facts.TailCalls(e.k.Arch), FeatureMissing)
	}
	l = append(e.withMaps(n), e.sizes()...)
	called := &e.o.called[n]
	judged := called.meets(forbids) || called.has(int64(asm.FnKptrXchg)) || called.has(int64(asm.FnDPath))
	if tail.Status == OK && e.o.isGPL() && !judged {
		return l
	}
	e.eachUse(func(u *use) {
		id, f := u.in.Imm, Finding{}
		switch {
		case !u.in.IsHelper():
		case forbids.has(id) && !e.iterated(id):
			f = e.k.forbidden(e.pr.Attach, id)
			f.Subject = facts.HelperName(id)
		case id == int64(asm.FnTailCall):
			f = tail
		case id == int64(asm.FnKptrXchg) && !e.k.lacksHelper(id):
			f = e.exchanges(e.o.refers[n])
			f.Subject = facts.HelperName(id)
		case id == int64(asm.FnDPath) && !e.k.lacksHelper(id) && e.path().Status != OK:
			f = e.path()
		case !e.k.lacksHelper(id):
			f = e.licensed(id)
			f.Subject = facts.HelperName(id)
		}
		if f.Status != OK {
			f.Source = e.o.Source(u.at)
			l = append(l, absence{at: u.at, f: f})
		}
	})
	return l
}

// path judges a call of bpf_d_path by the attach target (bpf_d_path_allowed in kernel/trace/bpf_trace.c). Hooks of LSM allow it if programs may sleep
// there. Functions of the kernel that allow it are not known here.
func (e *Evaluation) path() Finding {
	switch s := e.pr.Attach; {
	case s.Kind == bpfobj.AttachIter:
		return e.k.judge(facts.DPathInIterators, FeatureMissing)
	case s.ProgType != "LSM":
		return Finding{}
	}
	f := e.k.judge(facts.DPathInLSM, FeatureMissing)
	if f.Status != OK || e.hook == nil {
		return f
	}
	h := facts.HookNamed(e.hook.lsm())
	switch {
	case h.Sleepable:
		f = e.k.permits(h.Sleeps, HelperForbidden)
	case e.k.atLeast(facts.HooksRead().Next()):
		f = Finding{Status: MayFail, Code: HelperForbidden, Args: Args{Until: facts.HooksRead()}}
	default:
		f = Finding{Status: Fails, Code: HelperForbidden}
	}
	f.Subject, f.Name = "bpf_d_path", e.pr.Attach.ProgType
	return f
}
