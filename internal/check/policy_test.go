// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// policy reads a policy from "option value" lines.
func policy(t *testing.T, lines ...string) (p verdict.Policy) {
	t.Helper()
	for _, l := range lines {
		option, value, _ := strings.Cut(l, " ")
		if option == "no-guess" {
			p.Exact = true
		} else if err := p.Add(option, value); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// rules are the rules of an object in short: "one_of a | b+c" has a ! where it was guessed.
func rules(rep *verdict.Report, o *verdict.ObjectRow) (out []string) {
	for _, r := range o.Rules {
		var lists []string
		for _, l := range r.Programs {
			var names []string
			for _, p := range l {
				names = append(names, rep.Programs[p].Name)
			}
			lists = append(lists, strings.Join(names, "+"))
		}
		s := string(r.Kind) + " " + strings.Join(lists, " | ")
		if r.When != "" {
			s += " on " + r.When
		}
		if r.Guess != "" {
			s += " !"
		}
		out = append(out, s)
	}
	return out
}

// short is the verdicts of a row on the kernels of a machine by release, without repetitions.
func short(rep *verdict.Report, row []rule.Status, arch string) string {
	kernels := make([]int, len(row))
	for k := range row {
		kernels[k] = k
	}
	slices.SortFunc(kernels, func(a, b int) int { return kernel.CompareVersions(rep.Kernels[a].Release(), rep.Kernels[b].Release()) })
	var out []string
	last := rule.Other
	for _, k := range kernels {
		if s := row[k]; s != last && rep.Kernels[k].Key().Arch == arch {
			out = append(out, rep.Kernels[k].Release()+" "+s.String())
			last = s
		}
	}
	return strings.Join(out, ", ")
}

// TestPolicy judges a tool whose loaders choose among programs, by guesses and by policies.
func TestPolicy(t *testing.T) {
	const (
		pairs   = "one_of open_fentry | open_kprobe !; one_of on_switch | on_switch_btf !"
		guessed = pairs + "; optional x86_only+extra !"
	)
	for _, tt := range []struct {
		policy string      // options with ; between them
		loader rule.Loader // "" for both
		rules  string
		x86    string // verdict on x86_64 by line since 5.10, where it changes
		arm    string
	}{
		// libbpf makes the bloom filter whether extra is loaded or not.
		{"", "", guessed, "5.10 fails, 6.1 ok", "6.12 ok"},
		{"", rule.Libbpf, guessed, "5.10 fails, 6.1 ok", "6.12 ok"},
		{"", rule.EbpfGo, guessed, "5.10 ok", "6.12 ok"},
		// bpf_loop came with 5.17; cilium/ebpf loads what has a ? as well.
		// Debian's for 32-bit ARM has no BTF of its own.
		{"no-guess", rule.Libbpf, "", "5.10 fails, 6.1 ok", "6.12 fails"},
		{"no-guess;loader-map filter", rule.Libbpf, "", "5.10 fails, 6.1 ok", "6.12 fails"},
		{"no-guess", rule.EbpfGo, "", "5.10 fails, 6.1 ok", "6.12 fails"},
		{"loader-map filter", "", guessed, "5.10 ok", "6.12 ok"},
		{"loader-map f*;optional extra", "", "optional extra; " + pairs + "; optional x86_only !", "5.10 ok", "6.12 ok"},
		{"loader-map filter;when tool*:on_switch_btf=>=6", "", "only_when on_switch_btf on >=6; " + guessed, "5.10 ok", "6.12 ok"},
		{"no-guess;loader-map filter;when on_switch_btf=>=6", rule.Libbpf, "only_when on_switch_btf on >=6", "5.10 ok", "6.12 fails"},
		{"no-guess;loader-map filter;when on_switch_btf=>=6;one-of open_*,on_switch", rule.Libbpf,
			"one_of open_fentry+open_kprobe | on_switch; only_when on_switch_btf on >=6", "5.10 ok", "6.12 fails"},
		{"loader-map filter;when x86_only=>=5", "", "only_when x86_only on >=5; " + pairs + "; optional extra !", "5.10 ok", "6.12 fails"},
		{"loader-map filter;one-of tool.bpfel:x86_only,extra", "", "one_of x86_only | extra; " + pairs, "5.10 ok", "6.12 ok"},
		{"loader-map filter;one-of x86_only+on_switch,on_switch_btf+extra", rule.EbpfGo,
			"one_of x86_only+on_switch | extra+on_switch_btf; one_of open_fentry | open_kprobe !", "5.10 ok", "6.12 fails"},
		{"loader-map other:filter;optional other:*", "", guessed, "5.10 fails, 6.1 ok", "6.12 ok"},
	} {
		t.Run(tt.policy+" "+string(tt.loader), func(t *testing.T) {
			cfg := Config{}
			if tt.policy != "" {
				cfg.Policy = policy(t, strings.Split(tt.policy, ";")...)
			}
			if tt.loader != "" {
				cfg.Loaders = []rule.Loader{tt.loader}
			}
			rep := runWith(t, cfg, "tool.bpfel")
			o := &rep.Objects[0]
			if got := strings.Join(rules(rep, o), "; "); got != tt.rules {
				t.Errorf("rules:\n%s\nwant\n%s", got, tt.rules)
			}
			if got := short(rep, o.Status, "x86_64"); got != tt.x86 {
				t.Errorf("x86_64: %s, want %s", got, tt.x86)
			}
			if got := short(rep, o.Status, "arm"); got != tt.arm {
				t.Errorf("arm: %s, want %s", got, tt.arm)
			}
		})
	}
}

// TestDeciding holds the programs from which an object's verdict is, and the causes that follow.
func TestDeciding(t *testing.T) {
	rep := runWith(t, Config{Policy: policy(t, "no-guess", "loader-map filter", "optional x86_only")}, "tool.bpfel")
	var got []string
	for _, d := range rep.Objects[0].Decides {
		for _, k := range d.Kernels {
			got = append(got, fmt.Sprintf("%s on %s %s", rep.Programs[d.Program].Name, rep.Kernels[k].Key().Arch, rep.Kernels[k].Release()))
		}
	}
	want := []string{"on_switch_btf on arm 6.12", "on_switch_btf on x86_64 5.10", "open_fentry on arm 6.12", "open_fentry on arm64 6.1", "open_fentry on ppc64le 6.12"}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range rep.Causes {
		if c.Code == rule.RunningKernelNone || c.Code == rule.AttachTargetTrampoline || c.Status != rule.Fails {
			continue
		}
		if s := c.Subjects[0].Subject; s != "bpf_loop" && s != "address of a function" || len(c.Subjects) != 1 || len(c.Kernels) != 1 || len(c.Programs) != 1 {
			t.Errorf("%+v", c)
		}
	}
	if l := rep.All(); len(l) <= len(rep.Causes) {
		t.Errorf("only %d causes with those of programs that need not work", len(l))
	}
	for arch, want := range map[string]rule.Status{"x86_64": rule.OK, "arm64": rule.Fails} { // fentry came to arm64 with 6.4
		if w := rep.Worst(func(k int) bool { return rep.Kernels[k].Release() == "6.1" && rep.Kernels[k].Key().Arch == arch }); w != want {
			t.Errorf("Linux 6.1 on %s: %s, want %s", arch, w, want)
		}
	}
}

// TestLoaders holds the difference between loaders: only libbpf makes maps that no program refers to.
func TestLoaders(t *testing.T) {
	rep := runOn(t, "tool.bpfel", "longkeys.bpfel")
	o := &rep.Objects[0]
	if len(o.Loaders) != 2 {
		t.Fatalf("%d rows by loader", len(o.Loaders))
	}
	for _, l := range o.Loaders {
		if got, want := short(rep, l.Status, "x86_64"), map[rule.Loader]string{rule.Libbpf: "5.10 fails, 6.1 ok", rule.EbpfGo: "5.10 ok"}[l.Loader]; got != want {
			t.Errorf("%s: %s, want %s", l.Loader, got, want)
		}
	}
	for _, p := range o.Programs {
		for _, f := range rep.Programs[p].Findings {
			if want := map[bool]rule.Loader{false: rule.Libbpf}[rep.Programs[p].Name == "extra"]; rule.FamilyOf(f.Code) == rule.FamilyMapType && f.Loader != want {
				t.Errorf("%s: of loader %q, want %q", rep.Programs[p].Name, f.Loader, want)
			}
		}
	}
	for _, o := range rep.Objects[1:] {
		if len(o.Loaders) != 0 {
			t.Errorf("%s: loaders differ, though a program needs what is lacking", o.Object)
		}
	}
}
