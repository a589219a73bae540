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
)

// host returns a linked file with the objects one after the other in
// .rodata, a .data of n bytes, and the symbols made by with.
func host(t *testing.T, f file, objs [][]byte, data []byte, with func(at []uint64) []sym) []byte {
	t.Helper()
	at := make([]uint64, len(objs)+1)
	var ro []byte
	for i, o := range objs {
		at[i] = uint64(len(ro))
		ro = append(ro, o...)
	}
	at[len(objs)] = uint64(len(ro))
	f.typ = elf.ET_DYN
	f.sections = []part{
		{name: ".comment", data: []byte("not in memory")},
		{name: ".rodata", addr: rodata, data: ro},
		{name: ".data", addr: 0x900000, data: data},
	}
	f.symbols = with(at)
	d, _ := f.build(t)
	return d
}

const rodata = 0x400000

// words returns vs as addresses of f's host.
func (f file) words(vs ...uint64) []byte {
	var d []byte
	for _, v := range vs {
		if f.class32 {
			d, _ = binary.Append(d, f.order, uint32(v))
		} else {
			d, _ = binary.Append(d, f.order, v)
		}
	}
	return d
}

func TestName(t *testing.T) {
	objs := [][]byte{bpf(t, le, "one"), bpf(t, be, "second"), bpf(t, le, "the third")}
	sizes := []uint64{uint64(len(objs[0])), uint64(len(objs[1])), uint64(len(objs[2]))}
	for _, f := range []file{
		{order: le, machine: elf.EM_X86_64},
		{order: be, machine: elf.EM_S390},
		{order: le, machine: elf.EM_ARM, class32: true},
		{order: be, machine: elf.EM_MIPS, class32: true, dynamic: true},
	} {
		w := uint64(len(f.words(0)))
		tests := []struct {
			name string
			data func(at []uint64) []byte
			syms func(at []uint64) []sym
			want []string
		}{
			{"no symbols", nil, func([]uint64) []sym { return nil }, []string{"#1", "#2", "#3"}},
			{"covering", nil, func(at []uint64) []sym {
				return []sym{{"whole", 1, 0, at[3]}, {"a", 1, at[0], sizes[0]}, {"c", 1, at[2], sizes[2]}}
			}, []string{"a", "#2", "c"}},
			{"smallest covering", nil, func(at []uint64) []sym {
				return []sym{{"wide", 1, at[0], sizes[0] + 1}, {"close", 1, at[0], sizes[0]}, {"twin", 1, at[0], sizes[0]}}
			}, []string{"close", "#2", "#3"}},
			{"too short", nil, func(at []uint64) []sym {
				return []sym{{"short", 1, at[1], sizes[1] - 1}, {"late", 1, at[1] + 1, sizes[1]}}
			}, []string{"#1", "#2", "#3"}},
			{"same name", nil, func(at []uint64) []sym {
				return []sym{{"data", 1, at[0], sizes[0]}, {"data", 1, at[1], sizes[1]}, {"data#2", 1, at[2], sizes[2]}}
			}, []string{"data", "data#2", "data#2#3"}},
			{"unfit names", nil, func(at []uint64) []sym {
				return []sym{{"a\nb", 1, at[0], sizes[0]}, {"\xff", 1, at[1], sizes[1]}, {strings.Repeat("n", maxName+1), 1, at[2], sizes[2]}}
			}, []string{"#1", "#2", "#3"}},
			{"slice and string", func(at []uint64) []byte {
				return slices.Concat(f.words(rodata+at[0], sizes[0], sizes[0]), f.words(rodata+at[1], sizes[1]),
					f.words(rodata+at[2], sizes[2]-1))
			}, func(at []uint64) []sym {
				return []sym{
					{"main._BpfBytes", 2, 0, 3 * w}, {"main..gobytes.1", 1, at[0], sizes[0]},
					{"main..gobytes.2", 1, at[1], sizes[1]}, {"main.beta", 2, 3 * w, 2 * w},
					{"shorter", 2, 5 * w, 2 * w},
				}
			}, []string{"main._BpfBytes", "main.beta", "#3"}},
			{"beyond the section", nil, func(at []uint64) []sym {
				return []sym{{"slice", 2, 1 << 20, 3 * w}, {"cut", 2, 0, 3 * w}}
			}, []string{"#1", "#2", "#3"}},
		}
		for _, tt := range tests {
			t.Run(f.machine.String()+"/"+tt.name, func(t *testing.T) {
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

// TestNameGo reads what the Go toolchain makes of go:embed.
func TestNameGo(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command in PATH")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/host\n\ngo 1.21\n",
		"a_bpf.o": string(bpf(t, le, strings.Repeat("a", 4000))),
		"b_bpf.o": string(bpf(t, be, strings.Repeat("b", 5000))),
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
		got, err := ReadFile(filepath.Join(dir, "host"), 0)
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
