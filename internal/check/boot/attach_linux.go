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

// loopback is the index of the only device that each network namespace has.
const loopback = 1

// attach attaches a program to what its section names, as loaders do that attach programs by themselves; and where tools say what to
// attach to, to what a machine without disks and devices has: its loopback device, a socket of its own, its own program.
func attach(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	switch spec.Type {
	case ebpf.Kprobe:
		if kind := section(spec); strings.HasPrefix(kind, "u") { // uprobe, uretprobe, usdt and their like
			return attachUprobe(kind, p)
		}
	case ebpf.PerfEvent:
		return attachPerfEvent(p)
	case ebpf.SocketFilter, ebpf.SkReuseport, ebpf.SkMsg, ebpf.SkSKB, ebpf.SkLookup, ebpf.FlowDissector:
		return attachSocket(spec, p)
	case ebpf.XDP, ebpf.SchedCLS, ebpf.Netfilter:
		return attachPackets(spec, p)
	case ebpf.CGroupSKB, ebpf.CGroupSock, ebpf.CGroupSockAddr, ebpf.CGroupDevice, ebpf.CGroupSysctl, ebpf.CGroupSockopt, ebpf.SockOps:
		as := spec.AttachType
		if spec.Type == ebpf.CGroupSKB && section(spec) == "cgroup/skb" {
			as = ebpf.AttachCGroupInetIngress // the loader chooses
		}
		return link.AttachCgroup(link.CgroupOptions{Path: "/sys/fs/cgroup", Attach: as, Program: p})
	}
	if spec.AttachTo == "" {
		return nil, errNotTried
	}
	return attachNamed(spec, p)
}

// section is the name of a program's section without the mark of those that are not loaded.
func section(spec *ebpf.ProgramSpec) string { return strings.TrimPrefix(spec.SectionName, "?") }

// attachNamed attaches to something of the kernel's that has a name.
func attachNamed(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	to := spec.AttachTo
	switch spec.Type {
	case ebpf.Kprobe:
		kind, _, _ := strings.Cut(section(spec), "/")
		return attachKprobe(kind, to, p)
	case ebpf.TracePoint:
		if group, name, ok := strings.Cut(to, "/"); ok {
			return link.Tracepoint(group, name, p, nil)
		}
	case ebpf.RawTracepoint, ebpf.RawTracepointWritable:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: to, Program: p})
	case ebpf.Tracing:
		if spec.AttachType == ebpf.AttachTraceIter {
			if to == "bpf_map_elem" || to == "bpf_sk_storage_map" { // of a map of the tool's choice
				break
			}
			return link.AttachIter(link.IterOptions{Program: p})
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if errors.Is(err, unix.EBUSY) {
			err = fmt.Errorf("%w: %s cannot be traced: it was declared inline, or its file is built so", err, to)
		}
		return l, err
	case ebpf.LSM:
		switch spec.AttachType {
		case ebpf.AttachLSMMac:
			return link.AttachLSM(link.LSMOptions{Program: p})
		case ebpf.AttachLSMCgroup:
			return link.AttachCgroup(link.CgroupOptions{Path: "/sys/fs/cgroup", Attach: spec.AttachType, Program: p})
		}
	}
	return nil, errNotTried
}

// attachKprobe attaches to a function of the kernel.
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

// attachUprobe attaches to where this program begins, whatever the section names: other programs are not there.
func attachUprobe(section string, p *ebpf.Program) (io.Closer, error) {
	const self = "/proc/self/exe"
	at, err := entryOffset(self)
	if err != nil {
		return nil, err
	}
	exe, err := link.OpenExecutable(self)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(section, "/")
	switch strings.TrimSuffix(kind, ".s") {
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

// entryOffset returns where in a program's file the code is that it begins with.
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
	return 0, fmt.Errorf("%s: its entry point is in no segment", path)
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

// attachSocket attaches to a socket that nobody sends anything to, to a map of sockets, or to the network namespace.
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
	case ebpf.SkMsg, ebpf.SkSKB:
		if spec.AttachType == ebpf.AttachNone { // the tool says whether it is a parser or a verdict
			return nil, errNotTried
		}
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.SockMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err != nil {
			return nil, err
		}
		return m, link.RawAttachProgram(link.RawAttachProgramOptions{Target: m.FD(), Program: p, Attach: spec.AttachType})
	}
	ns, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return link.AttachNetNs(int(ns.Fd()), p)
}

// attachPackets attaches to what packets go through. Where a kernel has no such link tools attach by netlink: that is not tried.
func attachPackets(spec *ebpf.ProgramSpec, p *ebpf.Program) (l io.Closer, err error) {
	switch as := spec.AttachType; {
	case as == ebpf.AttachXDP, spec.Type == ebpf.XDP && as == ebpf.AttachNone:
		l, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: loopback, Flags: link.XDPGenericMode})
		// Devices without a driver for XDP take no programs, before 5.15, that redirect through maps which can have programs.
		if errors.Is(err, unix.EINVAL) {
			return nil, errNotTried
		}
	case as == ebpf.AttachTCXIngress, as == ebpf.AttachTCXEgress:
		return link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: as})
	case spec.Type == ebpf.SchedCLS && as == ebpf.AttachNone:
		l, err = link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: ebpf.AttachTCXIngress})
	case spec.Type == ebpf.Netfilter:
		return link.AttachNetfilter(link.NetfilterOptions{Program: p, ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetLocalIn, Priority: 1})
	case as == ebpf.AttachXDPDevMap:
		return intoMap(ebpf.DevMap, loopback, p)
	case as == ebpf.AttachXDPCPUMap:
		return intoMap(ebpf.CPUMap, 16, p) // packets that may wait
	default: // netkit
		return nil, errNotTried
	}
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = errNotTried
	}
	return l, err
}

// intoMap puts a program into a map of devices or processors, with what else such an entry has.
func intoMap(typ ebpf.MapType, first uint32, p *ebpf.Program) (io.Closer, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: typ, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	return m, m.Put(uint32(0), []uint32{first, uint32(p.FD())})
}

// held is an open file.
type held int

func (h held) Close() error { return unix.Close(int(h)) }
