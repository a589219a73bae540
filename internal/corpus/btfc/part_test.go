// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// changing returns kernels. Some of them have the types of the one before, some have fewer and some have others.
func changing(t testing.TB) []input {
	var all []input
	for n := range 70 {
		var b strings.Builder
		for i := range 60 {
			fmt.Fprintf(&b, "struct s%d %d: next *s%d 0, data%d u8[%d] 8\n", i, 64+n/4*i%5+n%4/3, (i+1)%60, (i+n%4/3)%4, 4+i%7)
		}
		for i := range 6 - n%4 { // of four kernels two lose something, and have nothing new; and the third changes all for a while
			fmt.Fprintf(&b, "enum e%d 4: A%d 1\n", i, i)
		}
		all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), testbtf.Types(t, binary.LittleEndian, b.String())))
	}
	return all
}

// TestParts reads parts of kernels in several orders and by several goroutines, and compares them with those that each kernel gives alone.
func TestParts(t *testing.T) {
	all := changing(t)
	data := written(t, nil, all...)
	q := NewQuery(map[string]btf.Reach{"s1": btf.ReachValue, "s3": btf.ReachAll, "e2": btf.ReachValue})
	want := make([][]byte, len(all))
	for i := range all {
		p, err := open(t, data).For(q).Part(ctx, i, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want[i] = p.BTF; p.Size != int64(len(all[i].btf)) || len(want[i]) < 100 || len(want[i]) > len(all[i].btf) {
			t.Fatalf("kernel %d: a part of %d bytes, of %d", i, len(want[i]), len(all[i].btf))
		}
	}
	inOrder := make([]int, len(all))
	for i := range inOrder {
		inOrder[i] = i
	}
	for round, order := range [][]int{inOrder, rand.New(rand.NewPCG(1, 2)).Perm(len(all))} {
		p := open(t, data).For(q)
		for workers := range 3 {
			next := make(chan int, len(order))
			for _, i := range order {
				next <- i
			}
			close(next)
			var g errgroup.Group
			for range 1 + 3*workers {
				g.Go(func() error {
					for i := range next {
						if got, err := p.Part(ctx, i, nil, nil); err != nil || !bytes.Equal(got.BTF, want[i]) {
							return fmt.Errorf("round %d, kernel %d: another part, error %v", round, i, err)
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReadOrder reads kernels in any order, some of them more than once, with several goroutines.
func TestReadOrder(t *testing.T) {
	if !raceflag.Enabled {
		slow.Skip(t)
	}
	all := changing(t)
	data := written(t, nil, all...)
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 30
	if raceflag.Enabled {
		rounds = 12
	}
	for round := range rounds {
		f := open(t, data)
		order := r.Perm(len(all))
		if round%2 == 0 {
			slices.Sort(order)
		}
		wanted := slices.DeleteFunc(slices.Clone(order), func(int) bool { return r.IntN(1+round%4) > 0 })
		next := make(chan int, 3*len(all))
		for _, i := range slices.Concat(wanted, wanted, order) {
			next <- i
		}
		close(next)
		var g errgroup.Group
		for range 1 + round%3 {
			g.Go(func() error {
				for i := range next {
					if got, err := f.BTF(ctx, i, nil); err != nil || !bytes.Equal(got, all[i].btf) {
						return fmt.Errorf("round %d, kernel %d: other bytes, error %v", round, i, err)
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// TestPartsOfModules reads what a query selects of a kernel and its modules.
func TestPartsOfModules(t *testing.T) {
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		k := withModules(t, order)
		f := open(t, written(t, nil, k)).For(NewQuery(map[string]btf.Reach{"ext0_3": btf.ReachValue, "s7": btf.ReachValue}))
		for _, test := range []struct {
			name   string
			choose func(string) bool
			want   string // modules with struct ext0_3 are m1 and m8
			err    error
		}{
			{"no modules", nil, "", nil},
			{"all", func(string) bool { return true }, "", ErrWhole}, // some are stored as bytes
			{"good ones", func(name string) bool { return !strings.HasSuffix(name, "bad") }, "m1 m8", nil},
			{"two", func(name string) bool { return name == "m2" || name == "m8" }, "m8", nil},
		} {
			p, err := f.Part(ctx, 0, test.choose, nil)
			if err != test.err {
				t.Fatalf("%s: error %v", test.name, err)
			}
			if err != nil {
				continue
			}
			base := load(t, p.BTF, nil)
			if last := base.Type(btf.TypeID(base.NumTypes() - 1)); last.Kind() != btf.KindPtr || last.Ref() != 0 {
				t.Errorf("%s: the last type is a %s", test.name, last.Kind())
			}
			if got := structs(base); !strings.Contains(got, "s7 64") {
				t.Errorf("%s: the kernel has %s", test.name, got)
			}
			size, names := int64(len(k.btf)), []string(nil)
			for _, m := range k.modules {
				if test.choose != nil && test.choose(m.Name) {
					size += int64(len(m.BTF))
				}
			}
			for _, m := range p.Modules {
				names = append(names, m.Name)
				if got := structs(load(t, m.BTF, base)); !strings.Contains(got, "ext0_3 16") {
					t.Errorf("%s: module %s has %s", test.name, m.Name, got)
				}
			}
			if got := strings.Join(names, " "); got != test.want || p.Size != size {
				t.Errorf("%s: modules %s, %d bytes; want %s, %d", test.name, got, p.Size, test.want, size)
			}
		}
		modules, err := f.Modules(ctx, 0)
		if err != nil || !slices.EqualFunc(modules, k.modules, func(a, b Module) bool { return bytes.Equal(a.BTF, b.BTF) }) {
			t.Errorf("%d modules of %d, error %v", len(modules), len(k.modules), err)
		}
	}
}

func load(t *testing.T, data []byte, base *btf.BTF) *btf.BTF {
	t.Helper()
	b, err := btf.New(data, base)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// structs lists the names and sizes of the structs of a view, without those of its base.
func structs(b *btf.BTF) string {
	var out []string
	for id := range b.Named {
		if s := b.Type(id); s.Kind() == btf.KindStruct {
			out = append(out, fmt.Sprintf("%s %d", s.Name(), s.Size()))
		}
	}
	return strings.Join(out, ", ")
}

// TestTampered changes each byte of a file. There is an error for the file, or for kernels whose chunks depend on that byte, whether they are
// read as a whole or in part.
func TestTampered(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	all := []input{in("6.1.0-1-amd64", build(t, binary.LittleEndian, 1)), in("6.1.0-2-amd64", build(t, binary.LittleEndian, 2))}
	all[1].modules = []Module{{"ext4", splitBTF(binary.LittleEndian, all[1].btf, 20, func(i int) string { return fmt.Sprint("ext", i) })}}
	all[0].extras = extras(1)
	good := written(t, nil, all...)
	q := NewQuery(map[string]btf.Reach{"s1": btf.ReachValue, "ext1": btf.ReachValue})
	chunks := open(t, good).end
	for at := range good {
		data := bytes.Clone(good)
		data[at] ^= 1 << (at % 8)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			continue
		}
		if int64(at) < int64(headerLen) || int64(at) >= chunks {
			t.Fatalf("byte %d of %d: no error", at, len(data))
		}
		hit := false
		for i := range all {
			e := f.Entries()[i]
			_, errBTF := f.BTF(ctx, i, nil)
			_, errModules := f.Modules(ctx, i)
			_, errExtras := f.Extras(ctx, i)
			_, errPart := f.For(q).Part(ctx, i, func(string) bool { return true }, nil)
			hit = hit || errBTF != nil || errModules != nil || errExtras != nil
			if want := errBTF; e.Modules == 0 && (errPart != nil) != (want != nil) || e.Modules > 0 && (errPart != nil) != (errModules != nil) {
				t.Fatalf("byte %d: BTF %v, modules %v, part %v", at, errBTF, errModules, errPart)
			}
		}
		if !hit {
			t.Fatalf("byte %d of %d: no error", at, len(data))
		}
	}
}

// moving returns kernels in which functions, prototypes and names are used by structs in some versions only, so that they move between back
// and front.
func moving() (all []input) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("n%d", r.IntN(30)) }
	for n := range 30 {
		b := btf.NewBuilder(binary.LittleEndian)
		number := b.Type("int", btf.KindInt, false, 0, 4)
		b.Word(32)
		var types []uint32
		for range 12 {
			types = append(types, uint32(b.Type("", btf.KindPtr, false, 0, uint32(number))), uint32(b.Type("", btf.KindConst, false, 0, uint32(number))))
		}
		var funcs []uint32
		for i := range 12 {
			id := b.Type("", btf.KindFuncProto, false, 1+i%3, uint32(number))
			for range 1 + i%3 {
				b.Word(b.String(word()), types[r.IntN(len(types))])
			}
			if r.IntN(3) > 0 {
				funcs = append(funcs, uint32(b.Type(fmt.Sprintf("f%d", r.IntN(1000)), btf.KindFunc, false, 1, uint32(id))))
			}
			types = append(types, uint32(b.Type("", btf.KindPtr, false, 0, uint32(id))))
		}
		for _, f := range funcs {
			if r.IntN(2) > 0 {
				b.Type(word(), btf.KindDeclTag, false, 0, f)
				b.Word(^uint32(0))
			}
		}
		for i := range 20 {
			b.Type(fmt.Sprintf("s%d", i), btf.KindStruct, false, 2, 16)
			for m := range 2 {
				b.Word(b.String(word()), types[(i*7+n/5*m+r.IntN(2))%len(types)], uint32(64*m))
			}
		}
		all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), b.Bytes()))
	}
	return all
}

// TestFront reads kernels whose functions share names and types with structs, as a whole and in part.
func TestFront(t *testing.T) {
	all := moving()
	data := written(t, nil, all...)
	f := open(t, data)
	same(t, f, all...)
	q := NewQuery(map[string]btf.Reach{"s1": btf.ReachAll, "s7": btf.ReachPointees, "s8": btf.ReachValue})
	parts := f.For(q)
	backs := 0
	for i, k := range all {
		p, err := parts.Part(ctx, i, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := open(t, written(t, nil, k)).For(q).Part(ctx, 0, nil, nil)
		if err != nil || !bytes.Equal(p.BTF, alone.BTF) {
			t.Fatalf("kernel %d: a part of %d bytes, alone of %d, error %v", i, len(p.BTF), len(alone.BTF), err)
		}
		whole := members(load(t, k.btf, nil))
		for name, got := range members(load(t, p.BTF, nil)) {
			if got != whole[name] {
				t.Errorf("kernel %d: struct %s has %s, want %s", i, name, got, whole[name])
			}
		}
		if f.entries[i].Chunks[partBTF].Back.Size > 0 {
			backs++
		}
	}
	if backs < len(all)/2 {
		t.Errorf("%d kernels with a back", backs)
	}
	at := f.entries[0].Chunks[partBTF].Back.offset
	data[at] ^= 1
	for _, read := range []func(*File) error{
		func(f *File) error { _, err := f.BTF(ctx, 0, nil); return err },
		func(f *File) error { _, err := f.For(q).Part(ctx, 0, nil, nil); return err },
	} {
		if err := read(open(t, data)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at byte %d:", at)) {
			t.Errorf("byte %d is damaged: error %v", at, err)
		}
	}
	data[at] ^= 1
	if slow.Enabled() {
		second(t, data, all...)
	}
}

// members returns the members of structs, with the kinds of their types.
func members(b *btf.BTF) map[string]string {
	all := make(map[string]string)
	for id := range b.Named {
		ty := b.Type(id)
		if ty.Kind() != btf.KindStruct {
			continue
		}
		var s strings.Builder
		for i := range ty.Vlen() {
			m := ty.Member(i)
			fmt.Fprintf(&s, "%s %d %v, ", b.Name(m.NameOff), m.BitOffset, b.Type(m.Type).Kind())
		}
		all[string(ty.Name())] = s.String()
	}
	return all
}
