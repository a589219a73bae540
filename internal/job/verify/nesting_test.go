// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// chain returns types in testbtf's notation: struct s, whose member leads to an int through n types. line is the format of each,
// with its number and that of the next.
func chain(n int, member, line string) string {
	var b strings.Builder
	b.WriteString("struct s 8: " + member + "\n")
	for i := range n {
		fmt.Fprintf(&b, line+"\n", i, i+1)
	}
	return b.String() + fmt.Sprintf("int t%d 4\n", n)
}

// ring returns struct s, which points into a ring of n flavors of a struct.
func ring(n int) string {
	var b strings.Builder
	b.WriteString("struct s 8: ring *r___0 0\n")
	for i := range n {
		fmt.Fprintf(&b, "struct r___%d 8: next *r___%d 0\n", i, (i+1)%n)
	}
	return b.String()
}

// behind returns the struct s of a ring, with an additional first member that nests too deep for libbpf.
func behind(n int) string {
	return strings.Replace(ring(n), "s 8: ", "s 16: deep t0 0, ", 1) + strings.ReplaceAll(chain(40, "m int 0", "struct t%d 8: m t%d 0"), "struct s ", "struct unused ")
}

const (
	loop    = "typedef loop loop[2]\nstruct s 8: b loop 0\n"
	pointer = "typedef loop *loop\nstruct s 8: b loop 0\n"
)

var (
	typedefs = chain(300_000, "b t0 0", "typedef t%d t%d")
	arrays   = chain(100_000, "b t0 0", "typedef t%d t%d[1]")
	pointers = chain(100_000, "b t0 0", "typedef t%d *t%d")
	structs  = chain(300_000, "b t0 0", "struct t%d 8: m t%d 0")
	longest  = chain(limits.TypePath-6, "b t0 0", "struct t%d 8: m t%d 0") // and six others
)

// nestings are types on which cilium/ebpf would overflow the stack, in the BTF of a kernel, in minimized BTF, or in an object's,
// with the expected message.
var nestings = []struct{ name, kernel, minimized, object, want string }{
	{name: "array of itself, kernel", kernel: loop, want: "kernel: cilium/ebpf cannot follow its types: type 5 (typedef) leads back to itself without a struct or union"},
	{name: "array of itself, minimized", minimized: loop, want: "minimized BTF: cilium/ebpf cannot follow its types: type 5 (typedef) leads back to itself"},
	{name: "array of itself, object", object: loop, want: "Object:object Reason:cilium/ebpf cannot follow its types: type 5 (typedef) leads back to itself"},
	{name: "pointer to itself", kernel: pointer, want: "type 5 (typedef) leads back to itself"},
	{name: "typedefs", kernel: typedefs, want: "more than 256 types in a row without a struct or union"},
	{name: "typedefs, object", object: typedefs, want: "more than 256 types in a row without a struct or union"},
	{name: "arrays", kernel: arrays, want: "more than 256 types in a row without a struct or union"},
	{name: "pointers", minimized: pointers, want: "more than 256 types in a row without a struct or union"},
	{name: "structs", kernel: structs, want: "more than 200000 types that lead from one to the next"},
	{name: "structs, minimized", minimized: structs, want: "more than 200000 types that lead from one to the next"},
	{name: "structs, object", object: structs, want: "more than 200000 types that lead from one to the next"},
	{name: "structs, not too many", kernel: longest, minimized: longest, want: "not compared: [] []"},
	{name: "pairs of structs that libbpf does not get to", kernel: behind(1009), minimized: behind(1009), object: behind(1013), want: "too large: more"},
	{name: "pairs of structs", kernel: ring(1009), minimized: ring(1009), object: ring(1013), want: "too large: more"},
}

// TestNesting verifies such files, each in a process of its own, because a stack overflow ends the process.
func TestNesting(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	if dir := os.Getenv("BTFGEN_TEST_NESTING"); dir != "" {
		nestingRun(t, dir)
		return
	}
	for _, tc := range nestings {
		t.Run(tc.name, func(t *testing.T) {
			if tc.kernel == "" && len(tc.minimized)+len(tc.object) > 1<<20 {
				slow.Nightly(t) // the kernel's side has the same
			}
			dir := t.TempDir()
			put := func(name, types string, make func(types string) []byte) {
				if types == "" {
					types = "struct s 8: b u32 @3:5\n"
				}
				if err := os.WriteFile(filepath.Join(dir, name), make(types), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			btf := func(types string) []byte { return testbtf.Types(t, binary.LittleEndian, types) }
			put("kernel", tc.kernel, btf)
			put("minimized", tc.minimized, btf)
			put("object", tc.object, func(types string) []byte {
				asks := "lshift_u64 struct s.b" // cilium/ebpf computes the alignment of the member for it
				if strings.Contains(types, "r___") {
					asks = "type_matches struct s"
				}
				return testbtf.Object(t, binary.LittleEndian, types, "program p\n"+asks)
			})
			cmd := exec.Command(os.Args[0], "-test.run=^TestNesting$", "-test.v")
			cmd.Env = append(os.Environ(), "BTFGEN_TEST_NESTING="+dir)
			out, err := cmd.CombinedOutput()
			said := string(out[:min(len(out), 1000)])
			if err != nil {
				t.Fatalf("%v:\n%s", err, said)
			}
			if !strings.Contains(said, "not compared: ") || !strings.Contains(said, tc.want) {
				t.Errorf("said, without %q:\n%s", tc.want, said)
			}
		})
	}
}

// TestOtherLoaders compares one loader's decisions on BTF that cilium/ebpf cannot read. It matters only to cilium/ebpf.
func TestOtherLoaders(t *testing.T) {
	kernel := testbtf.Types(t, binary.LittleEndian, loop)
	data := testbtf.Object(t, binary.LittleEndian, "struct s 8: b u32 0", "program p\nfield_exists struct s.b")
	o, err := core.ParseObject("object", data)
	if err != nil {
		t.Fatal(err)
	}
	for loader, want := range map[string]Comparison{Libbpf: {Records: 1}, Aya: {Aya: 1}, Cilium: {}, "": {}} {
		j := NewJudge(t.Context(), Config{Objects: []Object{{o, data}}, Loader: loader})
		if err := j.Load(t.Context(), &corpus.Kernel{Name: "kernel", BTF: kernel}); err != nil {
			t.Fatal(err)
		}
		k, err := j.Compare(t.Context(), kernel)
		switch fails := want.Records+want.Aya == 0; {
		case fails != (err != nil):
			t.Errorf("%q: %v", loader, err)
		case !fails && (k.Records != want.Records || k.Fixups != 0 || k.Aya != want.Aya || len(k.Differences) > 0):
			t.Errorf("%q: %+v", loader, k)
		}
	}
}

// nestingRun verifies the files in a directory, and prints why kernels were skipped.
func nestingRun(t *testing.T, dir string) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	o, err := core.ParseObject("object", read("object"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := corpus.Open(t.Context(), []string{filepath.Join(dir, "kernel")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{
		Objects: []Object{{o, read("object")}}, Corpus: c, Jobs: 1,
		Minimized: []Minimized{{Name: "small.btf", BTF: read("minimized")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("not compared: %v %+v\n", rep.Skipped, rep.Notes)
}

// typesOf derives types from bytes: struct s, and eight others.
func typesOf(data []byte) string {
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	var b strings.Builder
	ref := func() string {
		n := next()
		return []string{"", "*"}[n>>3&1] + fmt.Sprint("t", n&7) + []string{"", "[2]"}[n>>4&1]
	}
	at := func() string { return []string{"0", "@3:5"}[next()&1] }
	fmt.Fprintf(&b, "struct s 8: b %s @3:5, c %s @8:5\n", ref(), ref())
	for i := range 8 {
		switch next() % 4 {
		case 0:
			fmt.Fprintf(&b, "typedef t%d %s\n", i, ref())
		case 1:
			fmt.Fprintf(&b, "struct t%d 8: b %s %s, c %s %s\n", i, ref(), at(), ref(), at())
		case 2:
			fmt.Fprintf(&b, "int t%d 4\n", i)
		case 3:
			fmt.Fprintf(&b, "proto t%d %s: %s\n", i, ref(), ref())
		}
	}
	return b.String()
}

// FuzzNesting verifies types with arbitrary references, which must terminate.
func FuzzNesting(f *testing.F) {
	f.Add([]byte{16, 0, 0, 16}, []byte{2, 2, 2})
	f.Add([]byte{1, 2, 1, 9, 1, 10, 0}, []byte{0, 0, 1, 9, 0, 9, 1, 1, 1})
	f.Add([]byte{8, 8, 3, 8, 8}, []byte{8, 8, 3, 8, 8})
	f.Fuzz(func(t *testing.T, kernel, object []byte) {
		full := testbtf.Types(t, binary.LittleEndian, typesOf(kernel))
		data := testbtf.Object(t, binary.LittleEndian, typesOf(object), "program p\nlshift_u64 struct s.b\nbyte_off struct s.c\ntype_matches struct s\ntype_exists struct s")
		o, err := core.ParseObject("object", data)
		if err != nil {
			t.Skip()
		}
		j := NewJudge(t.Context(), Config{Objects: []Object{{o, data}}})
		if err := j.Load(t.Context(), &corpus.Kernel{Name: "kernel", BTF: full}); err != nil {
			return
		}
		if k, err := j.Compare(t.Context(), full); err == nil && len(k.Differences) > 0 {
			t.Errorf("with itself: %v", k.Differences)
		}
	})
}
