// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// fieldRules has tests of TestField about rules of check.
var fieldRules = map[string]func(t *testing.T, c *cases){
	"argument-pointer-kinds": func(t *testing.T, c *cases) {
		j := c.judged(t, "argument-pointer-kinds", "--btf debian --no-guess --loader libbpf kinds.o real.o")
		bad := map[string]string{ // last release on which it fails, as seen on booted kernels
			"p_int": "5.10", "p_longlong": "5.10", "p_bool": "5.10", "p_ulong": "5.10", "p_u32": "5.10", "p_u16": "5.10",
			"p_ptr_void": "6.1", "p_ptr_struct": "6.1", "p_func": "6.1", "p_enum": "6.1", "p_array": "6.1", "p_fwd": "6.1",
			"p_uchar": "", "p_char": "", "p_void": "", "p_union": "", "p_struct": "",
			"vr_pos": "5.10", "vw_pos": "5.10", "fe_a2": "5.10", "fio": "", "sbm": "", "tpe": "", "prn": "", "gpa": "?", "igs": "?",
		}
		for program, until := range bad {
			for kernel, got := range j.status[program] {
				refused := until == "6.1" && !strings.Contains(kernel, "/7.") || until == "5.10" && strings.Contains(kernel, "/5.10")
				_, found := j.findings(program, "context-argument-type")[kernel]
				if until != "?" && refused != (found && got == "fails") {
					t.Errorf("%s on %s: %s, want fails: %v: %v", program, kernel, got, refused, j.findings(program, "context-argument-type"))
				}
			}
		}
		if n := len(j.kernels("lsm_a2", "fails")) + len(j.kernels("fe_a3", "fails")); n == 0 {
			t.Error("inode_setxattr: ok on every kernel")
		}
	},
	"arm64-pt-regs": func(t *testing.T, c *cases) {
		for _, object := range []string{"t4a.bpf.o", "t4b.bpf.o"} {
			for kernel, status := range c.judged(t, "arm64-pt-regs", "--btf ../../corpus "+object).status["p"] {
				if arm64 := strings.Contains(kernel, "/arm64/"); arm64 == (status == "n/a") || status == "fails" && !strings.Contains(kernel, "/4.1") {
					t.Errorf("%s on %s: %s", object, kernel, status)
				}
			}
		}
	},
	"bitfield-read": func(t *testing.T, c *cases) {
		j := c.judged(t, "bitfield-read", "--btf bclinux --no-guess prog.o")
		for program, want := range map[string]int{"naive": 1, "careful": 0} {
			if got := j.findings(program, "changed-bitfield"); len(got) != want {
				t.Errorf("%s: %v, want %d", program, got, want)
			}
		}
	},
	"changed-argument-pointer": func(t *testing.T, c *cases) {
		const old, later = "debian/11/x86_64/5.10.0-30-amd64", "debian/12/x86_64/6.1.0-56-cloud-amd64"
		j := c.judged(t, "changed-argument-pointer", "--btf debian --no-guess prog.o")
		for program, kernel := range map[string]string{"second": old, "newer": later, "k_second": old, "k_third": old} {
			got := j.findings(program, "changed-argument")
			if f, ok := got[kernel]; !ok || len(got) != 1 && program != "newer" || f.Name == "" || f.Other == "" {
				t.Errorf("%s: %v, want a warning on %s", program, got, kernel)
			}
		}
	},
	"config-lsm": func(t *testing.T, c *cases) {
		j := c.judged(t, "config-lsm", "--btf ubuntu prog.o")
		for kernel := range j.status["deny"] {
			if f, ok := j.findings("deny", "attach-target-lsm-off")[kernel]; !ok || !strings.Contains(f.Message, "lockdown,yama") {
				t.Errorf("%s: no warning: %v", kernel, f)
			}
		}
		c.commands(t, "config-lsm", "btfgen check --btf ubuntu --fail-on warning prog.o").want(t, `bpf`, `\[btfgen check: 3\]`)
	},
	"denied-functions": func(t *testing.T, c *cases) {
		j := c.judged(t, "denied-functions", "--btf ../../corpus --select x86_64 --loader libbpf --no-guess prog.o")
		for _, p := range []struct{ program, kernel, want string }{
			{"p", "debian/experimental/x86_64/7.3-amd64", "fails"}, {"q", "debian/experimental/x86_64/7.3-amd64", "fails"}, {"m", "debian/12/x86_64/6.1.0-47-amd64", "fails"},
			{"p", "debian/12/x86_64/6.1.0-47-amd64", "ok"}, {"m", "debian/13/x86_64/6.12.107+deb13-amd64", "fails"}, {"p", "debian/13/x86_64/6.12.107+deb13-amd64", "may fail"},
		} {
			if got := j.status[p.program][p.kernel]; got != p.want {
				t.Errorf("%s on %s: %s, want %s", p.program, p.kernel, got, p.want)
			}
		}
	},
	"notrace-and-blacklist": func(t *testing.T, c *cases) {
		j := c.judged(t, "notrace-and-blacklist", "--btf ../../corpus --select 'x86_64,debian>=12' --loader libbpf --no-guess prog.o")
		for _, program := range []string{"a", "b", "c"} {
			for kernel, got := range j.status[program] {
				if got != "fails" {
					t.Errorf("%s on %s: %s", program, kernel, got)
				}
			}
		}
	},
	"context-advice": func(t *testing.T, c *cases) {
		r := c.commands(t, "context-advice", "btfgen check --btf debian --no-guess prog.o")
		if strings.Contains(r.output, "trace_event_raw") {
			t.Errorf("advice for another kind of program:\n%s", r.output)
		}
		r.want(t, `context-beyond-arguments`)
		c.commands(t, "context-advice", "btfgen explain context-beyond-record; btfgen explain context-beyond-arguments").want(t,
			`tracepoint/syscalls.*syscall_trace_enter`, `bpf_core_type_matches`)
	},
	"rt-syscall-record": func(t *testing.T, c *cases) {
		j := c.judged(t, "rt-syscall-record", "--btf debian --no-guess prog.o")
		for program, code := range map[string]string{"on_open": "changed-syscall-record", "on_ret": "context-beyond-record", "on_ret2": "", "on_open2": "", "on_raw": ""} {
			for _, p := range j.all {
				if p.Program != program {
					continue
				}
				found := slices.ContainsFunc(p.Findings, func(f fieldFinding) bool { return f.Code == code })
				if found != (code != "") || len(p.Findings) > 1 {
					t.Errorf("%s: %v, want %s", program, p.Findings, code)
				}
			}
		}
	},
	"boot-iter-cgroup": func(t *testing.T, c *cases) {
		slow.Nightly(t)
		r := c.run(t, "boot-iter-cgroup")
		r.want(t, `walk .*loads; attached`, `\[btfgen check: 0\]`)
	},
	"ebpfgo-duplicate-func": func(t *testing.T, c *cases) {
		for loader, want := range map[string]string{"ebpf-go": "fails", "libbpf": "ok"} {
			j := c.judged(t, "ebpfgo-duplicate-func", "--btf debian --no-guess --loader "+loader+" prog.o")
			for kernel, got := range j.status["on_kexec"] {
				if got != want || j.status["on_mprotect"][kernel] != "ok" {
					t.Errorf("%s: on_kexec %s, want %s; on_mprotect %s", loader, got, want, j.status["on_mprotect"][kernel])
				}
			}
		}
	},
	"ebpfgo-lsm-cgroup": func(t *testing.T, c *cases) {
		for loader, want := range map[string]string{"ebpf-go": "fails", "libbpf": "ok"} {
			for kernel, got := range c.judged(t, "ebpfgo-lsm-cgroup", "--btf debian --loader "+loader+" prog.o").status["on_bind"] {
				if got != want {
					t.Errorf("%s on %s: %s, want %s", loader, kernel, got, want)
				}
			}
		}
	},
	"ppc64le-syscalls": func(t *testing.T, c *cases) {
		for kernel, got := range c.judged(t, "ppc64le-syscalls", "--btf ../../corpus/debian-packages/debian/13/ppc64le t1.bpf.o").status["on_openat"] {
			if got != "ok" {
				t.Errorf("%s: %s", kernel, got)
			}
		}
	},
	"module-function": func(t *testing.T, c *cases) {
		all := c.judged(t, "module-function", "--btf ../../corpus --select 'x86_64,debian>=12,debian<=13' k.bpf.o")
		for program, want := range map[string]map[string]string{ // keyed by whether the corpus has a kernel's modules
			"f1": {"6.1.0-47": "fails", "6.12.107": "may fail", "6.18.15": "fails", "7.0.13": "may fail"},
			"f2": {"6.1.0-47": "may fail", "6.12.107": "may fail", "6.18.15": "may fail", "7.0.13": "may fail"},
			"f3": {"6.1.0-47": "may fail", "6.12.107": "may fail", "6.18.15": "may fail", "7.0.13": "may fail"},
		} {
			for kernel, got := range all.status[program] {
				_, release, _ := strings.Cut(kernel, "x86_64/")
				if release, _, _ = strings.Cut(strings.ReplaceAll(release, "+deb13", ""), "-amd64"); got != want[release] {
					t.Errorf("%s on %s: %s, want %s", program, kernel, got, want[release])
				}
				one := c.judged(t, "module-function", "--btf ../../corpus --select '"+kernel+"' k.bpf.o")
				if one.status[program][kernel] != got {
					t.Errorf("%s on %s: %s by itself, %s with others", program, kernel, one.status[program][kernel], got)
				}
			}
		}
		for program, module := range map[string]string{"f2": "nfs", "f3": "ext4"} {
			if !all.has(program, "module "+module+" may have it") {
				t.Errorf("%s: no word of module %s", program, module)
			}
		}
	},
}

// judged are the verdicts of a run of check.
type judged struct {
	status map[string]map[string]string // verdicts, keyed by program and kernel
	all    []fieldProgram
	names  []string // names of the kernels
}

type fieldProgram struct {
	Program  string
	Status   []string
	Findings []fieldFinding
}

// fieldFinding is a finding in the JSON of check.
type fieldFinding struct {
	Status, Code, Subject, Name, Other, Message string
	Names                                       []string
	Kernels                                     []int
}

// judged runs check in a folder with these arguments.
func (c *cases) judged(t *testing.T, folder, args string) *judged {
	t.Helper()
	r := c.commands(t, folder, "btfgen check --json -o out/report.json "+args)
	data, err := os.ReadFile(filepath.Join(r.dir, "out/report.json"))
	if err != nil {
		t.Fatalf("%v: %s", err, r.output)
	}
	var report struct {
		Kernels  []struct{ Name string }
		Programs []fieldProgram
	}
	if err := json.Unmarshal(data, &report); err != nil || len(report.Programs) == 0 || len(report.Kernels) == 0 {
		t.Fatalf("%v: %s", err, r.output)
	}
	j := &judged{status: make(map[string]map[string]string), all: report.Programs}
	for _, k := range report.Kernels {
		j.names = append(j.names, k.Name)
	}
	for _, p := range report.Programs {
		j.status[p.Program] = make(map[string]string)
		for k, s := range p.Status {
			j.status[p.Program][j.names[k]] = s
		}
	}
	return j
}

// kernels returns the kernels on which a program has a verdict.
func (j *judged) kernels(program, status string) (names []string) {
	for kernel, s := range j.status[program] {
		if s == status {
			names = append(names, kernel)
		}
	}
	slices.Sort(names)
	return names
}

// findings returns those of a code on a program, by kernel.
func (j *judged) findings(program, code string) map[string]fieldFinding {
	on := make(map[string]fieldFinding)
	for _, p := range j.all {
		for _, f := range p.Findings {
			if p.Program == program && f.Code == code {
				for _, k := range f.Kernels {
					on[j.names[k]] = f
				}
			}
		}
	}
	return on
}

// has reports whether a program has a finding whose message contains a text.
func (j *judged) has(program, text string) bool {
	return slices.ContainsFunc(j.all, func(p fieldProgram) bool {
		return p.Program == program && slices.ContainsFunc(p.Findings, func(f fieldFinding) bool { return strings.Contains(f.Message, text) })
	})
}
