// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestHeadline sums up rows that are written down: a kernel a line, its verdict and, where that
// is a failure, what for.
func TestHeadline(t *testing.T) {
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
		want    string
	}{
		{"all", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil}, nil, nil,
			"Linux 5.10 and later; 2 of 2 kernels."},
		{"one kernel", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil}, nil, nil,
			"Linux 6.1 and later; 1 of 1 kernel."},
		{"a feature with a release", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}}, nil, nil,
			"Linux 5.8 and later; 1 of 2 kernels. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"a kernel between that fails for something else", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": {field}, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}}, nil, nil,
			"Linux 6.1 and later; 1 of 3 kernels, none between 5.10 and 6.1. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8) and struct request.rq_disk."},
		{"two features", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": {loop}, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf, loop}}, nil, nil,
			"Linux 5.17 and later; 1 of 3 kernels. Older ones lack bpf_loop (5.17) and BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"a backport", map[string][]rule.Finding{
			"rhel/8/x86_64/4.18.0-553.el8.x86_64": nil, "ubuntu/20.04/x86_64/5.4.0-42-generic": {ringbuf}, "debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": nil}, nil, nil,
			"Linux 5.8 and later; 3 of 4 kernels. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8). Works on rhel x86_64 4.18.0-553.el8.x86_64."},
		{"a machine on which it does not work", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": nil, "debian/13/armhf/6.12.1-armmp": {field}, "debian/13/armhf/6.12.2-armmp": {field}}, nil, nil,
			"Linux 5.10 and later; 2 of 4 kernels. Fails on debian arm 6.12.1-armmp … 6.12.2-armmp (2), which lack struct request.rq_disk."},
		{"newer ones that fail", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": {hook}, "debian/13/x86_64/6.12.1-amd64": {hook}, "debian/14/x86_64/7.0.1-amd64": {hook, long}}, nil, nil,
			"Linux 5.10; 1 of 4 kernels. Newer ones do not allow hook file_open and the definition of map long_keys."},
		{"several maps", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": {long, key("b"), key("c"), loop}}, nil, nil,
			"Linux 6.1 and later; 1 of 2 kernels, none between 5.10 and 6.1. Older ones lack bpf_loop (5.17). Older ones do not allow the definitions of 3 maps such as b."},
		{"one newer that fails is an exception", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/x86_64/6.1.0-47-amd64": nil, "debian/13/x86_64/6.12.1-amd64": {field}}, nil, nil,
			"Linux 5.10 and later; 2 of 3 kernels. Fails on debian x86_64 6.12.1-amd64, which lacks struct request.rq_disk."},
		{"nowhere", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {field}, "debian/11/x86_64/5.10.0-30-amd64": {loop, field}}, nil, nil,
			"None of 2 kernels. They lack struct request.rq_disk and bpf_loop (5.17)."},
		{"not certain", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil},
			[]string{"debian/11/x86_64/5.10.0-30-amd64"}, nil,
			"Linux 6.1 and later; 1 of 2 kernels, none between 5.10 and 6.1; 1 is uncertain."},
		{"nowhere certain", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}},
			[]string{"debian/12/x86_64/6.1.0-47-amd64"}, nil,
			"None of 2 kernels for certain; 1 (Linux 5.8 and later) is uncertain. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"other machines", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/12/arm64/6.1.0-47-arm64": nil}, nil,
			[]string{"debian/12/arm64/6.1.0-47-arm64"},
			"Linux 6.1 and later; 1 of 1 kernel."},
		{"other machines only", map[string][]rule.Finding{"debian/12/arm64/6.1.0-47-arm64": nil}, nil, []string{"debian/12/arm64/6.1.0-47-arm64"},
			"No kernel here is one that it is for."},
		{"a name without a release", map[string][]rule.Finding{"vmlinux": nil, "other": {field}}, nil, nil,
			"1 of 2 kernels. The others lack struct request.rq_disk."},
		{"one kernel of many", map[string][]rule.Finding{"android/12/arm64/5.10.1": nil, "debian/11/x86_64/5.10.0-30-amd64": {field}, "ubuntu/22.04/x86_64/5.15.0-9-generic": {field},
			"debian/12/x86_64/6.1.0-47-amd64": {field}, "debian/10/x86_64/4.19.0-1-amd64": {field}}, nil, nil,
			"1 of 5 kernels. The others lack struct request.rq_disk. Works on android arm64 5.10.1."},
		{"perhaps one of many", map[string][]rule.Finding{"android/12/arm64/5.10.1": nil, "debian/11/x86_64/5.10.0-30-amd64": {field}, "ubuntu/22.04/x86_64/5.15.0-9-generic": {field},
			"debian/12/x86_64/6.1.0-47-amd64": {field}}, []string{"android/12/arm64/5.10.1"}, nil,
			"None of 4 kernels for certain; 1 is uncertain. The others lack struct request.rq_disk."},
		{"no BTF of its own", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {fentry, kfunc, ringbuf},
			"debian/9/x86_64/4.9.0-1-amd64": {kfunc}}, nil, nil,
			"Linux 6.1 and later; 1 of 3 kernels, none between 4.19 and 6.1. Older ones lack BTF of their own and BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"an object that is not linked", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {undeclared, unread}, "debian/11/x86_64/5.10.0-30-amd64": {undeclared, unread}}, nil, nil,
			"None of 2 kernels. It is not linked: it refers to lib_init, which other objects define ('bpftool gen object' links them) or the loader adds [ksym-undeclared]."},
		{"an object that a loader does not open", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {unread}}, nil, nil,
			"None of 1 kernel. ebpf-go does not read the object [object-unread]."},
		{"a variable that a loader does not set", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": {version, loop}}, nil, nil,
			"None of 1 kernel. Kconfig LINUX_KERNEL_VERSION: ebpf-go sets it only where its type is an integer, without typedef or const [kconfig-ebpf-go-type]. They lack bpf_loop (5.17)."},
		{"a newer helper behind a type of programs", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {tracing, loop}}, nil, nil,
			"Linux 5.17 and later; 1 of 2 kernels. Older ones lack bpf_loop (5.17) and BPF_PROG_TYPE_TRACING (5.5)."},
		{"a field behind a type of programs, of which the release is not known", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {tracing, field}}, nil, nil,
			"Linux 6.1 and later; 1 of 2 kernels, none between 4.19 and 6.1. Older ones lack BPF_PROG_TYPE_TRACING (5.5) and struct request.rq_disk."},
		{"a feature with a release behind a map", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf, kfuncs}}, nil, nil,
			"Linux 5.13 and later; 1 of 2 kernels. Older ones lack calls of kfuncs (5.13) and BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"a feature that may be missing", map[string][]rule.Finding{"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf, mayLack}}, nil, nil,
			"Linux 6.0 and later; 1 of 2 kernels. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"a kernel without a release that fails", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}, "lab/x86_64/next": {field}}, nil, nil,
			"Linux 5.8 and later; 1 of 3 kernels. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8). Fails on lab/x86_64/next, which lacks struct request.rq_disk."},
		{"Android", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil, "android/common-android12-5.10/arm64/a12-5.10-2022-03-arm64": {field}}, nil, nil,
			"Linux 6.1 and later; 2 of 3 kernels, none between 5.10 and 6.1. Older ones lack struct request.rq_disk. Works on debian x86_64 5.10.0-30-amd64."},
		{"Android of another release", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/10/x86_64/4.19.0-1-amd64": {ringbuf}, "android/common-android12-5.10/arm64/a12-5.10-2022-03-arm64": nil}, nil, nil,
			"Linux 5.8 and later; 2 of 3 kernels. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8)."},
		{"no release", map[string][]rule.Finding{
			"debian/12/x86_64/6.1.0-47-amd64": nil, "debian/11/x86_64/5.10.0-30-amd64": nil, "android/x/arm64/build-2022-03": {field}}, nil, nil,
			"Linux 5.10 and later; 2 of 3 kernels. Fails on android arm64 build-2022-03, which lacks struct request.rq_disk."},
		{"machines that lack different things", map[string][]rule.Finding{
			"debian/11/x86_64/5.10.0-30-amd64": nil, "debian/12/arm64/6.1.0-47-arm64": nil, "debian/12/i386/6.1.0-47-686": nil,
			"debian/13/armhf/6.12.1-armmp": {field}, "debian/13/s390x/6.12.2-s390x": {hook}}, nil, nil,
			"Linux 5.10 and later; 3 of 5 kernels. Fails on debian arm 6.12.1-armmp, which lacks struct request.rq_disk, and debian s390x 6.12.2-s390x, which does not allow hook file_open."},
	} {
		rep := &verdict.Report{Programs: []verdict.ProgramRow{{}}}
		row := verdict.ObjectRow{Programs: []int{0}}
		p := &rep.Programs[0]
		d := verdict.Decider{}
		for k, name := range slices.Sorted(maps.Keys(tt.kernels)) {
			rep.Kernels = append(rep.Kernels, verdict.Column{Name: name})
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
		row.Decides = []verdict.Decider{d}
		rep.Summarize(&row)
		if got := report.Headline(rep, &row); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestHeadlineOrder checks that what an object lacks has one order, even if it differs only in whether kernels have it.
func TestHeadlineOrder(t *testing.T) {
	rep := &verdict.Report{Kernels: []verdict.Column{{Name: "debian/12/x86_64/6.1.0-47-amd64"}}, Programs: []verdict.ProgramRow{{}}}
	for _, code := range []rule.Code{rule.AttachTargetInjection, rule.AttachTargetMissing} {
		rep.Programs[0].Findings = append(rep.Programs[0].Findings,
			verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: code, Subject: "func x"}, Kernels: []int{0}})
	}
	for range 50 {
		row := verdict.ObjectRow{Programs: []int{0}, Status: []rule.Status{rule.Fails}, Decides: []verdict.Decider{{Kernels: []int{0}}}}
		rep.Summarize(&row)
		if l := row.Headline.Lacks; len(l) != 2 || l[0].Refused || !l[1].Refused {
			t.Fatalf("%+v", l)
		}
	}
}
