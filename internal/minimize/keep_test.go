// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	cbtf "github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// describer says what cilium/ebpf reads of types, as hashes, so that types that are the same
// have the same, whatever their place. Behind a pointer that of a named struct, union or
// enum is its name.
type describer map[describerKey]string

type describerKey struct {
	t      cbtf.Type
	behind bool
}

func (d describer) of(t cbtf.Type, behind bool) string {
	key := describerKey{t, behind}
	if s, ok := d[key]; ok {
		return s
	}
	d[key] = "itself" // only hostile types get here without a name
	h := sha256.New()
	d.write(h, t, behind)
	s := fmt.Sprintf("%x", h.Sum(nil)[:16])
	d[key] = s
	return s
}

func (d describer) write(w io.Writer, t cbtf.Type, behind bool) {
	members := func(l []cbtf.Member) {
		for _, m := range l {
			fmt.Fprintln(w, m.Name, m.Offset, m.BitfieldSize, d.of(m.Type, false))
		}
	}
	switch t := t.(type) {
	case *cbtf.Void:
		fmt.Fprintln(w, "void")
	case *cbtf.Int:
		fmt.Fprintln(w, "int", t.Name, t.Size, t.Encoding)
	case *cbtf.Float:
		fmt.Fprintln(w, "float", t.Name, t.Size)
	case *cbtf.Pointer:
		fmt.Fprintln(w, "pointer", d.of(t.Target, true))
	case *cbtf.Array:
		fmt.Fprintln(w, "array", t.Nelems, d.of(t.Type, behind), d.of(t.Index, behind))
	case *cbtf.Fwd:
		fmt.Fprintln(w, t.Kind, t.Name)
	case *cbtf.Struct:
		if fmt.Fprintln(w, "struct", t.Name); !behind || t.Name == "" {
			fmt.Fprintln(w, t.Size)
			members(t.Members)
		}
	case *cbtf.Union:
		if fmt.Fprintln(w, "union", t.Name); !behind || t.Name == "" {
			fmt.Fprintln(w, t.Size)
			members(t.Members)
		}
	case *cbtf.Enum:
		if fmt.Fprintln(w, "enum", t.Name, t.Size, t.Signed); !behind || t.Name == "" {
			fmt.Fprintln(w, t.Values)
		}
	case *cbtf.Typedef:
		fmt.Fprintln(w, "typedef", t.Name, d.of(t.Type, behind))
	case *cbtf.Const:
		fmt.Fprintln(w, "const", d.of(t.Type, behind))
	case *cbtf.Volatile:
		fmt.Fprintln(w, "volatile", d.of(t.Type, behind))
	case *cbtf.Restrict:
		fmt.Fprintln(w, "restrict", d.of(t.Type, behind))
	case *cbtf.TypeTag:
		fmt.Fprintln(w, "type tag", t.Value, d.of(t.Type, behind))
	case *cbtf.Func:
		fmt.Fprintln(w, "func", t.Name, t.Linkage, d.of(t.Type, behind))
	case *cbtf.FuncProto:
		fmt.Fprintln(w, "proto", d.of(t.Return, behind))
		for _, p := range t.Params {
			fmt.Fprintln(w, p.Name, d.of(p.Type, behind))
		}
	case *cbtf.Var:
		fmt.Fprintln(w, "var", t.Name, t.Linkage, d.of(t.Type, behind))
	default:
		panic(fmt.Sprintf("%T", t))
	}
}

// described returns what BTF says of all types of a kind, with the names and without doubles.
func described(t testing.TB, data []byte, of func(cbtf.Type) bool) map[string]string {
	t.Helper()
	spec, err := cbtf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	d, out := make(describer), make(map[string]string)
	for typ, err := range spec.All() {
		if err != nil {
			t.Fatal(err)
		}
		if of(typ) {
			out[d.of(typ, false)] = fmt.Sprint(typ)
		}
	}
	return out
}

// everything is patterns that keep all there is.
var everything = []string{"struct:*", "union:*", "enum:*", "enum:.*", "typedef:*", "func:*", "var:*"}

func isKept(t cbtf.Type) bool {
	switch t := t.(type) {
	case *cbtf.Enum, *cbtf.Func, *cbtf.Var:
		return true
	case *cbtf.Struct, *cbtf.Union, *cbtf.Typedef:
		return t.TypeName() != ""
	}
	return false
}

// TestKeepEverything keeps all types of each kernel, and has cilium/ebpf compare.
func TestKeepEverything(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	if strconv.IntSize == 32 {
		t.Skip("skipped: on 32 bits cilium/ebpf refuses declaration tags that are of no member, and a kernel with them as a whole")
	}
	t.Parallel()
	keep, err := core.ParseKeep(everything...)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	n := 0
	testinput.Each(t, testinput.Varied(t), func(it *corpus.Kernel) {
		if n++; n%3 != 1 || n != 4 && !slow.Night() || strings.Contains(it.Name, ".el8") {
			return // a third of them shows it, by default one; el8 is not deduplicated, and more than limits.Members
		}
		target, err := testinput.NewKernel(it.Name, it.BTF)
		if err != nil {
			t.Fatal(err)
		}
		m := New(nil, Options{Keep: keep})
		out, err := blob(m.Minimize(t.Context(), target))
		if err != nil {
			t.Error(err)
			return
		}
		want, got := described(t, it.BTF, isKept), described(t, out, isKept)
		for k, name := range want {
			if _, ok := got[k]; !ok {
				t.Errorf("%s: %s is missing or differs", it.Name, name)
			}
			seen[name[:strings.IndexAny(name, ":[")]]++
		}
		for k, name := range got {
			if _, ok := want[k]; !ok && !strings.HasPrefix(name, "Fwd") {
				t.Errorf("%s: %s is not the kernel's", it.Name, name)
			}
		}
	})
	t.Log(seen)
	for _, kind := range []string{"Struct", "Union", "Enum", "Typedef", "Func", "Var"} {
		if seen[kind] == 0 {
			t.Errorf("no kernel has a %s: %v", kind, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// keepKernel has one of each.
const keepKernel = `
	int char 1 signed
	typedef pid_t int
	typedef kuid_t #kuid
	struct #kuid 4: val u32 0
	const #ccc pid_t
	tag user #ccc
	enum state 4: IDLE 0, BUSY 1, DEAD 2
	enum #anon 4: A 1, B 2
	enum64 wide 8 signed: W 0x8000000000000000
	struct other 8: x int 0, y int 4
	struct inner 8: lo #ccc 0, hi u32 4
	struct foo 64: in inner 0, a u32 @64:3, b u32 @67:5, # #un 16, next *foo 24, far *other 32, st state 40, id kuid_t 44, name char[4] 48, op *fn 56, who *user 60
	union #un 4: n int 0, p pid_t 0
	union bar 8: f *foo 0, s inner 0
	proto fn void: self *foo, count pid_t
	func do_it fn
	var jiffies u64
	struct task 8: pid int 0, tgid int 4
`

// keepCases are patterns on keepKernel, by name. Those of "everything" are in named.
var keepCases = map[string][]string{
	"whole":      {"struct:foo", "union:bar"},
	"members":    {"struct:foo.a", "struct:foo.p", "struct:foo.name", "struct:foo.far", "union:bar.s"},
	"enums":      {"enum:state", "enum:.B", "enum:wide.W"},
	"functions":  {"func:do_it", "var:jiffies"},
	"typedefs":   {"typedef:pid_t", "typedef:kuid_t"},
	"everything": everything,
}

// named is what everything names on keepKernel.
var named = []string{
	"struct:foo", "struct:inner", "struct:other", "struct:task", "union:bar", "enum:state", "enum:wide", "enum:.A", "enum:.B",
	"typedef:pid_t", "typedef:kuid_t", "func:do_it", "var:jiffies",
}

// readKept returns what cilium/ebpf reads of what patterns name, or an error.
func readKept(data []byte, patterns []string) (out []string, err error) {
	spec, err := cbtf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	d := make(describer)
	for _, p := range patterns {
		kind, rest, _ := strings.Cut(p, ":")
		name, path, _ := strings.Cut(rest, ".")
		text := ""
		for t, err := range spec.All() {
			if err != nil {
				return nil, err
			}
			got := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", t), "*btf."))
			if got == kind && t.TypeName() == name && text == "" {
				text = d.part(t, path)
			}
		}
		out = append(out, p+" "+text)
	}
	return out, nil
}

// part describes the type at the end of a path from t, and its place; "" if it is missing.
func (d describer) part(t cbtf.Type, path string) string {
	if path == "" {
		return d.of(t, false)
	}
	word, rest, _ := strings.Cut(path, ".")
	var members []cbtf.Member
	switch u := cbtf.UnderlyingType(t).(type) {
	case *cbtf.Pointer:
		return d.part(u.Target, path)
	case *cbtf.Array:
		return d.part(u.Type, path)
	case *cbtf.Enum:
		for _, v := range u.Values {
			if v.Name == word {
				return fmt.Sprint(u.Name, u.Size, u.Signed, v)
			}
		}
	case *cbtf.Struct:
		members = u.Members
	case *cbtf.Union:
		members = u.Members
	}
	for _, m := range members {
		in := ""
		if m.Name == word {
			in = d.part(m.Type, rest)
		} else if m.Name == "" {
			in = d.part(m.Type, path)
		}
		if in != "" {
			size, _ := cbtf.Sizeof(t)
			return fmt.Sprintf("%T %s %d %s %d %d ", t, t.TypeName(), size, m.Name, m.Offset, m.BitfieldSize) + in
		}
	}
	return ""
}

// TestKeepMutants breaks the minimizer in one place at a time. The proof has to refuse
// outputs in which cilium/ebpf reads other kept types, or decides differently.
func TestKeepMutants(t *testing.T) {
	o, data := smallObject(t, "struct task 8: pid int 0\n struct other 8: x int 0", "byte_off struct task.pid\n byte_off struct other.x")
	kernel := testbtf.Types(t, binary.LittleEndian, keepKernel)
	sum := make(tally)
	for name, keep := range keepCases {
		t.Run(name, func(t *testing.T) {
			p := newPipeline(t, "k", kernel, []verify.Object{{Object: o, Data: data}}, keep...)
			patterns := keep
			if name == "everything" {
				patterns = named
			}
			want, err := readKept(kernel, patterns)
			if err != nil || strings.Contains(strings.Join(want, "\n")+"\n", " \n") {
				t.Fatalf("%q: %v", want, err)
			}
			for _, mu := range p.mutants() {
				out := p.run(&mu)
				n := sum.of(mu.rule)
				if n.made++; bytes.Equal(out, p.whole) {
					n.same++
					continue
				}
				got, err := readKept(out, patterns)
				proof, changed := p.prove(out), err != nil || !slices.Equal(got, want)
				if !changed {
					j := p.ask(out)
					changed = j.changed()
				}
				switch {
				case changed && proof == nil:
					t.Errorf("%s: the proof accepts it", mu.rule)
				case changed:
					n.changed++
				case proof != nil:
					n.beyond++
				}
				if proof != nil {
					n.refused++
				}
			}
		})
	}
	sum.log(t)
	if sum.total().changed == 0 {
		t.Error("no mutant changed anything")
	}
}

// kept minimizes a kernel in the notation of testbtf for an object and patterns.
func kept(t *testing.T, local, asks, kernel string, keep ...string) []byte {
	t.Helper()
	var objects []*core.Object
	if asks != "" {
		o, _ := smallObject(t, local, asks)
		objects = append(objects, o)
	}
	kp, err := core.ParseKeep(keep...)
	if err != nil {
		t.Fatal(err)
	}
	target, err := testinput.NewKernel("k", testbtf.Types(t, binary.LittleEndian, kernel))
	if err != nil {
		t.Fatal(err)
	}
	out, err := blob(New(objects, Options{Keep: kp}).Minimize(t.Context(), target))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// namesOf returns the kinds and names of all types with a name.
func namesOf(t *testing.T, data []byte) (l []string) {
	t.Helper()
	b, err := btf.New(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		if u := b.Type(id); len(u.Name()) > 0 {
			l = append(l, fmt.Sprintf("%s %s %d", u.Kind(), u.Name(), u.Vlen()))
		}
	}
	return l
}

// TestKeepBehindPointers checks what pointers of kept types lead to.
func TestKeepBehindPointers(t *testing.T) {
	const kernel = "struct foo 16: p *bar 0, e *colour 8\n struct bar 8: x int 0, y int 4\n enum colour 4: RED 0\n" +
		"struct foo#2 16: p *bar#2 0, e *colour 8\n struct bar#2 8: x int 0, y int 4\n"
	for _, tc := range []struct {
		name, local, asks string
		keep, want        []string
	}{
		{"nothing else needs it", "", "", []string{"struct:foo"}, []string{"fwd bar 0", "enum colour 0", "struct foo 2"}},
		{"a relocation needs a member", "struct bar 4: y int 0", "byte_off struct bar.y", []string{"struct:foo"}, []string{"struct bar 1", "enum colour 0", "struct foo 2", "int int 0"}},
		{"another pattern", "", "", []string{"struct:foo", "struct:bar.x", "enum:colour"}, []string{"struct bar 1", "enum colour 1", "struct foo 2", "int int 0"}},
		{"a member, and one of the struct that it points to", "", "", []string{"struct:foo.p", "struct:bar.x"}, []string{"struct bar 1", "struct foo 1", "int int 0"}},
		{
			"a relocation about a forward declaration that the kernel does not have", "fwd bar struct", "type_exists bar",
			[]string{"struct:foo"},
			[]string{"struct bar 0", "enum colour 0", "struct foo 2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := namesOf(t, kept(t, tc.local, tc.asks, kernel, tc.keep...)); !slices.Equal(got, tc.want) {
				t.Errorf("have %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestKeepCopies wants all types of a name that differ, and equal ones once.
func TestKeepCopies(t *testing.T) {
	const kernel = "struct foo 8: a in 0\n struct in 8: x int 0\n struct foo#2 8: a in#2 0\n struct in#2 8: x int 0\n struct foo#3 4: b int 0\n"
	want := []string{"struct foo 1", "struct foo 1", "struct in 1", "int int 0"}
	if got := namesOf(t, kept(t, "", "", kernel, "struct:foo")); !slices.Equal(got, want) {
		t.Errorf("have %q\nwant %q", got, want)
	}
}

// TestKeepBesideObjects has libbpf's rules and cilium/ebpf decide as on the kernel, whatever is kept.
func TestKeepBesideObjects(t *testing.T) {
	slow.Skip(t)
	var objects []verify.Object
	var plain []*core.Object
	for _, o := range testinput.Objects(t) {
		objects, plain = append(objects, verify.Object(o)), append(plain, o.Object)
	}
	keep, err := core.ParseKeep("struct:task_struct", "struct:sock.*", "enum:hrtimer_restart", "typedef:*_t", "func:tcp_*", "struct:list_head")
	if err != nil {
		t.Fatal(err)
	}
	m := New(plain, Options{Keep: keep})
	for _, k := range testinput.Kernels(t, "6.1.0-47-amd64", "armhf") {
		target, err := testinput.NewKernel(k.Name, k.BTF)
		if err != nil {
			t.Fatal(err)
		}
		out, err := blob(m.Minimize(t.Context(), target))
		if err != nil {
			t.Fatal(err)
		}
		p := pipeline{T: t, judge: judge(t, objects, k.Name, k.BTF)}
		if j := p.ask(out); j.changed() {
			t.Errorf("%s: %v %+v", k.Name, j.err, j.diffs)
		}
	}
}
