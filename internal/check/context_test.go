// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// expected is what is expected of a program: ok, or another verdict on the kernels
// before or from a release on.
type expected struct {
	before, from string // releases of kernels with that verdict; all where both are empty
	status       Status
	others       Status            // on the other kernels
	attach       bool              // only attaching it fails
	attachFrom   string            // only attaching it fails from this release on; "" for never
	on           map[string]Status // by the release, up to its second number, or by machine and release, "x86_64/6.1"; it goes before the rest
}

// expectVerdicts compares verdicts with those expected, on the kernels of testdata/vmlinux. That a kernel has no BTF of its own
// does not count.
func expectVerdicts(t *testing.T, object string, want map[string]expected) {
	t.Helper()
	for _, order := range []string{".bpfel", ".bpfeb"} {
		rep := runOn(t, object+order)
		if len(rep.Programs) != len(want) {
			t.Errorf("%s: %d programs, of which %d are expected", object, len(rep.Programs), len(want))
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			w, ok := want[p.Name]
			if !ok {
				t.Errorf("nothing is expected of %s", p.Name)
			}
			for k := range rep.Kernels {
				if p.Status[k] == Other {
					continue
				}
				name, release := rep.Kernels[k].Name, rep.Kernels[k].Key().Release
				status := w.status
				if w.before != "" && kernel.CompareVersions(release, w.before) >= 0 || w.from != "" && kernel.CompareVersions(release, w.from) < 0 {
					status = w.others
				}
				series := kernelSeries(release)
				if s, ok := w.on[rep.Kernels[k].Key().Arch+"/"+series]; ok {
					status = s
				} else if s, ok := w.on[series]; ok {
					status = s
				}
				found := findingsOn(p, k, judged...)
				if got := Worst(found); got != status {
					t.Errorf("%s: %s on %s: %s, want %s: %v", object, p.Name, name, got, status, found)
				}
				attach := w.attach || w.attachFrom != "" && kernel.CompareVersions(release, w.attachFrom) >= 0
				for _, f := range found {
					if f.Status == status && f.Attach != attach {
						t.Errorf("%s: %s on %s: %v", object, p.Name, name, f)
					}
				}
			}
		}
	}
}

// judged are all families but those on the running kernel.
var judged = slices.DeleteFunc(Families(), func(f Family) bool { return f == FamilyRunning })

// kernelSeries is 6.1 of 6.1.0-47-amd64.
func kernelSeries(release string) string {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r == '.' || r == '-' })
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// findingsOn returns the findings on a kernel, without that its machine has no
// trampolines.
func findingsOn(p *Program, kernel int, families ...Family) (l []Finding) {
	for _, f := range p.Findings {
		if slices.Contains(f.Kernels, kernel) && slices.Contains(families, FamilyOf(f.Code)) && f.Code != AttachTargetTrampoline {
			l = append(l, f.Finding)
		}
	}
	return l
}

// TestContext holds verdicts on what programs read of their context. The same
// programs are loaded into kernels by scripts/check-kernels.sh.
func TestContext(t *testing.T) {
	raceflag.SkipSerial(t)
	fails := expected{status: Fails}
	expectVerdicts(t, "context", map[string]expected{
		"both": {}, "result": {}, "through": {}, "number": {}, "to_char": {}, "modified": {}, "task": {}, "iterated": {}, "record": {},
		"part_of_member": {}, "socket": {}, "part_of_socket": {},
		"one_too_many": fails, "behind_result": fails, "beyond": fails, "crooked": {}, "written": {}, "in_function": fails,
		"through_number": fails, "iterated_too_many": fails, "before_record": {},
		"thirteenth_raw": {status: Fails, attach: true},
		"half":           {}, "to_number": {}, "to_pointer": {on: map[string]Status{"5.10": Fails}}, "with_struct": {before: "6.1", status: Fails},
		"fourth":         {before: "5.18", status: Fails},
		"fourth_guarded": {before: "5.18", status: Guarded},
		"fourth_raw":     {before: "5.18", status: Fails, attach: true},
		"beyond_record":  {status: Fails, attach: true},
	})
}

// TestAddresses is TestContext for where pointers were kept, and what was added to them.
func TestAddresses(t *testing.T) {
	raceflag.SkipSerial(t)
	refused := expected{before: "7.1", status: Fails}
	given := expected{on: map[string]Status{"6.1": MayFail, "6.12": MayFail}}
	expectVerdicts(t, "addresses", map[string]expected{
		"copied": {}, "beside": {}, "read_by_helper": {}, "moved_back": {}, "moved_by_nothing": {}, "moved_by_relocation_guarded": {},
		"as_key": given, "as_value": given, "in_event": given,
		"as_key_guarded": {on: map[string]Status{"6.1": Guarded, "6.12": Guarded}},
		"moved":          refused, "kprobe_moved": refused, "moved_by_relocation": refused,
		"moved_by_version": {before: "5.11", status: Fails},
		"tc_moved":         {status: Fails},
	})
}

// TestSyscallRecords checks reads of the records of system calls' events: of exits, of one with arguments and of one without.
func TestSyscallRecords(t *testing.T) {
	raceflag.SkipSerial(t)
	const fits, beyond = OK, Fails
	reads := func(off int16) []insn {
		return []insn{{Op: 0x79, Src: 1, Off: off}, {Op: 0xb7}, {Op: bpfobj.OpExit}}
	}
	for _, p := range []struct {
		section string
		off     int16
		want    Status
	}{
		{"tracepoint/syscalls/sys_exit_openat", 16, fits}, {"tracepoint/syscalls/sys_exit_openat", 24, beyond}, {"tp/syscalls/sys_exit_close", 160, beyond},
		{"tracepoint/syscalls/sys_enter_openat", 16, fits}, {"tracepoint/syscalls/sys_enter_openat", 40, fits}, {"tp/syscalls/sys_enter_close", 64, beyond},
		{"tracepoint/syscalls/sys_enter_sync", 16, beyond},
		{"tracepoint/raw_syscalls/sys_exit", 16, fits}, {"tracepoint/raw_syscalls/sys_exit", 160, beyond},
	} {
		o := programOf(p.section, reads(p.off))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := evaluation{pairing: pairOn(o, oldest(t, newWanted([]*Object{o}))), pr: &o.Programs[0]}
		e.attachment()
		e.kind = e.accesses(0)
		if got := Worst(e.onCode(t.Context())); got != p.want {
			t.Errorf("%s at %d: %s, want %s", p.section, p.off, got, p.want)
		}
	}
}

// TestContextField reads a field that __sk_buff has since Linux 5.16, and the one before it.
func TestContextField(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		off   int16
		since string
	}{{176, ""}, {184, "5.16"}} {
		code := []insn{{Op: bpfobj.OpExit}}
		o := programOf("tc", append([]insn{{Op: asm.LoadMemOp(asm.DWord), Src: asm.R1, Off: tt.off}, {Op: 0xb7}}, code...))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := newWanted([]*Object{o})
		testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
			k := inspectItem(t, it, want)
			e := &evaluation{pairing: pairOn(o, k), pr: &o.Programs[0]}
			e.attachment()
			l, status := e.accesses(0), OK
			if len(l) > 0 {
				status = l[0].f.Status
			}
			if fails := tt.since != "" && kernel.CompareVersions(it.Key.Release, tt.since) < 0; it.Key.ID == "debian" && (status == Fails) != fails {
				t.Errorf("offset %d on %s: %v", tt.off, it.Name, l)
			}
		})
	}
}

// TestContextFieldWithoutStruct reads egress_ifindex, of 5.8, where the BTF has no struct xdp_md.
func TestContextFieldWithoutStruct(t *testing.T) {
	raceflag.SkipSerial(t)
	o := programOf("xdp/devmap", []insn{{Op: asm.LoadMemOp(asm.Word), Src: asm.R1, Off: 20}, {Op: 0xb7}, {Op: bpfobj.OpExit}})
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := oldest(t, newWanted(nil)) // which has no name of the object's
	for _, tt := range []struct {
		to   release
		want Status
	}{{Linux(5, 10), OK}, {Linux(5, 4), Fails}} {
		k.Age(tt.to)
		e := &evaluation{pairing: pairOn(o, k), pr: &o.Programs[0]}
		var got Status
		for _, a := range e.accesses(0) {
			got = max(got, a.f.Status)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.to, got, tt.want)
		}
	}
}
