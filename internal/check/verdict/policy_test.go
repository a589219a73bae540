// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/testing/testinput"
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
		{"fentry.multi/a* x, kprobe.multi/a* y, fexit.multi b, kretprobe.multi b", "one_of x | y; one_of b | b"},
		{"uprobe/f a, uprobe.multi/f b, xdp c, no_such_section d", ""},
		{"tc_ingress a, tc/ingress b, tcx/ingress c, sockops d, cgroup/sockops e", ""},
		{"?kprobe/a x, kprobe/b y", "optional x"},
		{"?kprobe/a x", "one_of x"},
		{"?kprobe/a x, ?xdp y", "one_of x | y"},
		{"?fentry/a f, kprobe/a k, ?xdp y, ?fentry/b g, ?kprobe/b h", "one_of f | k; optional y+g+h"},
		{"tp/syscalls/sys_enter_sync a, tp/syscalls/sys_enter_sync_file_range2 b, tracepoint/syscalls/sys_exit_arm_sync_file_range c", "optional b+c"},
		{"tp/syscalls/sys_enter_sync_file_range2 a", ""},
	} {
		o := &rule.Object{Code: new(bpfobj.Code)}
		for p := range strings.SplitSeq(tt.programs, ", ") {
			section, name, _ := strings.Cut(p, " ")
			section, marked := strings.CutPrefix(section, "?")
			o.Programs = append(o.Programs, bpfobj.Program{Fn: len(o.Funcs), Section: section, Attach: bpfobj.SectionOf(section), AutoLoad: !marked})
			o.Funcs = append(o.Funcs, bpfobj.Function{Name: name})
		}
		rep := new(Report)
		for i := range o.Programs {
			rep.Programs = append(rep.Programs, ProgramRow{Name: o.ProgramName(i)})
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
	o, err := rule.Parse(t.Context(), "dir/tool.o!#1", testinput.Named(t, "tool.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	p := policy(t, "optional nobody", "one-of tool.o:extra,nobody", "when dir/*:on_*=5.10", "when tool:on_*=5.10", "loader-map extra", "loader-map tool.o!#1:filter")
	want := "[--optional nobody --one-of tool.o:extra,nobody --when tool:on_*=5.10 --loader-map extra]"
	if got := fmt.Sprint(p.Unmatched([]*rule.Object{o})); got != want {
		t.Errorf("unmatched: %s, want %s", got, want)
	}
}
