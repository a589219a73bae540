// SPDX-License-Identifier: Apache-2.0

package check

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
)

// kfuncText says which kfuncs the programs of a type may call, and how that was found.
//
//go:embed kfuncs.txt
var kfuncText string

// kfuncRule is who may call a kfunc.
type kfuncRule struct {
	asked  release // the first release that was asked
	types  map[string]permission
	unsure map[string]bool // types for which that is not known
}

// kfuncRules are the rules by the names of kfuncs.
type kfuncRules struct {
	of     map[string]*kfuncRule
	types  map[string]bool       // that were asked
	sleeps map[string]permission // kfuncs that only programs may call that may sleep: all may that others may since then, if it is not 0
}

// kfuncTable is kfuncText. A test reads it, so that there is no mistake in it.
var kfuncTable = sync.OnceValue(func() *kfuncRules {
	r, err := readKfuncs(kfuncText)
	if err != nil {
		panic(err)
	}
	return r
})

// readKfuncs reads lines "KFUNCS @ASKED: TYPES", in which a type may be followed by @AFTER..BY or ?, "sleeps: KFUNCS" and
// "sleeps @AFTER..BY: KFUNCS", and "set NAME: TYPES".
func readKfuncs(text string) (*kfuncRules, error) {
	r := &kfuncRules{of: make(map[string]*kfuncRule), types: make(map[string]bool), sleeps: make(map[string]permission)}
	return r, readTable(text, func(names, words []string) error {
		last := names[len(names)-1]
		asked, is := strings.CutPrefix(last, "@")
		switch {
		case names[0] == "set":
			return nil
		case names[0] == "sleeps" && (is || len(names) == 1):
			_, p, err := parsePermission(last)
			for _, name := range words {
				r.sleeps[name] = p
			}
			return err
		case !is:
			return errors.New("no release")
		}
		rule := &kfuncRule{types: make(map[string]permission), unsure: make(map[string]bool)}
		var major, minor uint64
		if _, err := fmt.Sscanf(asked, "%d.%d", &major, &minor); err != nil {
			return err
		}
		rule.asked = linux(major, minor)
		for _, w := range words {
			name, p, err := parsePermission(w)
			if err != nil {
				return err
			}
			name, unsure := strings.CutSuffix(name, "?")
			if r.types[name] = true; unsure {
				rule.unsure[name] = true
			} else {
				rule.types[name] = p
			}
		}
		for _, name := range names[:len(names)-1] {
			if r.of[name] != nil {
				return errors.New("twice")
			}
			r.of[name] = rule
		}
		return nil
	})
}

// kfuncForbidden judges a call of a kfunc that the kernel has by the programs of a section.
func (k *inventory) kfuncForbidden(s *bpfobj.Section, name string) Finding {
	t := kfuncTable()
	forbidden := func(s Status, a Args) Finding { return Finding{Status: s, Code: KfuncForbidden, Args: a} }
	rule, of := t.of[name], s.ProgType
	if rule == nil || !t.types[of] || rule.unsure[of] {
		return Finding{Status: MayFail, Code: KfuncUnknown, Args: Args{Name: of}}
	}
	p, may := rule.types[s.ProgType]
	slept, sleeps := t.sleeps[name]
	if name == "bpf_iter_css_task_new" && (of == "LSM" || s.Kind == bpfobj.AttachIter) { // check_css_task_iter_allowlist in verifier.c
		sleeps = false
	}
	switch {
	case !may && k.has(kfuncsRead.next()) == present:
		return forbidden(MayFail, Args{Name: of, Until: kfuncsRead})
	case !may && k.has(rule.asked) == present:
		return forbidden(Fails, Args{Name: of})
	case sleeps && !maySleep(s) && (slept.by == 0 || k.has(slept.after.next()) != present):
		return Finding{Status: Fails, Code: KfuncSleeps, Args: Args{Name: s.Prefix}}
	case sleeps && !maySleep(s) && k.has(slept.by) != present:
		return Finding{Status: MayFail, Code: KfuncSleeps, Args: Args{Name: s.Prefix, Since: slept.after, Until: slept.by}}
	case p.by != 0 && k.has(p.by) == present:
		return Finding{}
	case p.by != 0 && k.has(p.after.next()) == present:
		return forbidden(MayFail, Args{Name: of, Since: p.after, Until: p.by})
	case p.by != 0 && k.has(rule.asked) == present:
		return forbidden(Fails, Args{Name: of, Until: p.after})
	case k.has(rule.asked) == present:
		return Finding{}
	}
	return Finding{Status: MayFail, Code: KfuncUnknown, Args: Args{From: rule.asked}}
}

// calledKfunc returns the kfunc that is called, nil where none is, or the kernel does not have it.
func (e *evaluation) calledKfunc(u *use) *bpfobj.Extern {
	x := e.o.extern(u.in)
	if x == nil || x.Type == 0 || u.in.Op != bpfobj.OpCall || !e.hasKsym(x) {
		return nil
	}
	if v := e.o.BTF.Type(x.Type); v.Kind() != btf.KindFunc {
		return nil
	}
	return x
}

// kfuncCalls judges the kfuncs that the program calls, and that the kernel has, by whether programs of
// its type may.
func (e *evaluation) kfuncCalls() (l []absence) {
	s := e.pr.Attach
	if s == nil || s.Kind == bpfobj.AttachOps || s.Kind == bpfobj.AttachExt {
		return nil // what they are part of decides
	}
	e.eachUse(func(u *use) {
		x := e.calledKfunc(u)
		if x == nil {
			return
		}
		if f := e.k.kfuncForbidden(s, btf.Essential(x.Name)); f.Status != OK {
			f.Subject, f.Source = x.Name, e.o.Source(u.at)
			l = append(l, absence{at: u.at, f: f})
		}
	})
	return l
}
