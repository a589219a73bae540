// SPDX-License-Identifier: Apache-2.0

package check

import (
	_ "embed"
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

func readKfuncs(text string) (*kfuncRules, error) {
	r := &kfuncRules{of: make(map[string]*kfuncRule), types: make(map[string]bool), sleeps: make(map[string]permission)}
	sets := make(map[string]string)
	text = strings.ReplaceAll(text, "\n  ", " ") // lines that go on
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		names, words, ok := strings.Cut(line, ":")
		set, types, isSet := strings.Cut(line, " = ")
		switch {
		case strings.TrimSpace(line) == "":
		case isSet:
			sets[set] = types
		case !ok:
			return nil, fmt.Errorf("%q: no colon", line)
		case strings.HasPrefix(names, "sleeps"):
			p, err := between(strings.TrimPrefix(names, "sleeps"))
			if err != nil {
				return nil, err
			}
			for _, name := range strings.Fields(words) {
				r.sleeps[name] = p
			}
		default:
			if err := r.rule(strings.Fields(names), words, sets); err != nil {
				return nil, fmt.Errorf("%s: %w", names, err)
			}
		}
	}
	return r, nil
}

// between reads @AFTER..BY, or nothing.
func between(text string) (p permission, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return p, nil
	}
	var major, minor, byMajor, byMinor uint64
	if _, err := fmt.Sscanf(text, "@%d.%d..%d.%d", &major, &minor, &byMajor, &byMinor); err != nil {
		return p, fmt.Errorf("%q: want @AFTER..BY", text)
	}
	return permission{linux(major, minor), linux(byMajor, byMinor)}, nil
}

// rule reads a line.
func (r *kfuncRules) rule(names []string, words string, sets map[string]string) error {
	rule := &kfuncRule{types: make(map[string]permission), unsure: make(map[string]bool)}
	var types []string
	for _, w := range strings.Fields(words) {
		if set, is := strings.CutPrefix(w, "+"); is {
			if sets[set] == "" {
				return fmt.Errorf("%s is no set", set)
			}
			types = append(types, strings.Fields(sets[set])...)
			continue
		}
		types = append(types, w)
	}
	for _, w := range types {
		name, _, _ := strings.Cut(w, "@")
		p, err := between(w[len(name):])
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
	for _, name := range names {
		if since, is := strings.CutPrefix(name, "@"); is {
			var major, minor uint64
			if _, err := fmt.Sscanf(since, "%d.%d", &major, &minor); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rule.asked = linux(major, minor)
		} else if r.of[name] != nil {
			return fmt.Errorf("%s: twice", name)
		} else {
			r.of[name] = rule
		}
	}
	if rule.asked == 0 {
		return fmt.Errorf("no release")
	}
	return nil
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
	switch {
	case !may && k.has(linux(7, 3)) == present:
		return forbidden(MayFail, Args{Name: of, Until: linux(7, 2)})
	case !may && k.has(rule.asked) == present:
		return forbidden(Fails, Args{Name: of})
	case sleeps && !maySleep(s) && (slept.by == 0 || k.has(slept.after+linux(0, 1)) != present):
		return Finding{Status: Fails, Code: KfuncSleeps, Args: Args{Name: s.Prefix}}
	case sleeps && !maySleep(s) && k.has(slept.by) != present:
		return Finding{Status: MayFail, Code: KfuncSleeps, Args: Args{Name: s.Prefix, Since: slept.after, Until: slept.by}}
	case p.by != 0 && k.has(p.by) == present:
		return Finding{}
	case p.by != 0 && k.has(p.after+linux(0, 1)) == present:
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
