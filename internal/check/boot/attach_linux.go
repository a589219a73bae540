// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attach attaches a program to what its section names in the kernel: a function, a tracepoint, a hook of LSM or an iterator. A
// program whose target is elsewhere, such as a network device or an executable, is not attached.
func attach(spec *ebpf.ProgramSpec, p *ebpf.Program) (io.Closer, error) {
	to := spec.AttachTo
	if to == "" {
		return nil, errNotTried
	}
	switch spec.Type {
	case ebpf.Kprobe:
		kind, _, _ := strings.Cut(strings.TrimPrefix(spec.SectionName, "?"), "/")
		return attachKprobe(kind, to, p)
	case ebpf.TracePoint:
		if group, name, ok := strings.Cut(to, "/"); ok {
			return link.Tracepoint(group, name, p, nil)
		}
	case ebpf.RawTracepoint, ebpf.RawTracepointWritable:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: to, Program: p})
	case ebpf.Tracing:
		switch {
		case to == "bpf_map_elem", to == "bpf_sk_storage_map": // the tool chooses the map
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
		if spec.AttachType == ebpf.AttachLSMMac {
			return link.AttachLSM(link.LSMOptions{Program: p})
		}
	}
	return nil, errNotTried
}

// attachKprobe attaches to a function of the kernel.
func attachKprobe(kind, to string, p *ebpf.Program) (io.Closer, error) {
	at, offset, _ := strings.Cut(to, "+")
	n, _ := strconv.ParseUint(offset, 0, 64)
	multi := link.KprobeMultiOptions{Symbols: []string{to}}
	switch {
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
