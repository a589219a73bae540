// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// strong judges what the loader looks for before it loads any program.
func (p *pairing) strong() (l []Finding) {
	add := func(f Finding) {
		f.Reason += libbpfRefuses
		l = append(l, f)
	}
	for i := range p.o.Externs {
		x := &p.o.Externs[i]
		switch {
		case x.Kind == bpfprog.ExternUndeclared:
			l = append(l, Finding{Status: Unknown, Topic: TopicKsym, Subject: x.Name, Reason: "nothing says what it is"})
		case x.Kind == bpfprog.ExternKconfig:
			if status, why := p.k.settingFinding(p.o, x); status != OK {
				add(Finding{Status: status, Topic: TopicKconfig, Subject: x.Name, Reason: why})
			}
			if why := p.o.ebpfGoKconfig(x); why != "" {
				l = append(l, Finding{Status: Fails, Topic: TopicKconfig, Subject: x.Name, Reason: why, Loader: EbpfGo})
			}
		case x.Weak:
		case x.Type == 0:
			if status, why := p.k.unlisted(x.Name); status != OK {
				add(Finding{Status: status, Topic: TopicKsym, Subject: x.Name, Reason: why})
			}
		default:
			switch n := p.missing(x); {
			case n.why != "":
				add(Finding{Status: Fails, Topic: n.topic, Subject: x.Name, Reason: n.why})
			case n.needs != "":
				add(Finding{Status: MayFail, Topic: n.topic, Subject: x.Name, Reason: n.needs})
			}
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
	"init_net":     {settingSymbols, settingPrefix + "NET"},
	"bpf_map_fops": {settingSymbols, settingPrefix + "BPF_SYSCALL"}, "bpf_prog_fops": {settingSymbols, settingPrefix + "BPF_SYSCALL"},
	"init_task": {settingSymbols}, "init_uts_ns": {settingSymbols}, "init_pid_ns": {settingSymbols}, "init_user_ns": {settingSymbols},
	"jiffies": {settingSymbols}, "jiffies_64": {settingSymbols},
}

// listed reports whether a name is among the kernel's symbols, and whether that is known.
func (k *inventory) listed(name string) (has, known bool) {
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
func (k *inventory) unlisted(name string) (Status, string) {
	switch has, known := k.listed(name); {
	case has:
		return OK, ""
	case !known:
		return MayFail, "must be in /proc/kallsyms, which BTF does not list"
	case k.knowsSymbols():
		return k.notSymbol(name)
	}
	return Fails, "the kernel was built without " + strings.Join(everyKernels[name], " or ")
}

// variables judges the typed ksyms to which the program refers. Verifiers look for their addresses in the list of
// symbols, wherever they are used (check_pseudo_btf_id in kernel/bpf/verifier.c).
func (e *evaluation) variables() {
	if _, all := e.k.known.config[settingSymbols]; all || e.k.known.config == nil {
		return
	}
	seen := make(map[string]bool)
	e.eachUse(func(u *use) {
		x := e.o.extern(u.in)
		if x == nil || x.Kind != bpfprog.ExternKsym || x.Type == 0 || !e.hasKsym(x) || seen[x.Name] {
			return
		}
		if !e.o.isVar(x.Type) {
			return
		}
		seen[x.Name] = true
		e.add(Finding{Status: Fails, Topic: TopicKsym, Subject: x.Name, Reason: "the kernel was built without " + settingSymbols, Source: e.o.Source(u.at)})
	})
}

// missing looks for a kfunc or a typed ksym, and says why it cannot be used.
func (k *inventory) missing(o *Object, x *bpfprog.Extern) lack {
	local := o.BTF.Type(x.Type)
	t, word := TopicKsym, "variable"
	if local.Kind() == btfenc.KindFunc {
		t, word = TopicKfunc, "function"
	}
	y, ok := k.find(rawbtf.Essential(x.Name), local.Kind())
	if !ok {
		if k.funcs == 0 && t == TopicKfunc {
			return lack{topic: t, why: "the kernel's BTF has no functions at all"}
		}
		return lack{topic: t, why: fmt.Sprintf("the kernel's BTF has no %s of this name", word)}
	}
	theirs := y.typ()
	if !engine.Compatible(o.BTF, local.Ref(), y.view, theirs.Ref()) {
		return lack{topic: t, why: "the kernel has it as " + prototype(y.view, theirs.Ref())}
	}
	return lack{topic: t, needs: y.needs()}
}
