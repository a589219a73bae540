// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// policy reads a policy from "option value" lines.
func policy(t *testing.T, lines ...string) (p Policy) {
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
func rules(rep *Report, o *ObjectRow) (out []string) {
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
func short(rep *Report, row []Status, arch string) string {
	kernels := make([]int, len(row))
	for k := range row {
		kernels[k] = k
	}
	slices.SortFunc(kernels, func(a, b int) int { return kernel.CompareVersions(rep.Kernels[a].Release(), rep.Kernels[b].Release()) })
	var out []string
	last := Other
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
	raceflag.SkipSerial(t)
	const (
		pairs   = "one_of open_fentry | open_kprobe !; one_of on_switch | on_switch_btf !"
		guessed = pairs + "; optional x86_only+extra !"
	)
	for _, tt := range []struct {
		policy string // lines with ; between them
		loader Loader // "" for both
		rules  string
		x86    string // since 5.10, as far as it changes
		arm    string
	}{
		// libbpf makes the bloom filter whether extra is loaded or not.
		{"", "", guessed, "5.10 fails, 6.1 ok", "6.12 ok"},
		{"", Libbpf, guessed, "5.10 fails, 6.1 ok", "6.12 ok"},
		{"", EbpfGo, guessed, "5.10 ok", "6.12 ok"},
		// bpf_loop came with 5.17; cilium/ebpf loads what has a ? as well.
		// Debian's for 32-bit ARM has no BTF of its own.
		{"no-guess", Libbpf, "", "5.10 fails, 6.1 ok", "6.12 fails"},
		{"no-guess;loader-map filter", Libbpf, "", "5.10 fails, 6.1 ok", "6.12 fails"},
		{"no-guess", EbpfGo, "", "5.10 fails, 6.1 ok", "6.12 fails"},
		{"loader-map filter", "", guessed, "5.10 ok", "6.12 ok"},
		{"loader-map f*;optional extra", "", "optional extra; " + pairs + "; optional x86_only !", "5.10 ok", "6.12 ok"},
		{"loader-map filter;when tool*:on_switch_btf=>=6", "", "only_when on_switch_btf on >=6; " + guessed, "5.10 ok", "6.12 ok"},
		{"no-guess;loader-map filter;when on_switch_btf=>=6", Libbpf, "only_when on_switch_btf on >=6", "5.10 ok", "6.12 fails"},
		{"no-guess;loader-map filter;when on_switch_btf=>=6;one-of open_*,on_switch", Libbpf,
			"one_of open_fentry+open_kprobe | on_switch; only_when on_switch_btf on >=6", "5.10 ok", "6.12 fails"},
		{"loader-map filter;when x86_only=>=5", "", "only_when x86_only on >=5; " + pairs + "; optional extra !", "5.10 ok", "6.12 fails"},
		{"loader-map filter;one-of tool.bpfel:x86_only,extra", "", "one_of x86_only | extra; " + pairs, "5.10 ok", "6.12 ok"},
		{"loader-map filter;one-of x86_only+on_switch,on_switch_btf+extra", EbpfGo,
			"one_of x86_only+on_switch | extra+on_switch_btf; one_of open_fentry | open_kprobe !", "5.10 ok", "6.12 fails"},
		{"loader-map other:filter;optional other:*", "", guessed, "5.10 fails, 6.1 ok", "6.12 ok"},
	} {
		t.Run(tt.policy+" "+string(tt.loader), func(t *testing.T) {
			cfg := Config{}
			if tt.policy != "" {
				cfg.Policy = policy(t, strings.Split(tt.policy, ";")...)
			}
			if tt.loader != "" {
				cfg.Loaders = []Loader{tt.loader}
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

// TestGuesses has the programs of objects, a section and a name each, and what is guessed of them.
func TestGuesses(t *testing.T) {
	for _, tt := range []struct{ programs, rules string }{
		{"kprobe/a x, kprobe/b y", ""},
		{"fentry/vfs_read f, kprobe/vfs_read k", "one_of f | k"},
		{"fentry.s/vfs_read f, kprobe.multi/vfs_read m, kprobe/vfs_read k, kprobe/vfs_read l", "one_of f | m | k+l"},
		{"kprobe/vfs_read enter, kretprobe/vfs_read leave", ""},
		{"fexit/f a, kretprobe/f b, fentry/f c, kprobe/f d", "one_of a | b; one_of c | d"},
		{"raw_tp/sched_switch a, tp_btf/sched_switch b, tracepoint/sched/sched_switch c, tp/sched/sched_wakeup d", "one_of a | b | c"},
		{"tp_btf/irq_handler_entry a, raw_tp/irq_handler_exit b", ""},
		{"raw_tp/sys_enter a, raw_tp/sys_enter b", ""},
		{"fentry/dummy_fentry a, kprobe/dummy_kprobe b, fexit/dummy_fexit c, kretprobe/dummy_kretprobe d", "one_of a | b; one_of c | d"},
		{"fentry open_fentry, kprobe open_kprobe, kprobe close", "one_of open_fentry | open_kprobe"},
		{"kprobe/do_exit on_exit, tp_btf/sched_process_exit on_exit_btf, kprobe/f other_btf", "one_of on_exit | on_exit_btf"},
		{"kprobe/a x, kprobe/b x_btf", ""},
		{"uprobe/f a, uprobe.multi/f b, xdp c, no_such_section d", ""},
		{"tc_ingress a, tc/ingress b, tcx/ingress c, sockops d, cgroup/sockops e", ""},
		{"?kprobe/a x, kprobe/b y", "optional x"},
		{"?kprobe/a x", "one_of x"},
		{"?kprobe/a x, ?xdp y", "one_of x | y"},
		{"?fentry/a f, kprobe/a k, ?xdp y, ?fentry/b g, ?kprobe/b h", "one_of f | k; optional y+g+h"},
		{"tp/syscalls/sys_enter_sync a, tp/syscalls/sys_enter_sync_file_range2 b, tracepoint/syscalls/sys_exit_arm_sync_file_range c", "optional b+c"},
		{"tp/syscalls/sys_enter_sync_file_range2 a", ""},
	} {
		o := &Object{Code: new(bpfobj.Code)}
		for p := range strings.SplitSeq(tt.programs, ", ") {
			section, name, _ := strings.Cut(p, " ")
			section, marked := strings.CutPrefix(section, "?")
			o.Programs = append(o.Programs, bpfobj.Program{Fn: len(o.Funcs), Section: section, Attach: bpfobj.SectionOf(section), AutoLoad: !marked})
			o.Funcs = append(o.Funcs, bpfobj.Function{Name: name})
		}
		rep := new(Report)
		for i := range o.Programs {
			rep.Programs = append(rep.Programs, Program{Name: o.ProgramName(i)})
		}
		pl := new(Policy).planFor(o)
		got := strings.ReplaceAll(strings.Join(rules(rep, &ObjectRow{Rules: pl.rules}), ";"), " !", "")
		if got != strings.ReplaceAll(tt.rules, "; ", ";") {
			t.Errorf("%s:\n%s, want\n%s", tt.programs, got, tt.rules)
		}
		if got := (&Policy{Exact: true}).planFor(o); len(got.rules) != 0 || len(got.needs)+len(got.marked) != len(o.Programs) {
			t.Errorf("%s: without guesses %v", tt.programs, got)
		}
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
	for _, c := range rep.Deciding(Fails) {
		if c.Code == RunningKernelNone {
			continue
		}
		if c.Subject != "bpf_loop" && c.Subject != "address of a function" || len(c.Kernels) != 1 || len(c.Programs) != 1 {
			t.Errorf("%+v", c)
		}
	}
	if l := rep.Causes(Fails); len(l) < 2 {
		t.Errorf("only %d causes with those of programs that need not work", len(l))
	}
	for arch, want := range map[string]Status{"x86_64": OK, "arm64": MayFail} { // fentry came to arm64 with 6.4
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
		if got, want := short(rep, l.Status, "x86_64"), map[Loader]string{Libbpf: "5.10 fails, 6.1 ok", EbpfGo: "5.10 ok"}[l.Loader]; got != want {
			t.Errorf("%s: %s, want %s", l.Loader, got, want)
		}
	}
	for _, p := range o.Programs {
		for _, f := range rep.Programs[p].Findings {
			if want := map[bool]Loader{false: Libbpf}[rep.Programs[p].Name == "extra"]; FamilyOf(f.Code) == FamilyMapType && f.Loader != want {
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

func TestParsePolicy(t *testing.T) {
	for text, option := range map[string]string{
		"":          "optional",
		":x":        "optional",
		"o:":        "optional",
		"a+":        "optional",
		"[":         "optional",
		"[:x":       "optional",
		"a":         "one-of",
		"o:a,":      "one-of",
		"a,[":       "one-of",
		"x":         "when",
		"x=":        "when",
		"=>=5":      "when",
		"x=>=":      "when",
		"x=debian,": "when",
	} {
		if err := new(Policy).Add(option, text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	o, err := Parse(t.Context(), "dir/tool.o!#1", testinput.Named(t, "tool.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t, "optional nobody", "one-of tool.o:extra,nobody", "when dir/*:on_*=5.10", "when tool:on_*=5.10", "loader-map extra", "loader-map tool.o!#1:filter")
	want := "[--optional nobody --one-of tool.o:extra,nobody --when tool:on_*=5.10 --loader-map extra]"
	if got := fmt.Sprint(p.Unmatched([]*Object{o})); got != want {
		t.Errorf("unmatched: %s, want %s", got, want)
	}
}
