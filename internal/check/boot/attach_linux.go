// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// loopback is the index of the loopback device, which each network namespace has.
const loopback = 1

// attach attaches a program to what its section names. If the tool chooses the target, it attaches to something that a
// machine without disks and devices has: the loopback device, a new socket, or btfgen itself.
func attach(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	section := strings.TrimPrefix(spec.SectionName, "?")
	to := spec.AttachTo
	switch spec.Type {
	case ebpf.PerfEvent:
		return attachPerfEvent(p)
	case ebpf.SocketFilter, ebpf.SkReuseport, ebpf.SkLookup, ebpf.FlowDissector:
		return attachSocket(spec, p)
	case ebpf.XDP, ebpf.SchedCLS, ebpf.Netfilter:
		return attachPackets(spec, p)
	case ebpf.CGroupSKB, ebpf.CGroupSock, ebpf.CGroupSockAddr, ebpf.CGroupDevice, ebpf.CGroupSysctl, ebpf.CGroupSockopt, ebpf.SockOps:
		as := spec.AttachType
		if section == "cgroup/skb" {
			as = ebpf.AttachCGroupInetIngress // the loader chooses
		}
		return attachCgroup(as, p)
	case ebpf.Kprobe:
		kind, _, _ := strings.Cut(section, "/")
		if strings.HasPrefix(kind, "u") { // uprobe, uretprobe, usdt
			return attachUprobe(strings.TrimSuffix(kind, ".s"), p)
		}
		if to != "" {
			return attachKprobe(kind, to, p)
		}
	case ebpf.TracePoint:
		if group, name, ok := strings.Cut(to, "/"); ok {
			return link.Tracepoint(group, name, p, nil)
		}
	case ebpf.RawTracepoint, ebpf.RawTracepointWritable:
		if to != "" {
			return link.AttachRawTracepoint(link.RawTracepointOptions{Name: to, Program: p})
		}
	case ebpf.Tracing:
		switch {
		case to == "", to == "bpf_map_elem", to == "bpf_sk_storage_map": // the tool chooses
		case spec.AttachType == ebpf.AttachTraceIter:
			return link.AttachIter(link.IterOptions{Program: p})
		default:
			l, err := link.AttachTracing(link.TracingOptions{Program: p})
			if errors.Is(err, unix.EBUSY) {
				err = fmt.Errorf("%w: %s cannot be traced: it was declared inline, or its file is built so", err, to)
			}
			return l, err
		}
	case ebpf.LSM:
		switch {
		case to == "":
		case spec.AttachType == ebpf.AttachLSMMac:
			return link.AttachLSM(link.LSMOptions{Program: p})
		case spec.AttachType == ebpf.AttachLSMCgroup:
			return attachCgroup(spec.AttachType, p)
		}
	}
	return nil, errNotTried
}

func attachCgroup(as ebpf.AttachType, p *ebpf.Program) (io.Closer, error) {
	return link.AttachCgroup(link.CgroupOptions{Path: "/sys/fs/cgroup", Attach: as, Program: p})
}

// attachKprobe attaches to a function of the kernel.
func attachKprobe(kind, to string, p *ebpf.Program) (io.Closer, error) {
	at, offset, _ := strings.Cut(to, "+")
	n, _ := strconv.ParseUint(offset, 0, 64)
	opts := &link.KprobeOptions{Offset: n}
	multi := link.KprobeMultiOptions{Symbols: []string{to}}
	switch {
	case kind == "kprobe":
		return link.Kprobe(at, p, opts)
	case kind == "kretprobe":
		return link.Kretprobe(at, p, nil)
	case kind == "ksyscall":
		return link.Kprobe("sys_"+at, p, opts)
	case kind == "kretsyscall":
		return link.Kretprobe("sys_"+at, p, nil)
	case strings.ContainsAny(to, "*?"):
	case kind == "kprobe.multi":
		return link.KprobeMulti(p, multi)
	case kind == "kretprobe.multi":
		return link.KretprobeMulti(p, multi)
	}
	return nil, errNotTried
}

// attachUprobe attaches to the entry point of btfgen, whatever the section names: the guest has no other program.
func attachUprobe(kind string, p *ebpf.Program) (io.Closer, error) {
	const self = "/proc/self/exe"
	at, err := entryOffset(self)
	if err != nil {
		return nil, err
	}
	exe, err := link.OpenExecutable(self)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "uprobe", "usdt":
		return exe.Uprobe("", p, &link.UprobeOptions{Address: at})
	case "uretprobe":
		return exe.Uretprobe("", p, &link.UprobeOptions{Address: at})
	case "uprobe.multi":
		return exe.UprobeMulti(nil, p, &link.UprobeMultiOptions{Addresses: []uint64{at}})
	case "uretprobe.multi":
		return exe.UretprobeMulti(nil, p, &link.UprobeMultiOptions{Addresses: []uint64{at}})
	}
	return nil, errNotTried
}

// entryOffset returns the offset of a program's entry point in its file.
func entryOffset(path string) (uint64, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for _, s := range f.Progs {
		if s.Type == elf.PT_LOAD && s.Vaddr <= f.Entry && f.Entry-s.Vaddr < s.Filesz {
			return f.Entry - s.Vaddr + s.Off, nil
		}
	}
	return 0, fmt.Errorf("%s: its entry point is outside its segments", path)
}

// attachPerfEvent attaches to a clock.
func attachPerfEvent(p *ebpf.Program) (io.Closer, error) {
	second := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: 1e9}
	fd, err := unix.PerfEventOpen(&second, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return held(fd), unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, p.FD())
}

// attachSocket attaches to a new socket or the network namespace.
func attachSocket(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	switch spec.Type {
	case ebpf.SocketFilter:
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		return held(fd), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, p.FD())
	case ebpf.SkReuseport:
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return held(fd), err
		}
		return held(fd), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_EBPF, p.FD())
	}
	ns, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return link.AttachNetNs(int(ns.Fd()), p)
}

// attachPackets attaches to the loopback device or a hook of netfilter. It does not use netlink on kernels without links
// for a device.
func attachPackets(spec *ebpf.ProgramSpec, p *ebpf.Program) (l io.Closer, err error) {
	switch as := spec.AttachType; {
	case as == ebpf.AttachXDP, spec.Type == ebpf.XDP && as == ebpf.AttachNone:
		l, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: loopback, Flags: link.XDPGenericMode})
		// Before 5.15, generic XDP rejects programs that redirect through maps which can hold programs.
		if errors.Is(err, unix.EINVAL) {
			return nil, errNotTried
		}
	case as == ebpf.AttachTCXIngress, as == ebpf.AttachTCXEgress:
		return link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: as})
	case spec.Type == ebpf.SchedCLS && as == ebpf.AttachNone:
		l, err = link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: ebpf.AttachTCXIngress})
	case spec.Type == ebpf.Netfilter:
		return link.AttachNetfilter(link.NetfilterOptions{Program: p, ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetLocalIn, Priority: 1})
	default: // netkit, entries of maps
		return nil, errNotTried
	}
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = errNotTried
	}
	return l, err
}

// held is an open file.
type held int

func (h held) Close() error { return unix.Close(int(h)) }
