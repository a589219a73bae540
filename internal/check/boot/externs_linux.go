// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	cbtf "github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/bpfobj/elffile"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/limits"
)

// This file resolves externs as libbpf does (bpf_object__resolve_externs in its src/libbpf.c). cilium/ebpf does not read objects
// with typed ksyms, weak kconfig variables, weak maps or inner maps of a typedef, and requires every kconfig variable to be set. So
// it reads a copy of the object without these, and this file completes the instructions that refer to externs.

// kconfigMap is libbpf's name of the map with the kconfig variables.
const kconfigMap = ".kconfig"

// readable returns an object that cilium/ebpf reads: the same bytes if it reads the original.
func readable(data []byte, o *rule.Object) ([]byte, error) {
	f, err := elffile.New(bytes.NewReader(data), limits.Sections)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(data)
	strengthen(inFile(out, f.SectionByType(elf.SHT_SYMTAB)), f)
	if blob := inFile(out, f.Section(".BTF")); blob != nil && o.BTF != nil {
		hideExterns(blob, o)
		nameInnerMaps(blob, o)
	}
	return out, nil
}

// inFile returns a section's bytes in its file, nil if they are compressed or outside.
func inFile(file []byte, s *elf.Section) []byte {
	if s == nil || s.Flags&elf.SHF_COMPRESSED != 0 {
		return nil
	}
	if n := uint64(len(file)); s.Offset > n || s.FileSize > n-s.Offset {
		return nil
	}
	return file[s.Offset:][:s.FileSize]
}

// strengthen makes weak symbols of maps global. A linked object has one definition of each.
func strengthen(symtab []byte, f *elf.File) {
	const size, info, shndx = 24, 4, 6 // layout of Elf64_Sym
	for ; len(symtab) >= size; symtab = symtab[size:] {
		i := int(f.ByteOrder.Uint16(symtab[shndx:]))
		if elf.ST_BIND(symtab[info]) == elf.STB_WEAK && i < len(f.Sections) && f.Sections[i].Name == ".maps" {
			symtab[info] = elf.ST_INFO(elf.STB_GLOBAL, elf.ST_TYPE(symtab[info]))
		}
	}
}

// hideExterns renames the section of kconfig variables, removes the names of typed ksyms, so that their symbols look
// undeclared, and makes other ksyms void.
func hideExterns(blob []byte, o *rule.Object) {
	h, err := btf.ReadHeader(blob, int64(len(blob)))
	if err != nil {
		return // not reached: parsed objects have a header
	}
	types, names := blob[h.Types.Off:], blob[h.Strings.Off:]
	for id := btf.TypeID(1); int(id) < o.BTF.NumTypes(); id++ {
		t := o.BTF.Type(id)
		if t.Kind() != btf.KindDatasec {
			continue
		}
		switch string(t.Name()) {
		case kconfigMap:
			names[t.NameOff] = '_'
		case ".ksyms":
			for i := range t.Vlen() {
				v := o.BTF.Type(t.VarSecinfo(i).Type)
				if v.Kind() != btf.KindVar {
					continue
				}
				record := types[v.Offset():]
				typed := slices.ContainsFunc(o.Externs, func(x bpfobj.Extern) bool { return x.Type == v.ID })
				if typed {
					clear(record[:4]) // the name
				}
				clear(record[8:12]) // the type
			}
		}
	}
}

// nameInnerMaps lets values of maps point to structs instead of typedefs of these: __array(values, inner_t).
func nameInnerMaps(blob []byte, o *rule.Object) {
	h, err := btf.ReadHeader(blob, int64(len(blob)))
	if err != nil {
		return
	}
	types := blob[h.Types.Off:]
	for id := btf.TypeID(1); int(id) < o.BTF.NumTypes(); id++ {
		t := o.BTF.Type(id)
		if t.Kind() != btf.KindStruct || t.Vlen() == 0 {
			continue
		}
		last := t.Member(t.Vlen() - 1)
		values := o.BTF.Type(last.Type)
		if values.Kind() != btf.KindArray || !o.BTF.NameIs(last.NameOff, "values") {
			continue
		}
		pointer := o.BTF.Type(values.Array().Elem)
		if pointer.Kind() != btf.KindPtr {
			continue
		}
		if inner, ok := o.BTF.SkipMods(pointer.Ref()); ok && inner.Kind() == btf.KindStruct {
			o.BTF.Order().PutUint32(types[pointer.Offset()+8:], uint32(inner.ID))
		}
	}
}

// externs are resolved externs.
type externs struct {
	kconfig *ebpf.MapSpec          // nil without kconfig variables
	offsets map[string]uint32      // offsets of kconfig variables in the map's value
	typed   map[string]cbtf.TypeID // types of typed ksyms; 0 for an absent weak one
}

// missing is the error for an extern without which libbpf does not load the object.
type missing struct {
	name, why string
	errno     syscall.Errno
}

func (m *missing) Error() string { return fmt.Sprintf("extern %s: %s", m.name, m.why) }
func (m *missing) Unwrap() error { return m.errno }

// resolve resolves externs, except void ksyms and kfuncs, where cilium/ebpf does the same as libbpf. After an error the result
// has the externs before.
func (l *loader) resolve(o *rule.Object) (*externs, error) {
	e := &externs{offsets: make(map[string]uint32), typed: make(map[string]cbtf.TypeID)}
	var value []byte
	for i := range o.Externs {
		x := &o.Externs[i]
		switch {
		case x.Kind == bpfobj.ExternKconfig:
			b, err := l.setting(o, x)
			if err != nil {
				return e, err
			}
			if int64(len(value))+int64(x.Size) > limits.BootConfig {
				return e, &limits.Exceeded{Max: limits.BootConfig, What: "bytes of variables for the configuration"}
			}
			e.offsets[x.Name] = uint32(len(value))
			value = append(value, make([]byte, (x.Size+7)&^7)...)
			copy(value[e.offsets[x.Name]:], b)
		case x.Kind == bpfobj.ExternKsym && x.Type != 0:
			if t := o.BTF.Type(x.Type); t.Kind() != btf.KindVar {
				continue
			}
			id, err := l.typed(x)
			if err != nil {
				return e, err
			}
			e.typed[x.Name] = id
		}
	}
	if len(value) > 0 {
		e.kconfig = &ebpf.MapSpec{
			Name: kconfigMap, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(value)), MaxEntries: 1,
			Flags:    unix.BPF_F_RDONLY_PROG,
			Contents: []ebpf.MapKV{{Key: uint32(0), Value: value}},
		}
	}
	return e, nil
}

// complete completes the instructions of an object that refer to externs.
func (e *externs) complete(spec *ebpf.CollectionSpec) {
	if e.kconfig != nil {
		spec.Maps[kconfigMap] = e.kconfig
	}
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			in := &p.Instructions[i]
			if !in.OpCode.IsDWordLoad() {
				continue
			}
			if off, ok := e.offsets[in.Reference()]; ok {
				in.Src, in.Constant = asm.PseudoMapValue, int64(uint64(off)<<32)
				*in = in.WithReference(kconfigMap)
			}
			if id, ok := e.typed[in.Reference()]; ok {
				in.Constant = int64(id)
				if id != 0 {
					in.Src = unix.BPF_PSEUDO_BTF_ID
				}
				*in = in.WithReference("")
			}
		}
	}
}

// setting returns the value of a kconfig variable in the object's byte order, nil for an absent weak one.
func (l *loader) setting(o *rule.Object, x *bpfobj.Extern) ([]byte, error) {
	number := func(n uint64) []byte {
		return binary.LittleEndian.AppendUint64(nil, n)[:min(x.Size, 8)] // all bootable machines are little-endian
	}
	truth := func(b bool) []byte {
		if b {
			return number(1)
		}
		return number(0)
	}
	switch x.Name {
	case "LINUX_KERNEL_VERSION":
		n, err := features.LinuxVersionCode()
		return number(uint64(n)), err
	case "LINUX_HAS_BPF_COOKIE":
		return truth(features.HaveProgramHelper(ebpf.Kprobe, asm.FnGetAttachCookie) == nil), nil
	case "LINUX_HAS_SYSCALL_WRAPPER":
		symbols, err := os.ReadFile("/proc/kallsyms")
		has := func(name string) bool { return bytes.Contains(symbols, []byte(" "+name+"\n")) }
		return truth(has("__x64_sys_bpf") || has("__arm64_sys_bpf")), err
	}
	if l.config == nil {
		var err error
		if l.config, err = readConfig(); err != nil {
			return nil, fmt.Errorf("the kernel's configuration is not known: %w", err)
		}
	}
	text, ok := l.config[x.Name]
	switch {
	case ok:
		b, err := o.Setting(x, text)
		if err != nil {
			return nil, &missing{x.Name, err.Error(), syscall.EINVAL}
		}
		return b, nil
	case x.Weak:
		return nil, nil
	}
	return nil, &missing{x.Name, "not set in the kernel's configuration", syscall.ESRCH}
}

// readConfig reads the kernel's configuration, which the job may have.
func readConfig() (map[string]string, error) {
	text, err := os.ReadFile("/" + configPath)
	if err != nil {
		return nil, err
	}
	config := make(map[string]string)
	for name, value := range rule.ConfigLines(text) {
		if _, again := config[name]; !again {
			config[name] = value
		}
	}
	return config, nil
}

// typed returns the ID of a variable of vmlinux, 0 for an absent weak one. It does not search modules; check says
// that such programs may fail.
func (l *loader) typed(x *bpfobj.Extern) (cbtf.TypeID, error) {
	kernel, err := l.cache.Kernel()
	if err != nil {
		return 0, &missing{x.Name, err.Error(), syscall.ESRCH}
	}
	var v *cbtf.Var
	switch err := kernel.TypeByName(x.Name, &v); {
	case err == nil:
		return kernel.TypeID(v)
	case x.Weak:
		return 0, nil
	}
	return 0, &missing{x.Name, "the kernel has no such variable", syscall.ESRCH}
}
