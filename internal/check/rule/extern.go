// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/core"
)

// strong judges what the loader looks for before it loads any program.
func (s *Scene) strong() (l []Finding) {
	// A finding of status OK is none.
	add := func(f Finding, x *bpfobj.Extern) {
		if f.Status != OK {
			f.Subject, f.Stops = x.Name, s.loader.stopsWithout()
			l = append(l, f)
		}
	}
	for i := range s.o.Externs {
		x := &s.o.Externs[i]
		switch {
		case x.Kind == bpfobj.ExternUndeclared && s.loader != EbpfGo: // see Unopened
		case x.Kind == bpfobj.ExternUndeclared:
			l = append(l, Finding{Status: Unknown, Code: KsymUndeclared, Subject: x.Name, Loader: EbpfGo})
		case x.Kind == bpfobj.ExternKconfig:
			add(s.k.settingFinding(s.o, x), x)
			if f := s.o.ebpfGoKconfig(x); f.Status != OK && s.loader == EbpfGo {
				l = append(l, f)
			}
		case x.Weak:
		case x.Type == 0:
			add(s.k.unlisted(x.Name), x)
		default:
			add(s.missing(x), x)
		}
	}
	return l
}

// settingSymbols is the setting of kernels whose list of symbols has variables.
const settingSymbols = settingPrefix + "KALLSYMS_ALL"

// everyKernels are variables that every kernel has with these settings, whatever its release: Linux 5.10, 6.1, 6.12 and 7.2 have each.
// They are in net/core/net_namespace.c, kernel/bpf/syscall.c, init/init_task.c, init/version.c, kernel/time, kernel/pid.c
// and kernel/user.c.
var everyKernels = map[string][]string{
	"init_net":      {settingSymbols, settingPrefix + "NET"},
	"bpf_map_fops":  {settingSymbols, settingPrefix + "BPF_SYSCALL"},
	"bpf_prog_fops": {settingSymbols, settingPrefix + "BPF_SYSCALL"},
	"init_task":     {settingSymbols}, "init_uts_ns": {settingSymbols},
	"init_pid_ns": {settingSymbols}, "init_user_ns": {settingSymbols},
	"jiffies": {settingSymbols}, "jiffies_64": {settingSymbols},
}

// listed reports whether a name is among the kernel's symbols, and whether that is known.
func (k *Inventory) listed(name string) (has, known bool) {
	if k.knowsSymbols() {
		return k.known.symbols[name].any(), true
	}
	settings := everyKernels[name]
	if settings == nil || k.known.config == nil {
		return false, false
	}
	return !slices.ContainsFunc(settings, func(s string) bool { return k.known.config[s] == "" }), true
}

// unlisted judges a symbol that a loader looks for in /proc/kallsyms.
func (k *Inventory) unlisted(name string) Finding {
	switch has, known := k.listed(name); {
	case has:
		return Finding{}
	case !known:
		return Finding{Status: MayFail, Code: KsymUnlisted}
	case k.knowsSymbols():
		return k.notSymbol(name, ksymSymbol)
	}
	return Finding{Status: Fails, Code: KsymUnset, Args: Args{Name: strings.Join(everyKernels[name], " or ")}}
}

// variables judges the typed ksyms to which the program refers. Verifiers look for their addresses in the list of
// symbols, wherever they are used (check_pseudo_btf_id in kernel/bpf/verifier.c).
func (e *Evaluation) variables() {
	if _, all := e.k.known.config[settingSymbols]; all || e.k.known.config == nil {
		return
	}
	seen := make(map[string]bool)
	e.eachUse(func(u *use) {
		x := e.o.extern(u.in)
		if x == nil || x.Kind != bpfobj.ExternKsym || x.Type == 0 || !e.hasKsym(x) || seen[x.Name] {
			return
		}
		if !e.o.isVar(x.Type) {
			return
		}
		seen[x.Name] = true
		e.add(Finding{
			Status: Fails, Code: KsymUnset, Subject: x.Name,
			Args: Args{Name: settingSymbols}, Source: e.o.Source(u.at),
		})
	})
}

// missing looks for a kfunc or a typed ksym. It fails if that cannot be used, and may fail if it needs a module.
func (k *Inventory) missing(o *Object, x *bpfobj.Extern) Finding {
	local := o.BTF.Type(x.Type)
	missing, unequal, fact, maybe := KsymMissing, KsymType, facts.VariablesInModules, KsymModule
	if local.Kind() == btf.KindFunc {
		missing, unequal, fact, maybe = KfuncMissing, KfuncPrototype, facts.KfuncsInModules, KfuncModule
		if k.funcs == 0 {
			missing = KfuncNoBTF
		}
	}
	y, ok := k.find(btf.Essential(x.Name), local.Kind())
	if !ok {
		f := Finding{Status: Fails, Code: missing}
		if facts.KfuncCallers(btf.Essential(x.Name)) != nil || missing == KfuncNoBTF {
			return f
		}
		return k.elsewhere(f, fact, maybe)
	}
	if theirs := y.typ(); !core.Compatible(o.BTF, local.Ref(), y.view, theirs.Ref()) {
		return Finding{Status: Fails, Code: unequal, Args: Args{Name: prototype(y.view, theirs.Ref())}}
	}
	if local.Kind() == btf.KindFunc && k.notKfunc(y) {
		return Finding{Status: Fails, Code: KfuncUntagged, Args: Args{Decided: ByWitness, Witness: kfuncTag}}
	}
	if y.module != "" {
		return Finding{Status: MayFail, Code: ModuleNeeded, Args: Args{Names: Names(y.module)}}
	}
	return Finding{}
}
