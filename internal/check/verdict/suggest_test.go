// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// suggested judges an object whose programs are written down, "section name verdicts" each, with a letter per kernel: · works, X lacks the target,
// a may lack it, l leaves it to the loader, f lacks a field, m has a map without an inner map, n two of these, T lacks the type of
// programs and the target.
func suggested(t *testing.T, p Policy, programs string) (*Report, *ObjectRow) {
	t.Helper()
	o := rule.NewObject("dir/tool.o", new(bpfobj.Code), nil)
	rep := new(Report)
	for _, v := range []string{"5.10.0", "6.1.0", "6.12.0", "7.0.0"} {
		key := kernel.Key{ID: "debian", VersionID: "1", Arch: "x86_64", Release: v}
		rep.Kernels = append(rep.Kernels, NewColumn(key.String(), key, "", nil))
	}
	findings := map[rune]rule.Finding{
		'X': {Status: rule.Fails, Code: rule.AttachTargetMissing}, 'a': {Status: rule.MayFail, Attach: true, Code: rule.AttachTargetUnlisted},
		'l': {Status: rule.Unknown, Code: rule.AttachTargetLoader}, 'f': {Status: rule.Fails, Code: relo.FieldMissing},
		'T': {Status: rule.Fails, Code: rule.ProgTypeMissing},
		'm': {Status: rule.MayFail, Code: rule.MapInner, Subject: "inner"}, 'n': {Status: rule.MayFail, Code: rule.MapInner, Subject: "other"},
	}
	for line := range strings.SplitSeq(programs, ", ") {
		f := strings.Fields(line)
		o.Programs = append(o.Programs, bpfobj.Program{Fn: len(o.Funcs), Section: f[0], Attach: bpfobj.SectionOf(f[0]), AutoLoad: true})
		o.Funcs = append(o.Funcs, bpfobj.Function{Name: f[1]})
		p := ProgramRow{Object: o.Name(), Name: f[1]}
		for k, c := range []rune(f[2]) {
			if also, ok := map[rune]rune{'T': 'X', 'n': 'm'}[c]; ok {
				p.Findings = append(p.Findings, KernelFinding{findings[also], []int{k}})
			}
			if c != '·' {
				p.Findings = append(p.Findings, KernelFinding{findings[c], []int{k}})
			}
		}
		p.Sum(len(rep.Kernels))
		rep.Programs = append(rep.Programs, p)
	}
	setup := Setup{Objects: []*rule.Object{o}, Loaders: rule.Loaders(), Policy: p}
	if err := setup.Judge(t.Context(), rep, func(int, int) []rule.Finding { return nil }); err != nil {
		t.Fatal(err)
	}
	return rep, &rep.Objects[0]
}

// TestSuggest has objects with assumptions about their loaders, and the suggestions for them. It counts the kernels on which they
// work without and with the suggestion.
func TestSuggest(t *testing.T) {
	for _, tt := range []struct {
		name, programs, rules, options string
		works, with                    int
	}{
		{"page and folio", "fentry/f_page a ··XX, fentry/f_folio b XX··", "one_of a | b !", "", 4, 4},
		{"entry and exit", "fentry/f_page a ··XX, fentry/f_folio b XX··, fexit/f_page x ··XX, fexit/f_folio y XX··",
			"one_of a | b !; one_of x | y !", "", 4, 4},
		{"another order", "kprobe/account_page_f a ··XX, kprobe/folio_account_f b XX··", "one_of a | b !", "", 4, 4},
		{"three ways for each", "fentry/f_page a ·XXX, kprobe/f_page b ··aa, kprobe/__f_folio c aa··", "one_of a | b | c !", "", 4, 4},
		{"versions of a program", "kprobe on_f ·fff, kprobe on_f_v61 ff··", "one_of on_f | on_f_v61 !", "", 3, 3},
		{"both on one kernel", "fentry/f_page a ···X, fentry/f_folio b X···", "", "", 2, 2},
		{"one is nowhere", "fentry/f_page a XXXX, fentry/f_folio b XX··", "", "", 0, 0},
		{"other functions", "fentry/f a ··XX, fentry/g b XX··", "", "", 0, 0},
		{"protocols", "fentry/tcp_v4_f a ··XX, fentry/tcp_v6_f b XX··", "", "", 0, 0},
		{"entry against exit", "fentry/f_page a ··XX, fexit/f_folio b XX··", "", "", 0, 0},
		{"without a tracepoint", "tp_btf/f a ··XX, tp_btf/g b ····, tp_btf/h c ····", "", "when tool.o:a=<6.12", 2, 4},
		{"since a release", "tp_btf/f a XX··, fentry/g b ····, fentry/h c ····", "", "when tool.o:a=>=6.12", 2, 4},
		{"no release separates", "kprobe/f a ·a··, tp_btf/g b ····, tp_btf/h c ····", "", "optional tool.o:a", 3, 4},
		{"a kernel without such programs", "tp_btf/f a T··X, tp_btf/g b T···, tp_btf/h c T···", "", "when tool.o:a=<7.0", 2, 3},
		{"most of it", "tp_btf/f a ··XX, tp_btf/g b ····", "", "", 2, 2},
		{"a field", "tp_btf/f a ··ff, tp_btf/g b ····, tp_btf/h c ····", "", "", 2, 2},
		{"a map without an inner map", "tp_btf/f a ·mmm", "", "loader-map tool.o:inner", 1, 4},
		{"two such maps", "tp_btf/f a ·nnm, tp_btf/g b ···m", "", "loader-map tool.o:inner; loader-map tool.o:other", 1, 4},
		{"the loader's", "fentry/dummy a llll, tp_btf/g b ····, tp_btf/h c ····", "", "", 0, 0},
		{"all well", "fentry/f_page a ····, fentry/f_folio b ····", "", "", 4, 4},
	} {
		rep, o := suggested(t, Policy{}, tt.programs)
		if got := strings.Join(rules(rep, o), "; "); got != tt.rules {
			t.Errorf("%s: assumes %s, want %s", tt.name, got, tt.rules)
		}
		s := o.Suggestion
		if s == nil {
			s = &Suggestion{Row: *o}
		}
		var lines []string
		for _, x := range s.Options {
			lines = append(lines, x.Name+" "+x.Value)
		}
		if got := strings.Join(lines, "; "); got != tt.options {
			t.Errorf("%s: suggests %s, want %s", tt.name, got, tt.options)
		}
		if got := [2]int{o.Sum().Works, s.Row.Sum().Works}; got != [2]int{tt.works, tt.with} {
			t.Errorf("%s: works on %v kernels, want %d and %d", tt.name, got, tt.works, tt.with)
		}
		_, pasted := suggested(t, policy(t, lines...), tt.programs)
		if got, want := fmt.Sprint(pasted.Cells, pasted.Minima), fmt.Sprint(s.Row.Cells, s.Row.Minima); got != want {
			t.Errorf("%s: pasted:\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

// TestSuggestedPolicy holds that users overrule what is assumed.
func TestSuggestedPolicy(t *testing.T) {
	const programs = "fentry/f_page a ··XX, fentry/f_folio b XX··, tp_btf/g c ····"
	for _, tt := range []struct {
		policy, rules string
		works         int
	}{
		{"loader-map none", "one_of a | b !", 4},
		{"no-guess", "", 0},
		{"when a=>=5", "only_when a on >=5", 0},
		{"optional a", "optional a", 2},
		{"one-of a,c", "one_of a | c", 2},
	} {
		rep, o := suggested(t, policy(t, tt.policy), programs)
		if got := strings.Join(rules(rep, o), "; "); got != tt.rules || o.Sum().Works != tt.works {
			t.Errorf("%s: %s, works on %d, want %s, %d", tt.policy, got, o.Sum().Works, tt.rules, tt.works)
		}
	}
}

// TestSuggestTargets holds which programs are said to have targets from the loader.
func TestSuggestTargets(t *testing.T) {
	_, o := suggested(t, Policy{}, "fentry/dummy a llll, tp_btf/g b ····, fexit/dummy c llll")
	if s := o.Suggestion; s == nil || !slices.Equal(s.Targets, []string{"a", "c"}) {
		t.Errorf("%+v", o.Suggestion)
	}
}

// TestSuggestNames holds that options are about their object, whatever its name is.
func TestSuggestNames(t *testing.T) {
	for _, name := range []string{"dir/tool.o", "a=b.o", "tool:x!y_bpf", "[a]*?.o", `a\b.o`, "a,b+c.o"} {
		e := &evidence{object: rule.NewObject(name, new(bpfobj.Code), nil)}
		for _, option := range []Option{{"optional", e.prefix() + "p"}, {"one-of", e.prefix() + "p,q"}, {"when", e.prefix() + "p=>=5"}} {
			p, err := new(Policy).with([]Option{option})
			if err != nil {
				t.Errorf("%s: %v", option, err)
				continue
			}
			for _, c := range p.choices {
				for _, g := range c.alternatives {
					if !g.about(e.object) {
						t.Errorf("%s is not about %s", option, name)
					}
				}
			}
		}
	}
}
