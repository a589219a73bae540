// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/oracle"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestOddLoaders minimizes kernels that no compiler makes, on which loaders differ or stumble. What they do must be the
// same on the minimized BTF, or the kernel must be refused.
func TestOddLoaders(t *testing.T) {
	for _, tt := range []struct{ name, local, asks, kernel, refused string }{ // refused is the kind of type whose relocations are
		{"a member of the wrong type before",
			"struct s 2: a u8 0", "byte_off struct s.a\nbyte_sz struct s.a",
			"struct s 32: # #in 8, a u8 24\nstruct #in 16: b int 0, a *int 8", ""},
		{"a member of the wrong type at offset 0",
			"struct s 2: a u8 0", "byte_off struct s.a",
			"struct s 32: # #in 0, a u8 24\nstruct #in 16: a *int 0", ""},
		{"a void member before",
			"struct s 2: c u8 0", "byte_off struct s.c",
			"struct s 32: # s___1 0, c u8 16\nstruct s___1 8: c void 4", ""},
		{"a member of the name in an anonymous struct and after it",
			"struct s 2: a u8 0", "byte_off struct s.a\nbyte_sz struct s.a",
			"struct s 32: # #in 8, a u32 24\nstruct #in 16: b int 0, a u8 8", ""},
		{"one deeper than the other",
			"struct s 2: a u8 0", "byte_off struct s.a",
			"struct s 32: # #deep 0, # #in 16\nstruct #deep 8: # #in 0\nstruct #in 16: b int 0, a u8 8", ""},
		{"the wrong type in an anonymous struct, the right one after it, for cilium/ebpf alone",
			"struct s 2: a u8 0", "byte_off struct s.a",
			"struct s 32: # #deep 0, # #in 16\nstruct #deep 8: # #one 0\nstruct #one 8: a *int 0\nstruct #in 16: b int 0, a u8 8", ""},
		{"more anonymous structs than cilium/ebpf looks into",
			"struct s 2: a u8 0", "byte_off struct s.a",
			"struct s 400: " + manyAnonymous(40), ""},
		{"a typedef of a function",
			"typedef d int\nfunc f int", "type_exists d\ntype_size d\ntype_matches d",
			"proto p int: int\nfunc f p\ntypedef d f", ""},
		{"a local typedef of a function",
			"proto p int: int\nfunc f p\ntypedef d f", "type_exists d\ntype_matches d",
			"proto p int: int\nfunc f p\ntypedef d f", ""},
		{"a member that is a function",
			"proto p int: int\nfunc f p\nstruct s 8: a f 0, b int 4", "byte_off struct s.b\nbyte_off struct s.a\ntype_matches struct s",
			"proto p int: int\nfunc f p\nstruct s 8: a f 0, b int 4", ""},
		{"a tag",
			"tag s int", "type_exists s\ntype_size s\ntype_matches s",
			"struct in 12: a int 0\ntag s in", "type_tag"},
		{"a tag of a tag",
			"tag s int", "type_exists s\ntype_size s",
			"struct in 12: a int 0\ntag x in\ntag s x", "type_tag"},
		{"a tag of an array",
			"tag s int", "type_exists s\ntype_size s",
			"tag s int[4]", "type_tag"},
		{"a tag of a pointer",
			"tag s *int", "type_exists s\ntype_size s",
			"tag s *u8", "type_tag"},
		{"a variable",
			"var s int", "type_exists s\ntype_size s\ntarget_type_id s",
			"var s u64", "var"},
		{"a function",
			"proto p int: int\nfunc s p", "type_exists s\ntype_matches s\ntarget_type_id s",
			"proto p int: int\nfunc s p", "func"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			object, target, kernel, out := minimizeTypes(t, tt.local, tt.asks, tt.kernel)
			validFunctions(t, out)
			if tt.refused != "" {
				log, err := core.NewSet(object.Object).Run(t.Context(), target)
				if err != nil {
					t.Fatal(err)
				}
				want := relo.Reason{Code: relo.InvalidRelocation, Cause: relo.CauseTypeKind, Name: tt.refused}
				for _, e := range log.Entries {
					if e.Result != relo.Error || *e.Reason != want {
						t.Errorf("%s: %s: %s", e.Relocation(), e.Result, e.Reason)
					}
				}
				return
			}
			for ask := range strings.Lines(tt.asks) { // bpftool ends at the first type that it cannot write
				data := testbtf.Object(t, binary.LittleEndian, tt.local, ask)
				o, err := core.ParseObject("o", data)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range newLoaders(t, verify.Object{Object: o, Data: data}).compare(kernel, out) {
					t.Error(d)
				}
			}
		})
	}
}

// minimizeTypes minimizes a kernel with these types for an object with these types and relocations.
func minimizeTypes(t *testing.T, local, asks, types string) (o verify.Object, target *core.Target, kernel, out []byte) {
	t.Helper()
	data := testbtf.Object(t, binary.LittleEndian, local, asks)
	object, err := core.ParseObject("o", data)
	if err != nil {
		t.Fatal(err)
	}
	kernel = testbtf.Types(t, binary.LittleEndian, types)
	if target, err = testinput.NewKernel("k", kernel); err != nil {
		t.Fatal(err)
	}
	if out, err = minimize.Blob(minimize.New([]*core.Object{object}, minimize.Options{}).Minimize(t.Context(), target)); err != nil {
		t.Fatal(err)
	}
	return verify.Object{Object: object, Data: data}, target, kernel, out
}

// validFunctions wants prototypes of functions: libbpf 1.3 and later reads no BTF without.
func validFunctions(tb testing.TB, data []byte) {
	tb.Helper()
	b, err := btf.New(data, nil)
	if err != nil {
		tb.Fatal(err)
	}
	for id := range b.NumTypes() {
		if t := b.Type(btf.TypeID(id)); t.Kind() == btf.KindFunc {
			if to := b.Type(t.Ref()); to.Kind() != btf.KindFuncProto {
				tb.Errorf("function %s is a %s", t.Name(), to.Kind())
			}
		}
	}
}

// manyAnonymous returns the members and the types of n anonymous structs. The last has member a.
func manyAnonymous(n int) string {
	var members, types []string
	for i := range n {
		members = append(members, fmt.Sprintf("# #in%d %d", i, 8+8*i))
		types = append(types, fmt.Sprintf("struct #in%d 8: %s u8 0", i, map[bool]string{false: fmt.Sprint("x", i), true: "a"}[i == n-1]))
	}
	return strings.Join(members, ", ") + "\n" + strings.Join(types, "\n")
}

// TestFlavors has names on whose flavors libbpf, cilium/ebpf and aya do not agree. The matches of all are kept.
func TestFlavors(t *testing.T) {
	for _, tt := range []struct{ local, ask, kernel, want string }{
		{"struct s____z 4: a int 0", "byte_off struct s____z.a",
			"struct s 4: a int 0\nstruct s_ 8: a int 4\nstruct s____y 12: a int 8\nstruct s____z 16: a int 12\nstruct s__ 4: a int 0",
			"s s_ s____y s____z"}, // aya, cilium/ebpf, cilium/ebpf and aya, all
		{"struct s___a___b 4: a int 0", "byte_off struct s___a___b.a",
			"struct s 4: a int 0\nstruct s___a 8: a int 4\nstruct s___c 12: a int 8\nstruct s___a___c 16: a int 12\nstruct s___c___b 16: a int 12",
			"s s___a s___a___c s___c s___c___b"}, // libbpf and cilium/ebpf take only s___a and s___a___c
		{"struct s 4: a int 0", "byte_off struct s.a",
			"struct s___ 4: a int 0\nstruct s____a 8: a int 4\nstruct ___s 12: a int 8\nstruct s_ 12: a int 8",
			"s___ s____a"}, // cilium/ebpf and aya, aya
		{"struct ___s 4: a int 0", "byte_off struct ___s.a",
			"struct ___s 4: a int 0\nstruct s 8: a int 4\nstruct ___s___x 12: a int 8", "___s ___s___x"},
		{"enum e 4: A____x 0", "enumval_value enum e::A____x",
			"enum e 4: X 9, A 1, A_ 2, A____y 3, A____x 4, Y 5", "e A A_ A____x"},
		{"enum e 4: ___B 0", "enumval_value enum e::___B",
			"enum e 4: X 9, ___A 1, ___B 2, B 3", "e ___A ___B"},
		{"enum e 4: A____x 0", "enumval_exists enum e::A____x",
			"enum e 4: X 9, A_ 2, A____y 3", "e A_ A____y"},
		{"enum e 4: A____x 0\nstruct s 4: a e 0", "type_matches struct s",
			"enum e 4: X 9, A 1, A_ 2, A____y 3, A____x 4, Y 5\nstruct s 4: a e 0", "e A_ A____x s a"}, // aya refuses the kind,
		{"enum e____x 4: A 0\nstruct s 4: a e____x 0", "byte_off struct s.a",
			"enum e_ 4: A 1\nstruct s 4: a e_ 0", "e_ s a"},
	} {
		t.Run(tt.local, func(t *testing.T) {
			object, _, kernel, out := minimizeTypes(t, tt.local, tt.ask, tt.kernel)
			got := namesIn(t, out)
			for _, name := range strings.Fields(tt.want) {
				if !slices.Contains(got, name) {
					t.Errorf("no %s in %q", name, got)
				}
			}
			if n := strings.Count(strings.Join(got, " "), "X") + strings.Count(strings.Join(got, " "), "s__ "); n > 0 {
				t.Errorf("more than is needed: %q", got)
			}
			for _, d := range newLoaders(t, object).compare(kernel, out) {
				t.Error(d)
			}
		})
	}
}

// namesIn returns the names of types, members and enumerators.
func namesIn(tb testing.TB, data []byte) (names []string) {
	tb.Helper()
	b, err := btf.New(data, nil)
	if err != nil {
		tb.Fatal(err)
	}
	for id := range b.NumTypes() {
		t := b.Type(btf.TypeID(id))
		names = append(names, string(t.Name()))
		for i := range t.Vlen() {
			switch k := t.Kind(); {
			case k.IsComposite():
				names = append(names, string(b.Name(t.Member(i).NameOff)))
			case k.IsAnyEnum():
				names = append(names, string(b.Name(t.Enumerator(i).NameOff)))
			}
		}
	}
	return names
}

// loaders asks libbpf in bpftool and cilium/ebpf what they decide.
type loaders struct {
	testing.TB
	bpftool, dir, path string
	object             verify.Object
}

func newLoaders(tb testing.TB, o verify.Object) *loaders {
	l := &loaders{TB: tb, bpftool: oracle.Need(tb, "bpftool"), dir: tb.TempDir(), object: o}
	l.path = l.write("o.o", o.Data)
	return l
}

func (l *loaders) write(name string, data []byte) string {
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// compare returns what is decided differently on the minimized BTF.
func (l *loaders) compare(kernel, minimized []byte) (differ []string) {
	full, ended := l.libbpf(kernel)
	small, smallEnded := l.libbpf(minimized)
	// bpftool cannot write types of all kinds, and ends where it has to.
	n := min(len(full), len(small))
	if !ended && !smallEnded && len(full) != len(small) {
		differ = append(differ, fmt.Sprintf("libbpf: %d records, minimized %d", len(full), len(small)))
	}
	for i := range n {
		if full[i] != small[i] {
			differ = append(differ, fmt.Sprintf("libbpf: %s, minimized %s", full[i], small[i]))
		}
	}
	return append(differ, ciliumDiffers(l, l.object, kernel, minimized)...)
}

// ciliumDiffers returns what cilium/ebpf decides differently on the minimized
// BTF, where it can read the kernel's.
func ciliumDiffers(tb testing.TB, o verify.Object, kernel, minimized []byte) (differ []string) {
	if !finite(tb, kernel) {
		return nil
	}
	j := verify.NewJudge(tb.Context(), verify.Config{Objects: []verify.Object{o}})
	if err := j.Load(tb.Context(), &corpus.Kernel{Name: "k", BTF: kernel}); err != nil {
		return nil
	}
	if _, err := j.Compare(tb.Context(), kernel); err != nil {
		return nil
	}
	k, err := j.Compare(tb.Context(), minimized)
	if err != nil {
		return []string{err.Error()}
	}
	for _, d := range k.Differences {
		if strings.HasPrefix(d.Full, "error at ") && strings.HasPrefix(d.Minimized, "error at ") {
			continue // an operand is wrong; which candidate is the first does not matter
		}
		differ = append(differ, fmt.Sprintf("%s: %s: %s, minimized %s", d.Loader, d.Relocation, d.Full, d.Minimized))
	}
	return differ
}

// libbpf returns bpftool's result of each relocation. ended says that there may be more.
func (l *loaders) libbpf(btf []byte) (out []string, ended bool) {
	res, err := oracle.Run(l.Context(), l.bpftool, l.write("k.btf", btf), filepath.Join(l.dir, "out.btf"), l.path)
	if err != nil {
		l.Fatal(err)
	}
	if len(res.Records) == 0 {
		return []string{"refused: " + res.Failure}, true
	}
	for _, r := range res.Records {
		var found []string
		for _, c := range r.Candidates {
			if c.Match {
				found = append(found, fmt.Sprintf("%s %s%s @ %s", c.TypeKind, c.TypeName, c.Path, c.Offset))
			}
		}
		slices.Sort(found)
		if r.Err != "" { // it stopped in the midst of the candidates, whose order is not that of the kernel
			found = []string{"error"}
		}
		out = append(out, fmt.Sprintf("%s %s%s: %s", r.Kind, r.Local.TypeName, r.Local.Path, slices.Compact(found)))
	}
	return out, res.ExitStatus != 0
}

// finite reports whether no type of a BTF contains itself by value: cilium/ebpf would not end.
func finite(tb testing.TB, data []byte) bool {
	b, err := btf.New(data, nil)
	if err != nil {
		tb.Fatal(err)
	}
	const active, done = 1, 2
	state := make([]byte, b.NumTypes())
	var visit func(id btf.TypeID) bool
	visit = func(id btf.TypeID) bool {
		if state[id] != 0 {
			return state[id] == done
		}
		state[id] = active
		ok := true
		t := b.Type(id)
		switch k := t.Kind(); {
		case k == btf.KindArray:
			ok = visit(t.Array().Elem)
		case k == btf.KindTypedef, k.IsMod():
			ok = visit(t.Ref())
		case k.IsComposite():
			for i := range t.Vlen() {
				ok = ok && visit(t.Member(i).Type)
			}
		}
		state[id] = done
		return ok
	}
	for id := range b.NumTypes() {
		if !visit(btf.TypeID(id)) {
			return false
		}
	}
	return true
}

// TestShapesLoaders is TestOddLoaders for random kernels.
func TestShapesLoaders(t *testing.T) {
	slow.Nightly(t)
	data := testbtf.Object(t, binary.LittleEndian, shapedTypes, shapedAsks)
	o, err := core.ParseObject("o", data)
	if err != nil {
		t.Fatal(err)
	}
	j := newLoaders(t, verify.Object{Object: o, Data: data})
	rnd := rand.New(rand.NewPCG(21, 4))
	minimized, refused := 0, 0
	for n := range 300 {
		in := make([]byte, 40+rnd.IntN(600))
		for i := range in {
			in[i] = byte(rnd.Uint32())
		}
		kernel := (&shaper{data: in, few: true}).kernel()
		target, err := testinput.NewKernel("k", kernel)
		if err != nil {
			t.Fatal(err)
		}
		out, err := minimize.Blob(minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(t.Context(), target))
		if err != nil {
			if refused++; isDefect(err) || errors.Is(err, t.Context().Err()) {
				t.Errorf("kernel %d: %v", n, err)
			}
			continue
		}
		minimized++
		for _, d := range j.compare(kernel, out) {
			t.Errorf("kernel %d: %s", n, d)
		}
	}
	t.Logf("%d kernels minimized, %d refused", minimized, refused)
	if minimized == 0 {
		t.Error("none was minimized")
	}
}
