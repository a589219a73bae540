package check

import (
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// strong judges what the loader looks for before it loads the program.
func (e *evaluation) strong() {
	seen := make(map[*bpfprog.Extern]bool)
	e.eachUse(func(u *use) {
		x := e.o.extern(u.in)
		if x == nil || seen[x] {
			return
		}
		seen[x] = true
		switch {
		case x.Kind == bpfprog.ExternUndeclared:
			e.add(Finding{Status: Unknown, Topic: TopicKsym, Subject: x.Name, Reason: "nothing says what it is"})
		case x.Weak:
		case x.Kind == bpfprog.ExternKconfig:
			if strings.HasPrefix(x.Name, "CONFIG_") {
				e.add(Finding{Status: MayFail, Topic: TopicKconfig, Subject: x.Name, Reason: "must be set in the kernel's configuration, which BTF does not tell"})
			}
		case x.Type == 0:
			e.add(Finding{Status: MayFail, Topic: TopicKsym, Subject: x.Name, Reason: "must be in /proc/kallsyms, which BTF does not list"})
		default:
			if l := e.missing(x); l.why != "" {
				e.add(Finding{Status: Fails, Topic: l.topic, Subject: x.Name, Reason: l.why + "; loaders refuse the whole object"})
			}
		}
	})
}

// missing looks for a kfunc or a typed ksym, and says why it cannot be used.
func (k *inventory) missing(o *Object, x *bpfprog.Extern) (t Topic, why string) {
	local := o.BTF.Type(x.Type)
	t, word := TopicKsym, "variable"
	if local.Kind() == btfenc.KindFunc {
		t, word = TopicKfunc, "function"
	}
	y, ok := k.find(rawbtf.Essential(x.Name), local.Kind())
	if !ok {
		if k.funcs == 0 && t == TopicKfunc {
			return t, "the kernel's BTF has no functions at all"
		}
		return t, fmt.Sprintf("the kernel's BTF has no %s of this name", word)
	}
	theirs := y.typ()
	if !engine.Compatible(o.BTF, local.Ref(), y.view, theirs.Ref()) {
		return t, "the kernel has it as " + prototype(y.view, theirs.Ref())
	}
	return t, ""
}
