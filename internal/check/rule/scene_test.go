// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/interp"
)

// scenesOn is an object without relocations on a kernel, with the loaders that open it, or all of them.
func scenesOn(o *Object, k *Inventory) Scenes {
	open := slices.DeleteFunc(Loaders(), func(l Loader) bool { return len(o.Unopened(l)) > 0 })
	if len(open) == 0 {
		open = Loaders()
	}
	return NewScenes(o, k, Decisions{}, Loading{SetsMap: func(string) bool { return false }}, open)
}

// sceneOn is a scene of scenesOn: with a loader, or the first.
func sceneOn(o *Object, k *Inventory, with ...Loader) *Scene {
	if with == nil {
		return scenesOn(o, k)[0]
	}
	return NewScenes(o, k, Decisions{}, Loading{SetsMap: func(string) bool { return false }}, with)[0]
}

// onCode explores the code of the program, and returns the findings on it.
func (e *Evaluation) onCode(ctx context.Context) (l []Finding) {
	p := Program{scenes: Scenes{e.Scene}, pr: e.pr, kind: e.kind, may: e.may}
	return p.onCode(ctx)
}

// onCode explores the code of the program, and returns the findings on it.
func (p *Program) onCode(ctx context.Context) (l []Finding) {
	for _, precise := range []bool{false, true} {
		in := p.scenes.Input()
		in.Settable, in.Precise = func(string) bool { return false }, precise
		l = nil
		add := func(f Finding) {
			if !slices.Contains(l, f) {
				l = append(l, f)
			}
		}
		if !p.JudgeCode(interp.Explore(ctx, p.scenes[0].o.Code, p.pr, &in), add) {
			break
		}
	}
	return l
}

// TestMerge merges findings of scenes.
func TestMerge(t *testing.T) {
	c := Scenes{{loader: Libbpf}, {loader: EbpfGo}}
	finding := func(code Code, l Loader, stops Stops) Finding {
		return Finding{Status: Fails, Code: code, Loader: l, Args: Args{Stops: stops}}
	}
	plain := func(codes ...Code) (l []Finding) {
		for _, code := range codes {
			l = append(l, finding(code, "", ""))
		}
		return l
	}
	for name, tt := range map[string]struct{ libbpf, ebpfGo, want []Finding }{
		"none":              {},
		"of both":           {plain("a", "b"), plain("a", "b"), plain("a", "b")},
		"in another order":  {plain("a", "b"), plain("b", "a"), plain("a", "b")},
		"of one":            {plain("a", "b"), plain("b"), []Finding{finding("a", Libbpf, ""), finding("b", "", "")}},
		"of the other":      {nil, plain("a"), []Finding{finding("a", EbpfGo, "")}},
		"of each":           {plain("a"), plain("b"), []Finding{finding("a", Libbpf, ""), finding("b", EbpfGo, "")}},
		"about one":         {[]Finding{finding("a", Libbpf, "")}, []Finding{finding("a", EbpfGo, "")}, []Finding{finding("a", Libbpf, ""), finding("a", EbpfGo, "")}},
		"one stops at more": {[]Finding{finding("a", "", ObjectStops)}, []Finding{finding("a", "", ProgramStops)}, []Finding{finding("a", "", ObjectStops)}},
		"which is no difference": {
			[]Finding{finding("b", "", ""), finding("a", "", ObjectStops)}, []Finding{finding("a", "", ProgramStops)},
			[]Finding{finding("b", Libbpf, ""), finding("a", "", ObjectStops)},
		},
	} {
		if got := merge(c, [][]Finding{tt.libbpf, tt.ebpfGo}, (*Finding).unstopped); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	one := plain("a")
	if got := merge(c[1:], [][]Finding{one}, (*Finding).unstopped); !slices.Equal(got, one) {
		t.Errorf("of a single loader: %+v", got)
	}
}

// TestMergeStates merges findings with modules loaded and with none.
func TestMergeStates(t *testing.T) {
	c := Scenes{{loader: Libbpf}, {loader: EbpfGo}}
	finding := func(s Status, code Code, l Loader) Finding { return Finding{Status: s, Code: code, Loader: l} }
	list := func(l ...Finding) []Finding { return l }
	for name, tt := range map[string]struct {
		loaded, bare []Finding
		want         []string // findings of both states
	}{
		"fails where one is loaded":     {list(finding(Fails, "a", "")), nil, []string{"may fail: a m loaded"}},
		"fails where none is":           {nil, list(finding(Fails, "a", "")), []string{"may fail: a m not-loaded"}},
		"fails in both":                 {list(finding(Fails, "a", "")), list(finding(Fails, "b", "")), []string{"fails: a"}},
		"fails in one with a loader":    {list(finding(Fails, "a", "")), list(finding(Fails, "b", Libbpf)), []string{"may fail: a m loaded"}},
		"fails in both with a loader":   {list(finding(Fails, "a", Libbpf)), list(finding(Fails, "b", "")), []string{"libbpf: fails: a", "may fail: b m not-loaded"}},
		"fails with each in both":       {list(finding(Fails, "a", "")), list(finding(Fails, "b", Libbpf), finding(Fails, "b", EbpfGo)), []string{"fails: a"}},
		"needs a module":                {nil, list(finding(Fails, ModuleNeeded, "")), []string{"may fail: module-needed"}},
		"needs one, and fails with it":  {list(finding(Fails, "a", "")), list(finding(Fails, ModuleNeeded, "")), []string{"fails: a", "may fail: module-needed"}},
		"needs one where it is reached": {list(finding(Guarded, "a", "")), list(finding(Guarded, ModuleNeeded, "")), []string{"guarded: a"}},
		"perhaps needs one":             {list(finding(Fails, "a", "")), list(finding(MayFail, ModuleNeeded, "")), []string{"may fail: a m loaded", "may fail: module-needed"}},
	} {
		merged, more := c.MergeStates("m", tt.loaded, tt.bare)
		var got []string
		for _, f := range append(merged, more...) {
			got = append(got, brief(&f))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
