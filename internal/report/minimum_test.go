// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestMinima has rows that are written down, a kernel a line with what it fails for. Their minima by machine, and causes, are about these
// kernels alone.
func TestMinima(t *testing.T) {
	ringbuf := rule.Finding{Status: rule.Fails, Code: rule.MapTypeMissing, Subject: "BPF_MAP_TYPE_RINGBUF"}
	loop := rule.Finding{Status: rule.Fails, Code: rule.HelperMissing, Subject: "bpf_loop"}
	field := rule.Finding{Status: rule.Fails, Code: relo.FieldMissing, Subject: "struct request.rq_disk"}
	hook := rule.Finding{Status: rule.Fails, Code: rule.AttachTargetInjection, Subject: "hook file_open"}
	long := rule.Finding{Status: rule.Fails, Code: rule.MapKeySize, Subject: "long_keys"}
	key := func(name string) rule.Finding { f := long; f.Subject = name; return f }
	fentry := rule.Finding{Status: rule.Fails, Code: rule.RunningKernelNone, Subject: "fentry"}
	kfunc := rule.Finding{Status: rule.Fails, Code: rule.RunningKernelNone, Subject: "bpf_task_acquire"}
	tracing := rule.Finding{Status: rule.Fails, Code: rule.ProgTypeMissing, Subject: "BPF_PROG_TYPE_TRACING"}
	undeclared := rule.Finding{Status: rule.Fails, Code: rule.KsymUndeclared, Subject: "lib_init"}
	unread := rule.Finding{Status: rule.Fails, Code: rule.ObjectUnread, Subject: "lib.o"}
	version := rule.Finding{Status: rule.Fails, Code: rule.KconfigEbpfGo, Subject: "LINUX_KERNEL_VERSION"}
	kfuncs := rule.Finding{Status: rule.Fails, Code: rule.FeatureMissing, Subject: "calls of kfuncs", Args: rule.Args{Since: rule.Linux(5, 13)}}
	mayLack := rule.Finding{Status: rule.MayFail, Code: rule.FeatureMissing, Subject: "links of it", Args: rule.Args{Since: rule.Linux(6, 0)}}
	for _, tt := range []struct {
		name    string
		kernels map[string][]rule.Finding // by key; one with none works
		may     []string
		other   []string
		want    string // the minima, and a line for each cause
	}{
		{"all", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil}, nil, nil,
			"x86_64 5.10 (the oldest here)"},
		{"one kernel", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil}, nil, nil,
			"x86_64 6.1 (the oldest here)"},
		{"a feature with a release", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}}, nil, nil,
			"x86_64 5.8; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"a kernel between that fails for something else", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": {field}, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}}, nil, nil,
			"x86_64 6.1 (5.10 fails); x86_64 5.10: struct request.rq_disk: field absent (program p) [field-missing]; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"two features", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": {loop}, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf, loop}}, nil, nil,
			"x86_64 5.17; x86_64 4.19, 5.10: helper bpf_loop (5.17): the kernel has no such helper (program p) [helper-missing]; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"a backport", map[string][]rule.Finding{
			"rhel/8/x86_64/4.18.0-553.el8.x86_64": nil, "ubuntu/20.04/x86_64/5.4.0-42-generic": {ringbuf}, "debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": nil}, nil, nil,
			"x86_64 5.8 (4.18 ok); x86_64 5.4: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"a machine on which it does not work", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": nil, "debian/13/armhf/6.12.1-armmp": {field}, "debian/13/armhf/6.12.2-armmp": {field}}, nil, nil,
			"x86_64 5.10 (the oldest here), arm never (6.12 tried); arm 6.12: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"newer ones that fail", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": {hook}, "debian/13/x86_64/6.12.1-amd64": {hook}, "debian/14/x86_64/7.0.1-amd64": {hook, long}}, nil, nil,
			"x86_64 5.10 only (the oldest here, 6.1 to 7.0 fail); x86_64 6.1 to 7.0: hook file_open: fmod_ret is only for functions that are made for error injection, which BTF does not show (program p) [attach-target-error-injection]; x86_64 7.0: map long_keys: keys cannot be of more than 0 bytes [map-def-key-size]"},
		{"several maps", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": {long, key("b"), key("c"), loop}}, nil, nil,
			"x86_64 6.1 (5.10 fails); x86_64 5.10: helper bpf_loop (5.17): the kernel has no such helper (program p) [helper-missing]; x86_64 5.10: map b, c, long_keys: keys cannot be of more than 0 bytes [map-def-key-size]"},
		{"one newer that fails is an exception", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": nil, "debian/13/x86_64/6.12.1-amd64": {field}}, nil, nil,
			"x86_64 5.10 to 6.1 (the oldest here, 6.12 fails); x86_64 6.12: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"nowhere", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {field}, "debian/11/x86_64/5.10.0-30-amd64": {loop, field}}, nil, nil,
			"x86_64 never (5.10, 6.1 tried); every kernel: struct request.rq_disk: field absent (program p) [field-missing]; x86_64 5.10: helper bpf_loop (5.17): the kernel has no such helper (program p) [helper-missing]"},
		{"not certain", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil},
			[]string{"debian/11/x86_64/5.10.0-30-amd64"}, nil,
			"x86_64 6.1 or perhaps 5.10 (the oldest here)"},
		{"nowhere certain", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}},
			[]string{"debian/12/x86_64/6.1.0-47-amd64"}, nil,
			"x86_64 perhaps 5.8; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"other machines", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/12/arm64/6.1.0-47-arm64": nil}, nil,
			[]string{"debian/12/arm64/6.1.0-47-arm64"},
			"x86_64 6.1 (the oldest here)"},
		{"other machines only", map[string][]rule.Finding{"debian/12/arm64/6.1.0-47-arm64": nil}, nil, []string{"debian/12/arm64/6.1.0-47-arm64"},
			"no kernel here is for it"},
		{"a name without a release", map[string][]rule.Finding{"vmlinux": nil, "other": {field}}, nil, nil,
			"unknown 1 of 2; other: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"one kernel of many", map[string][]rule.Finding{"android/12/arm64/5.10.1": nil, "debian/11/x86_64/5.10.0-30-amd64": {field}, "ubuntu/22.04/x86_64/5.15.0-9-generic": {field},
			"debian/12/x86_64/6.1.0-47-amd64": {field}, "debian/10/x86_64/4.19.0-1-amd64": {field}}, nil, nil,
			"x86_64 never (4.19 to 6.1 tried), arm64 5.10 (the oldest here); all x86_64: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"perhaps one of many", map[string][]rule.Finding{"android/12/arm64/5.10.1": nil, "debian/11/x86_64/5.10.0-30-amd64": {field}, "ubuntu/22.04/x86_64/5.15.0-9-generic": {field},
			"debian/12/x86_64/6.1.0-47-amd64": {field}}, []string{"android/12/arm64/5.10.1"}, nil,
			"x86_64 never (5.10 to 6.1 tried), arm64 perhaps 5.10 (the oldest here); all x86_64: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"no BTF of its own", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {fentry, kfunc, ringbuf},
			"debian/9/x86_64/4.9.0-1-amd64": {kfunc}}, nil, nil,
			"x86_64 6.1 (4.19 fails); x86_64 4.9, 4.19: the running kernel has no BTF of its own, which this needs whatever BTF is shipped () (program p) [running-kernel-no-btf]; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"an object that is not linked", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {undeclared, unread}, "debian/11/x86_64/5.10.0-30-amd64": {undeclared, unread}}, nil, nil,
			"x86_64 never (5.10, 6.1 tried); every kernel: ksym lib_init: the object does not declare what it is (program p) [ksym-undeclared]; every kernel: lib.o: ebpf-go does not read the object (program p) [object-unread]"},
		{"an object that a loader does not open", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {unread}}, nil, nil,
			"x86_64 never (6.1 tried); x86_64 6.1: lib.o: ebpf-go does not read the object (program p) [object-unread]"},
		{"a variable that a loader does not set", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {version, loop}}, nil, nil,
			"x86_64 never (6.1 tried); x86_64 6.1: helper bpf_loop (5.17): the kernel has no such helper (program p) [helper-missing]; x86_64 6.1: kconfig LINUX_KERNEL_VERSION: ebpf-go sets it only where its type is an integer, without typedef or const (program p) [kconfig-ebpf-go-type]"},
		{"a newer helper behind a type of programs", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {tracing, loop}}, nil, nil,
			"x86_64 5.17; x86_64 4.19: helper bpf_loop (5.17): the kernel has no such helper (program p) [helper-missing]; x86_64 4.19: prog type BPF_PROG_TYPE_TRACING (5.5): the kernel has no such programs (program p) [prog-type-missing]"},
		{"a field behind a type of programs, of which the release is not known", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {tracing, field}}, nil, nil,
			"x86_64 6.1 (4.19 fails); x86_64 4.19: struct request.rq_disk: field absent (program p) [field-missing]; x86_64 4.19: prog type BPF_PROG_TYPE_TRACING (5.5): the kernel has no such programs (program p) [prog-type-missing]"},
		{"a feature with a release behind a map", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf, kfuncs}}, nil, nil,
			"x86_64 5.13; x86_64 4.19: calls of kfuncs: not supported before Linux 5.13 (program p) [feature-missing]; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"a feature that may be missing", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf, mayLack}}, nil, nil,
			"x86_64 6.0; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"a kernel without a release that fails", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}, "lab/x86_64/next": {field}}, nil, nil,
			"x86_64 5.8, unknown fails; lab/x86_64/next: struct request.rq_disk: field absent (program p) [field-missing]; x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"Android", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil, "android/common-android12-5.10/arm64/a12-5.10-2022-03-arm64": {field}}, nil, nil,
			"x86_64 5.10 (the oldest here), arm64 never (5.10 tried); arm64 5.10: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"Android of another release", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}, "android/common-android12-5.10/arm64/a12-5.10-2022-03-arm64": nil}, nil, nil,
			"x86_64 5.8, arm64 5.10 (the oldest here); x86_64 4.19: map type BPF_MAP_TYPE_RINGBUF (5.8): the kernel has no such maps [map-type-missing]"},
		{"no release", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil, "android/x/arm64/build-2022-03": {field}}, nil, nil,
			"x86_64 5.10 (the oldest here), unknown fails; android/x/arm64/build-2022-03: struct request.rq_disk: field absent (program p) [field-missing]"},
		{"machines that lack different things", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/arm64/6.1.0-47-arm64": nil, "debian/12/i386/6.1.0-47-686": nil,
			"debian/13/armhf/6.12.1-armmp": {field}, "debian/13/s390x/6.12.2-s390x": {hook}}, nil, nil,
			"x86_64 5.10 (the oldest here), arm64 6.1 (the oldest here), arm never (6.12 tried), i386 6.1 (the oldest here), s390x never (6.12 tried); s390x 6.12: hook file_open: fmod_ret is only for functions that are made for error injection, which BTF does not show (program p) [attach-target-error-injection]; arm 6.12: struct request.rq_disk: field absent (program p) [field-missing]"},
	} {
		r := &verdict.Report{Programs: []verdict.ProgramRow{{Object: "o", Name: "p"}}, Objects: []verdict.ObjectRow{{Object: "o", Programs: []int{0}}}}
		row, p := &r.Objects[0], &r.Programs[0]
		d := verdict.Decider{}
		for k, name := range slices.Sorted(maps.Keys(tt.kernels)) {
			r.Kernels = append(r.Kernels, verdict.Column{Name: name})
			s := rule.OK
			for _, f := range tt.kernels[name] {
				s = rule.Fails
				p.Findings = append(p.Findings, verdict.KernelFinding{Finding: f, Kernels: []int{k}})
			}
			switch {
			case s == rule.Fails:
				d.Kernels = append(d.Kernels, k)
			case slices.Contains(tt.may, name):
				s = rule.MayFail
			case slices.Contains(tt.other, name):
				s = rule.Other
			}
			row.Status = append(row.Status, s)
		}
		row.Decides, p.Status = []verdict.Decider{d}, row.Status
		r.Summarize()
		got := minimaText(r, row)
		for i := range r.Causes {
			got += "; " + strings.TrimPrefix(causeLine(r, &r.Causes[i], 3), "o, ")
		}
		if got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}
