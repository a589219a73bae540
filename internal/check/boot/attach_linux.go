// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Targets of programs whose tool chooses the target. The guest has no disk and no network.
const (
	loopback   = 1 // index of the loopback device
	cgroupRoot = "/sys/fs/cgroup"
	executable = "/proc/self/exe" // btfgen itself
	netNS      = "/proc/self/ns/net"
)

// attachments attach programs, by type. A section that names no target in the kernel gets one of the targets above, or a new socket
// or map. errNotTried is returned where only the tool can attach.
var attachments = map[ebpf.ProgramType]func(*ebpf.ProgramSpec, *ebpf.Program) (io.Closer, error){
	ebpf.Kprobe:                attachProbe,
	ebpf.TracePoint:            attachTracepoint,
	ebpf.RawTracepoint:         attachRawTracepoint,
	ebpf.RawTracepointWritable: attachRawTracepoint,
	ebpf.Tracing:               attachTracing,
	ebpf.LSM:                   attachLSM,
	ebpf.PerfEvent:             attachPerfEvent,
	ebpf.XDP:                   attachXDP,
	ebpf.SchedCLS:              attachTC,
	ebpf.Netfilter:             attachNetfilter,
	ebpf.SocketFilter:          attachSocket(unix.AF_UNIX, unix.SO_ATTACH_BPF),
	ebpf.SkReuseport:           attachSocket(unix.AF_INET, unix.SO_ATTACH_REUSEPORT_EBPF),
	ebpf.SkLookup:              attachNetNS,
	ebpf.FlowDissector:         attachNetNS,
	ebpf.SkSKB:                 attachSockMap,
	ebpf.SkMsg:                 attachSockMap,
	ebpf.CGroupSKB:             attachCgroup,
	ebpf.CGroupSock:            attachCgroup,
	ebpf.CGroupSockAddr:        attachCgroup,
	ebpf.CGroupDevice:          attachCgroup,
	ebpf.CGroupSysctl:          attachCgroup,
	ebpf.CGroupSockopt:         attachCgroup,
	ebpf.SockOps:               attachCgroup,
}

// attach attaches a program to what its section names, or to a target that every guest has.
func attach(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	if f := attachments[spec.Type]; f != nil {
		return f(spec, p)
	}
	return nil, errNotTried
}

// attachProbe attaches to a function of the kernel or, for uprobes, to the entry point of btfgen.
func attachProbe(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(spec.SectionName, "?"), "/")
	if strings.HasPrefix(kind, "u") { // uprobe, uretprobe, usdt
		return attachUprobe(strings.TrimSuffix(kind, ".s"), p)
	}
	to := spec.AttachTo
	at, offset, _ := strings.Cut(to, "+")
	n, _ := strconv.ParseUint(offset, 0, 64)
	multi := link.KprobeMultiOptions{Symbols: []string{to}}
	switch {
	case to == "":
	case kind == "kprobe":
		return link.Kprobe(at, p, &link.KprobeOptions{Offset: n})
	case kind == "kretprobe":
		return link.Kretprobe(at, p, nil)
	case kind == "ksyscall":
		return link.Kprobe("sys_"+at, p, nil)
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

func attachUprobe(kind string, p *ebpf.Program) (io.Closer, error) {
	at, err := entryOffset(executable)
	if err != nil {
		return nil, err
	}
	exe, err := link.OpenExecutable(executable)
	if err != nil {
		return nil, err
	}
	one, multi := &link.UprobeOptions{Address: at}, &link.UprobeMultiOptions{Addresses: []uint64{at}}
	switch kind {
	case "uprobe", "usdt":
		return exe.Uprobe("", p, one)
	case "uretprobe":
		return exe.Uretprobe("", p, one)
	case "uprobe.multi":
		return exe.UprobeMulti(nil, p, multi)
	case "uretprobe.multi":
		return exe.UretprobeMulti(nil, p, multi)
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

func attachTracepoint(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	group, name, ok := strings.Cut(spec.AttachTo, "/")
	if !ok {
		return nil, errNotTried
	}
	return link.Tracepoint(group, name, p, nil)
}

func attachRawTracepoint(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	if spec.AttachTo == "" {
		return nil, errNotTried
	}
	return link.AttachRawTracepoint(link.RawTracepointOptions{Name: spec.AttachTo, Program: p})
}

func attachTracing(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	switch to := spec.AttachTo; {
	case strings.Contains(spec.SectionName, ".multi"):
		return attachMulti(spec, p)
	case to == "", to == "bpf_map_elem", to == "bpf_sk_storage_map": // the tool sets the function or map
		return nil, errNotTried
	case spec.AttachType == ebpf.AttachTraceIter:
		if to == "cgroup" {
			return attachIter(p, &iterCgroup{order: iterSelfOnly}, cgroupRoot)
		}
		return link.AttachIter(link.IterOptions{Program: p})
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if errors.Is(err, unix.EBUSY) {
		err = fmt.Errorf("%w: %s cannot be traced: it was declared inline, or its file is built so", err, spec.AttachTo)
	}
	return l, err
}

// attachMulti attaches to the function of a section such as fentry.multi/NAME. For patterns libbpf looks in the kernel's BTF.
func attachMulti(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	_, to, _ := strings.Cut(spec.SectionName, "/")
	if to == "" || strings.ContainsAny(to, "*?:") {
		return nil, errNotTried
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, err
	}
	var fn *btf.Func
	if err := kernel.TypeByName(to, &fn); err != nil {
		return nil, err
	}
	id, err := kernel.TypeID(fn)
	if err != nil {
		return nil, err
	}
	attr := struct {
		program, target, as, flags uint32
		ids, cookies               uint64
		count                      uint32
		_                          [4]byte
	}{
		program: uint32(p.FD()), as: uint32(spec.AttachType),
		ids: uint64(uintptr(unsafe.Pointer(&id))), count: 1,
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(&id)
	if errno != 0 {
		return nil, fmt.Errorf("attach to %s: %w", to, errno)
	}
	return held(fd), nil
}

// iterCgroup is the part for cgroups of the kernel's union bpf_iter_link_info.
type iterCgroup struct {
	order, fd uint32
	id        uint64
}

const iterSelfOnly = 1 // BPF_CGROUP_ITER_SELF_ONLY

// attachIter attaches an iterator over a cgroup, for which link.AttachIter has no option.
func attachIter(p *ebpf.Program, info *iterCgroup, root string) (io.Closer, error) {
	dir, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info.fd = uint32(dir.Fd())
	attr := struct {
		program, target, as, flags uint32
		info                       uint64
		size                       uint32
		_                          [4]byte
	}{
		program: uint32(p.FD()), as: uint32(ebpf.AttachTraceIter),
		info: uint64(uintptr(unsafe.Pointer(info))), size: uint32(unsafe.Sizeof(*info)),
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_LINK_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(info)
	if errno != 0 {
		return nil, fmt.Errorf("iterate over %s: %w", root, errno)
	}
	return held(fd), nil
}

func attachLSM(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	switch {
	case spec.AttachTo == "":
	case spec.AttachType == ebpf.AttachLSMMac:
		return link.AttachLSM(link.LSMOptions{Program: p})
	case spec.AttachType == ebpf.AttachLSMCgroup:
		return attachCgroup(spec, p)
	}
	return nil, errNotTried
}

// attachPerfEvent attaches to a clock.
func attachPerfEvent(_ *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	second := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: 1e9}
	fd, err := unix.PerfEventOpen(&second, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return holding(fd, unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, p.FD()))
}

func attachXDP(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	// Programs of other types are for entries of device and CPU maps.
	if spec.AttachType != ebpf.AttachXDP && spec.AttachType != ebpf.AttachNone {
		return nil, errNotTried
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: loopback, Flags: link.XDPGenericMode})
	if errors.Is(err, unix.EINVAL) { // kernels before 5.15, for programs with maps that may hold programs
		return nil, errNotTried
	}
	return withLinks(l, err)
}

func attachTC(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	as := spec.AttachType
	switch as {
	case ebpf.AttachTCXIngress, ebpf.AttachTCXEgress:
		return link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: as})
	case ebpf.AttachNone:
		return withLinks(link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: ebpf.AttachTCXIngress}))
	}
	return nil, errNotTried // netkit programs
}

// withLinks returns errNotTried on kernels without links for a device, where tools use netlink.
func withLinks(l link.Link, err error) (io.Closer, error) {
	if errors.Is(err, ebpf.ErrNotSupported) {
		return nil, errNotTried
	}
	return l, err
}

func attachNetfilter(_ *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	return link.AttachNetfilter(link.NetfilterOptions{
		Program: p, ProtocolFamily: link.NetfilterProtoIPv4, Hook: link.NetfilterInetLocalIn, Priority: 1,
	})
}

func attachNetNS(_ *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	ns, err := os.Open(netNS)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return withLinks(link.AttachNetNs(int(ns.Fd()), p))
}

// attachSocket returns a function that attaches to a new socket of a family.
func attachSocket(family, option int) func(*ebpf.ProgramSpec, *ebpf.Program) (io.Closer, error) {
	return func(_ *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if option == unix.SO_ATTACH_REUSEPORT_EBPF {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, p.FD())
		}
		return holding(fd, err)
	}
}

// attachSockMap attaches to a new map of sockets. Closing that detaches the program.
func attachSockMap(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	as := spec.AttachType
	if as == ebpf.AttachNone { // SEC sk_skb leaves the type to the tool
		as = ebpf.AttachSkSKBStreamVerdict
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.SockMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{Target: m.FD(), Program: p, Attach: as}); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func attachCgroup(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	as := spec.AttachType
	if spec.Type == ebpf.CGroupSKB && as == ebpf.AttachNone { // SEC cgroup/skb leaves the type to the tool
		as = ebpf.AttachCGroupInetIngress
	}
	return link.AttachCgroup(link.CgroupOptions{Path: cgroupRoot, Attach: as, Program: p})
}

// held is an open file.
type held int

// holding returns an open file, or closes it if there was an error.
func holding(fd int, err error) (io.Closer, error) {
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return held(fd), nil
}

func (h held) Close() error { return unix.Close(int(h)) }
