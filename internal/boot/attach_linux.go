// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// attach attaches a program to what its section names, as loaders do that attach programs by themselves. What programs of XDP are
// attached to is a device, and what that can do is its driver's matter.
func attach(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	section := strings.TrimPrefix(spec.SectionName, "?")
	kind, _, _ := strings.Cut(section, "/")
	to := spec.AttachTo
	switch spec.Type {
	case ebpf.CGroupSKB, ebpf.CGroupSock, ebpf.CGroupSockAddr, ebpf.CGroupDevice, ebpf.CGroupSysctl, ebpf.CGroupSockopt, ebpf.SockOps:
		as := spec.AttachType
		if spec.Type == ebpf.CGroupSKB && section == "cgroup/skb" {
			as = ebpf.AttachCGroupInetIngress // the loader chooses
		}
		return link.AttachCgroup(link.CgroupOptions{Path: "/sys/fs/cgroup", Attach: as, Program: p})
	case ebpf.SchedCLS:
		if spec.AttachType == ebpf.AttachTCXIngress || spec.AttachType == ebpf.AttachTCXEgress {
			return link.AttachTCX(link.TCXOptions{Program: p, Interface: 1, Attach: spec.AttachType})
		}
	case ebpf.SkLookup, ebpf.FlowDissector:
		ns, err := os.Open("/proc/self/ns/net")
		if err != nil {
			return nil, err
		}
		defer ns.Close()
		return link.AttachNetNs(int(ns.Fd()), p)
	}
	if to == "" {
		return nil, errNotTried
	}
	switch spec.Type {
	case ebpf.Kprobe:
		return attachKprobe(kind, to, p)
	case ebpf.TracePoint:
		if group, name, ok := strings.Cut(to, "/"); ok {
			return link.Tracepoint(group, name, p, nil)
		}
	case ebpf.RawTracepoint, ebpf.RawTracepointWritable:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: to, Program: p})
	case ebpf.Tracing:
		if spec.AttachType == ebpf.AttachTraceIter {
			return link.AttachIter(link.IterOptions{Program: p})
		}
		return link.AttachTracing(link.TracingOptions{Program: p})
	case ebpf.LSM:
		if spec.AttachType == ebpf.AttachLSMMac {
			return link.AttachLSM(link.LSMOptions{Program: p})
		}
	}
	return nil, errNotTried
}

// attachKprobe attaches to a function of the kernel. Programs that could be probed are not there.
func attachKprobe(kind, to string, p *ebpf.Program) (io.Closer, error) {
	at, offset, _ := strings.Cut(to, "+")
	n, _ := strconv.ParseUint(offset, 0, 64)
	opts := &link.KprobeOptions{Offset: n}
	switch kind {
	case "kprobe":
		return link.Kprobe(at, p, opts)
	case "kretprobe":
		return link.Kretprobe(at, p, nil)
	case "ksyscall":
		return link.Kprobe("sys_"+at, p, opts)
	case "kretsyscall":
		return link.Kretprobe("sys_"+at, p, nil)
	case "kprobe.multi", "kretprobe.multi":
		if strings.ContainsAny(to, "*?") {
			break
		}
		multi := link.KprobeMultiOptions{Symbols: []string{to}}
		if kind == "kprobe.multi" {
			return link.KprobeMulti(p, multi)
		}
		return link.KretprobeMulti(p, multi)
	}
	return nil, errNotTried
}
