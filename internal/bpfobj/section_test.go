// SPDX-License-Identifier: Apache-2.0

package bpfobj_test

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

func TestSectionOf(t *testing.T) {
	for name, want := range map[string]struct {
		prefix string
		libbpf bool
	}{
		"kprobe/do_exit": {"kprobe", true}, "kprobe": {"kprobe", true}, "kprobe.multi/tcp_*": {"kprobe.multi", true},
		"fentry.multi/x_*": {"fentry.multi", true}, "fentry.multi": {"fentry.multi", true}, "tp.s/a/b": {"tp.s", true}, "tp_btf.s/x": {"tp_btf.s", true},
		"raw_tracepoint.s/x": {"raw_tracepoint.s", true}, "fsession.multi.s/m:x": {"fsession.multi.s", true}, "fmod_ret.multi/x": {}, "raw_tp.w.s/x": {},
		"fentry/x": {"fentry", true}, "tp/a/b": {"tp", true}, "struct_ops/x": {"struct_ops", true}, "uprobe/": {"uprobe", true},
		"xdp/cpumap": {"xdp/cpumap", true}, "cgroup/connect4": {"cgroup/connect4", true}, "tc/ingress": {"tc/ingress", true},
		"xdp/anything": {"xdp", false}, "xdp_drop": {"xdp", false}, "xdp/cpumap/x": {"xdp/cpumap", false}, "socket1": {"socket", false},
		"classifier/x/y": {"classifier", false}, "syscalls": {"syscall", false}, "cgroup/socket": {"cgroup/sock", false},
		"cgroup/nothing": {}, "nonsense": {}, "": {}, "kprobes/x": {}, "kprobe_x": {}, "?fentry/x": {}, "/": {}, "XDP": {},
	} {
		s := bpfobj.SectionOf(name)
		if s == nil {
			s = new(bpfobj.Section)
		} else if got := s.Libbpf(name); got != want.libbpf {
			t.Errorf("%q: libbpf %v, want %v", name, got, want.libbpf)
		}
		if s.Prefix != want.prefix {
			t.Errorf("%q: %q, want %q", name, s.Prefix, want.prefix)
		}
	}
}

// sectionNames returns the names in the table and variants of them.
func sectionNames() (names []string) {
	for _, s := range bpfobj.Sections() {
		p := s.Prefix
		names = append(names, p, p+"/", p+"/x", p+"/x/y", p+"1", p+"_x", p+".s", p+".s/x", p[:len(p)-1], "x"+p, strings.ToUpper(p))
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// TestSectionsEbpfGo compares the meaning of sections with ebpf-go's, for an object that has them all.
func TestSectionsEbpfGo(t *testing.T) {
	names := sectionNames()
	f := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF}
	code := make([]byte, 2*asm.InstructionSize)
	code[0], code[8] = 0xb7, 0x95 // r0 = 0; exit
	for i, n := range names {
		f.Sections = append(f.Sections, testelf.Section{Name: n, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code})
		f.Symbols = append(f.Symbols, testelf.Symbol{
			Name: fmt.Sprint("p", i), Section: i, Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC),
		})
	}
	data, _ := f.Build()
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain := func(s string) string {
		s, _ = strings.CutPrefix(strings.ToLower(strings.ReplaceAll(s, "_", "")), "bpf")
		switch s { // names that ebpf-go spells differently, or not at all
		case "ext":
			return "extension"
		case "cgroupinetingress": // is 0
			return "none"
		case "traceuprobesession":
			return "attachtype(57)"
		case "tracefsession":
			return "attachtype(58)"
		}
		return s
	}
	for i, n := range names {
		want := spec.Programs[fmt.Sprint("p", i)]
		if want == nil {
			t.Fatalf("%s: ebpf-go has no such program", n)
		}
		s := cmp.Or(bpfobj.SectionOf(n), &bpfobj.Section{Newer: true})
		if s.Newer {
			s = &bpfobj.Section{ProgType: "UnspecifiedProgram"}
		}
		if got := plain(s.ProgType); got != plain(want.Type.String()) {
			t.Errorf("%s: type %s, want %s", n, s.ProgType, want.Type)
		}
		if got := plain(cmp.Or(s.Type, "None")); got != plain(want.AttachType.String()) {
			t.Errorf("%s: attachment %s, want %s", n, s.Type, want.AttachType)
		}
		if want.AttachTo != "" && s.Target(n) != want.AttachTo {
			t.Errorf("%s: attached to %q, want %q", n, s.Target(n), want.AttachTo)
		}
	}
}

// TestVersion reads the number in a section "version", in the object's byte order.
func TestVersion(t *testing.T) {
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		for _, tt := range []struct {
			data []byte
			want uint32
		}{
			{order.AppendUint32(nil, 0xFFFFFFFE), 0xFFFFFFFE},
			{order.AppendUint32(nil, 0x41300), 0x41300},
			{[]byte{1, 2, 3}, 0}, {make([]byte, 8), 0}, {nil, 0},
		} {
			code := make([]byte, 2*asm.InstructionSize)
			code[0], code[8] = 0xb7, 0x95 // r0 = 0; exit
			f := testelf.File{Order: order, Type: elf.ET_REL, Machine: elf.EM_BPF, Sections: []testelf.Section{
				{Name: "socket", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code}, {Name: "version", Flags: elf.SHF_ALLOC, Data: tt.data},
			}, Symbols: []testelf.Symbol{{Name: "p", Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}}}
			data, _ := f.Build()
			file, err := bpfobj.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			o, err := file.Parse(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.Version != tt.want {
				t.Errorf("%x: %#x, want %#x", tt.data, o.Version, tt.want)
			}
		}
	}
}

// byName prints libbpf's program types for the section names in its input.
const byName = `#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>

int main(void)
{
	char name[256];

	libbpf_set_print(NULL);
	while (fgets(name, sizeof(name), stdin)) {
		enum bpf_prog_type type;
		enum bpf_attach_type attach;

		name[strcspn(name, "\n")] = 0;
		if (libbpf_prog_type_by_name(name, &type, &attach))
			printf("-\n");
		else
			printf("%s %s\n", libbpf_bpf_prog_type_str(type), attach ? libbpf_bpf_attach_type_str(attach) : "");
	}
	return 0;
}
`

// TestSectionsLibbpf compares the meaning of sections with that in the installed libbpf, which may not know all.
func TestSectionsLibbpf(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("needs a C compiler")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "byname.c"), filepath.Join(dir, "byname")
	if err := os.WriteFile(source, []byte(byName), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-o", program, source, "-lbpf").CombinedOutput(); err != nil {
		t.Skipf("needs libbpf 1.0 or later and its headers: %s", out)
	}
	names := sectionNames()
	cmd := exec.Command(program)
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(names) {
		t.Fatalf("%d answers to %d names", len(lines), len(names))
	}
	known := make(map[string]bool) // prefixes
	for i, n := range names {
		if s := bpfobj.SectionOf(n); s != nil && s.Prefix == n && lines[i] != "-" {
			known[n] = true
		}
	}
	if len(known) < 60 {
		t.Fatalf("libbpf knows %d of our prefixes", len(known))
	}
	for i, n := range names {
		want := "-"
		s := bpfobj.SectionOf(n)
		if s != nil && s.Libbpf(n) {
			want = strings.ToLower(s.ProgType + " " + strings.TrimPrefix(s.Type, "BPF_"))
			want = strings.TrimSuffix(want, "cgroup_inet_ingress") // is 0
		}
		switch got := lines[i]; {
		case got == want:
		case got == "-" && !known[s.Prefix]: // newer than this libbpf
		default:
			t.Errorf("%s: %q, libbpf says %q", n, want, got)
		}
	}
}
