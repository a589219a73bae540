// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/cilium/ebpf"
	cbtf "github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
)

// unopened returns why libbpf gives up on an object before it creates a map, nil if it does not.
func (l *loader) unopened(o *rule.Object) error {
	for _, f := range o.Unopened(rule.Libbpf) {
		return fmt.Errorf("%s: libbpf does not open the object [%s]: %w", f.Subject, f.Code, syscall.ENOTSUP)
	}
	for i := range o.Externs {
		if x := &o.Externs[i]; x.Kind == bpfobj.ExternKsym && x.Type != 0 {
			if _, err := l.cache.Kernel(); err != nil { // bpf_object__load_vmlinux_btf, also for weak ones
				return fmt.Errorf("%s: %w: %w", x.Name, err, syscall.ESRCH)
			}
			break
		}
	}
	for _, m := range o.StructOps {
		if m.Optional {
			continue
		}
		kernel, err := l.cache.Kernel()
		if err != nil {
			return fmt.Errorf("map %s: %w: %w", m.Name, err, syscall.ESRCH)
		}
		var t *cbtf.Struct
		if err := kernel.TypeByName(rule.StructOpsPrefix+m.Type, &t); err != nil {
			return fmt.Errorf("map %s: the kernel has no struct_ops %s: %w", m.Name, m.Type, syscall.ENOENT)
		}
	}
	return nil
}

// newerTypes are the types of programs, with the types of attachment, for sections that only libbpf knows.
var newerTypes = map[string]ebpf.ProgramSpec{
	"TRACEPOINT":                       {Type: ebpf.TracePoint},
	"RAW_TRACEPOINT":                   {Type: ebpf.RawTracepoint},
	"TRACING BPF_TRACE_RAW_TP":         {Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp},
	"TRACING BPF_TRACE_FENTRY_MULTI":   {Type: ebpf.Tracing, AttachType: 59},
	"TRACING BPF_TRACE_FEXIT_MULTI":    {Type: ebpf.Tracing, AttachType: 60},
	"TRACING BPF_TRACE_FSESSION_MULTI": {Type: ebpf.Tracing, AttachType: 61},
}

// withTypes returns a copy of an object with types for the programs of such sections, or the object if it has none.
func withTypes(spec *ebpf.CollectionSpec, o *rule.Object) *ebpf.CollectionSpec {
	out := spec
	for i := range o.Programs {
		pr := &o.Programs[i]
		if pr.Attach == nil || !pr.Attach.Newer {
			continue
		}
		if out == spec {
			out = spec.Copy()
		}
		p, as := out.Programs[o.ProgramName(i)], newerTypes[strings.TrimSpace(pr.Attach.ProgType+" "+pr.Attach.Type)]
		if p == nil {
			continue
		}
		if p.Type, p.AttachType = as.Type, as.AttachType; pr.Attach.Kind != bpfobj.AttachFuncMulti {
			p.AttachTo = pr.Attach.Target(pr.Section)
		}
		if strings.HasSuffix(pr.Attach.Prefix, ".s") {
			p.Flags |= unix.BPF_F_SLEEPABLE
		}
	}
	return out
}

// untyped returns an error for each program whose section libbpf does not know, if cilium/ebpf does.
func untyped(o *rule.Object) map[string]error {
	out := make(map[string]error)
	for i := range o.Programs {
		if pr := &o.Programs[i]; pr.Attach != nil && !pr.Attach.Libbpf(pr.Section) {
			out[o.Funcs[pr.Fn].Name] = fmt.Errorf("libbpf knows no type of programs for section %s: %w",
				pr.Section, syscall.EINVAL)
		}
	}
	return out
}

// differences are what libbpf does with programs that cilium/ebpf does not do.
var differences = []struct {
	what string
	of   func(o *rule.Object, program int) bool
}{
	{"libbpf changes the types of arguments with the tag ctx", (*rule.Object).TagsContext},
	{"libbpf maps the arena", func(o *rule.Object, _ int) bool {
		return slices.ContainsFunc(o.Maps, func(m bpfobj.Map) bool { return m.Type == uint32(ebpf.Arena) })
	}},
	{"libbpf loads programs of lsm_cgroup in its own way", func(o *rule.Object, n int) bool {
		s := o.Programs[n].Attach
		return s != nil && s.Type == "BPF_LSM_CGROUP"
	}},
}

// unlike returns an error for each program with which libbpf does something that is not done here.
func unlike(o *rule.Object) map[string]error {
	out := make(map[string]error)
	for i := range o.Programs {
		for _, d := range differences {
			if d.of(o, i) {
				out[o.Funcs[o.Programs[i].Fn].Name] = fmt.Errorf("not tried with libbpf: %s", d.what)
				break
			}
		}
	}
	return out
}

// perfArrays creates an object's perf event arrays as libbpf does, with the sizes of their definitions; cilium/ebpf corrects
// these. It returns the error of the first that the kernel refuses. The tool sets sizes of 0.
func perfArrays(o *rule.Object) error {
	for i := range o.Maps {
		m := &o.Maps[i]
		if m.Type != uint32(ebpf.PerfEventArray) {
			continue
		}
		attr := struct{ kind, key, value, max, flags uint32 }{
			m.Type, cmp.Or(m.KeySize, 4), cmp.Or(m.ValueSize, 4), cmp.Or(m.MaxEntries, 1), m.Flags,
		}
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno != 0 {
			return fmt.Errorf("map %s: libbpf cannot create a perf event array with keys of %d bytes and values of %d: %w",
				m.Name, attr.key, attr.value, errno)
		}
		unix.Close(int(fd))
	}
	return nil
}

// innerNames creates a map with the name of each inner map that libbpf gives it; cilium/ebpf gives them none with a dot. It returns the
// error of the first that the kernel refuses.
func innerNames(o *rule.Object) error {
	for i := range o.Maps {
		name := rule.InnerName(&o.Maps[i])
		if name == "" {
			continue
		}
		attr := struct {
			kind, key, value, max, flags, inner, node uint32
			name                                      [unix.BPF_OBJ_NAME_LEN]byte
		}{kind: uint32(ebpf.Array), key: 4, value: 4, max: 1}
		copy(attr.name[:], name)
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno == unix.E2BIG { // no map has a name, and libbpf gives none
			return nil
		} else if errno != 0 {
			return fmt.Errorf("map %s: libbpf cannot create a map with the name %s: %w", o.Maps[i].Name, name, errno)
		}
		unix.Close(int(fd))
	}
	return nil
}
