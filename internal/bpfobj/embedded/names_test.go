// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// host returns a linked file with the objects in .rodata, data in .data, and the symbols made by with.
func host(t *testing.T, f testelf.File, objs [][]byte, data []byte, with func(at []uint64) []testelf.Symbol) []byte {
	t.Helper()
	at := make([]uint64, len(objs)+1)
	var ro []byte
	for i, o := range objs {
		at[i] = uint64(len(ro))
		ro = append(ro, o...)
	}
	at[len(objs)] = uint64(len(ro))
	f.Type = elf.ET_DYN
	f.Sections = []testelf.Section{
		{Name: ".comment", Data: []byte("not in memory")},
		{Name: ".rodata", Addr: rodata, Data: ro},
		{Name: ".data", Addr: 0x900000, Data: data},
	}
	f.Symbols = with(at)
	d, _ := f.Build()
	return d
}

const rodata = 0x400000

// words returns vs as addresses of f's host.
func words(f testelf.File, vs ...uint64) []byte {
	var d []byte
	for _, v := range vs {
		if f.Class32 {
			d, _ = binary.Append(d, f.Order, uint32(v))
		} else {
			d, _ = binary.Append(d, f.Order, v)
		}
	}
	return d
}

// TestHosts checks that objects are for the machines whose kernels run the file that embeds them.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		file testelf.File
		want string
	}{
		{testelf.File{Order: le, Machine: elf.EM_X86_64}, "x86_64"},
		{testelf.File{Order: le, Machine: elf.EM_AARCH64}, "arm64"},
		{testelf.File{Order: le, Machine: elf.EM_ARM, Class32: true}, "arm arm64"},
		{testelf.File{Order: le, Machine: elf.EM_386, Class32: true}, "i386 x86_64"},
		{testelf.File{Order: be, Machine: elf.EM_PPC64}, "ppc64"},
		{testelf.File{Order: le, Machine: elf.EM_PPC64}, "ppc64le"},
		{testelf.File{Order: be, Machine: elf.EM_S390}, "s390x"},
		{testelf.File{Order: le, Machine: elf.EM_68K}, ""},
	} {
		data := host(t, c.file, [][]byte{bpf(le, "one"), bpf(le, "second")}, nil, func([]uint64) []testelf.Symbol { return nil })
		found, err := Find(data)
		if err != nil || len(found) != 2 {
			t.Fatalf("%v: %d objects, %v", c.file.Machine, len(found), err)
		}
		for _, o := range found {
			if got := strings.Join(o.Hosts, " "); got != c.want {
				t.Errorf("%v: %s is for %q, want %q", c.file.Machine, o.Name, got, c.want)
			}
		}
	}
	for _, data := range [][]byte{bpf(le, "one"), slices.Concat([]byte("text"), bpf(le, "one"))} {
		if found, err := Find(data); err != nil || len(found) != 1 || found[0].Hosts != nil {
			t.Errorf("no program: %v, %v", found, err)
		}
	}
}

func TestName(t *testing.T) {
	objs := [][]byte{bpf(le, "one"), bpf(be, "second"), bpf(le, "the third")}
	sizes := []uint64{uint64(len(objs[0])), uint64(len(objs[1])), uint64(len(objs[2]))}
	for _, f := range []testelf.File{
		{Order: le, Machine: elf.EM_X86_64},
		{Order: be, Machine: elf.EM_S390},
		{Order: le, Machine: elf.EM_ARM, Class32: true},
		{Order: be, Machine: elf.EM_MIPS, Class32: true, Dynamic: true},
	} {
		w := uint64(len(words(f, 0)))
		tests := []struct {
			name string
			data func(at []uint64) []byte
			syms func(at []uint64) []testelf.Symbol
			want []string
		}{
			{"no symbols", nil, func([]uint64) []testelf.Symbol { return nil }, []string{"#1", "#2", "#3"}},
			{"covering", nil, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{sym("whole", 1, 0, at[3]), sym("a", 1, at[0], sizes[0]), sym("c", 1, at[2], sizes[2])}
			}, []string{"a", "#2", "c"}},
			{"several covering", nil, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{sym("wide", 1, at[0], sizes[0]+99), sym("close", 1, at[0], sizes[0]+1), sym("twin", 1, at[0], sizes[0])}
			}, []string{"close", "#2", "#3"}},
			{"too short", nil, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{sym("short", 1, at[1], sizes[1]-1), sym("late", 1, at[1]+1, sizes[1])}
			}, []string{"#1", "#2", "#3"}},
			{"same name", nil, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{sym("data", 1, at[0], sizes[0]), sym("data", 1, at[1], sizes[1]), sym("data#2", 1, at[2], sizes[2])}
			}, []string{"data", "data#2", "data#2#3"}},
			{"unfit names", nil, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{sym("a\nb", 1, at[0], sizes[0]), sym("\xff", 1, at[1], sizes[1]), sym(strings.Repeat("n", maxName+1), 1, at[2], sizes[2])}
			}, []string{"#1", "#2", "#3"}},
			{"slice and string", func(at []uint64) []byte {
				return slices.Concat(words(f, rodata+at[0], sizes[0], sizes[0]), words(f, rodata+at[1], sizes[1]),
					words(f, rodata+at[2], sizes[2]-1))
			}, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{
					sym("main._BpfBytes", 2, 0, 3*w), sym("main..gobytes.1", 1, at[0], sizes[0]),
					sym("main..gobytes.2", 1, at[1], sizes[1]), sym("main.beta", 2, 3*w, 2*w),
					sym("shorter", 2, 5*w, 2*w),
				}
			}, []string{"main._BpfBytes", "main.beta", "#3"}},
			{"beyond the section", nil, func(at []uint64) []testelf.Symbol {
				return []testelf.Symbol{sym("slice", 2, 1<<20, 3*w), sym("cut", 2, 0, 3*w)}
			}, []string{"#1", "#2", "#3"}},
		}
		for _, tt := range tests {
			t.Run(f.Machine.String()+"/"+tt.name, func(t *testing.T) {
				at := []uint64{0, sizes[0], sizes[0] + sizes[1]}
				data := make([]byte, w)
				if tt.data != nil {
					data = tt.data(at)
				}
				got, err := Find(host(t, f, objs, data, tt.syms))
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, o := range got {
					names = append(names, o.Name)
				}
				if !slices.Equal(names, tt.want) {
					t.Errorf("names %q, want %q", names, tt.want)
				}
			})
		}
	}
}

// TestNameSource names the objects of a host without symbols.
func TestNameSource(t *testing.T) {
	f := testelf.File{Order: le, Machine: elf.EM_X86_64}
	for name, tt := range map[string]struct {
		sources [2]string // zero bytes around names
		want    []string
	}{
		"two sources":             {[2]string{"\x00./a.bpf.c\x00", "\x00/src/b-2.bpf.c\x00b-2.bpf.c\x00"}, []string{"a", "b-2"}},
		"no .bpf":                 {[2]string{"\x00a.c\x00", "\x00no source\x00"}, []string{"a", "#2"}},
		"several sources":         {[2]string{"\x00a.bpf.c\x00b.bpf.c\x00", "\x00b.bpf.c\x00"}, []string{"#1", "b"}},
		"one source, two objects": {[2]string{"\x00a.bpf.c\x00", "\x00a.bpf.c\x00\x00"}, []string{"a", "a#2"}},
		"long name":               {[2]string{"\x00" + strings.Repeat("a", maxName+1) + ".c\x00", "\x00b.c\x00"}, []string{"#1", "b"}},
		"control characters":      {[2]string{"\x00a\x1b.c\x00", "\x00.c\x00"}, []string{"#1", "#2"}},
	} {
		objs := [][]byte{bpf(le, tt.sources[0]), bpf(le, tt.sources[1])}
		found, err := Find(host(t, f, objs, nil, func([]uint64) []testelf.Symbol { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		if names := []string{found[0].Name, found[1].Name}; !slices.Equal(names, tt.want) {
			t.Errorf("%s: names %q, want %q", name, names, tt.want)
		}
	}
}

// TestNameGo reads a binary that the Go toolchain built with go:embed.
func TestNameGo(t *testing.T) {
	slow.Skip(t)
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command in PATH")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/host\n\ngo 1.21\n",
		"a_bpf.o": string(bpf(le, strings.Repeat("a", 4000))),
		"b_bpf.o": string(bpf(be, strings.Repeat("b", 5000))),
		"main.go": `package main

import (
	_ "embed"
	"os"
)

//go:embed a_bpf.o
var _BpfBytes []byte

//go:embed b_bpf.o
var text string

func main() { os.Stdout.Write(_BpfBytes); os.Stdout.WriteString(text) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		ldflags string
		want    []string
	}{
		{"", []string{"main._BpfBytes", "main.text"}},
		{"-s -w", []string{"#1", "#2"}},
	} {
		cmd := exec.CommandContext(t.Context(), goTool, "build", "-ldflags="+tt.ldflags, "-o", "host", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		got, err := ReadFile(filepath.Join(dir, "host"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range got {
			names = append(names, o.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, tt.want) {
			t.Errorf("-ldflags=%q: names %q, want %q", tt.ldflags, names, tt.want)
		}
	}
}
