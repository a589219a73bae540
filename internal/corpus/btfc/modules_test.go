// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// splitBTF is split BTF with structs of its own by these names, whose members are types of a kernel and each other.
func splitBTF(order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}, kernel []byte, n int, name func(i int) string) []byte {
	types := uint32(0)
	sec, _ := readSections(kernel, int64(len(kernel)))
	b := section(kernel, sec.Types)
	for len(b) > 0 {
		k, vlen := btf.Kind(order.Uint32(b[4:])>>24&0x7f), int(order.Uint32(b[4:])&0xffff)
		b = b[12+4*len(k.Shape().Extra)+4*len(k.Shape().Elem)*vlen:]
		types++
	}
	base := uint32(sec.Strings.Len)
	var own, strs []byte
	for i := range n {
		first := uint32(i)%4 + 1 // an integer
		if i%10 == 0 {
			first = uint32(i*7)%types + 1
		}
		at := base + uint32(len(strs))
		strs = append(strs, name(i)...)
		strs = append(strs, 0)
		for _, v := range []uint32{at, uint32(btf.KindStruct)<<24 | 2, 16, 1, first, 0, at, types + 1 + uint32(i*5%n), 64} {
			own = append(own, order.AppendUint32(nil, v)...)
		}
	}
	out := slices.Concat(kernel[:4], make([]byte, 20), own, strs)
	for i, v := range []uint32{btf.HeaderLen, 0, uint32(len(own)), uint32(len(own)), uint32(len(strs))} {
		order.PutUint32(out[4+4*i:], v)
	}
	return out
}

func withModules(t *testing.T, order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}) input {
	k := in("6.1.0-1-amd64", build(t, order, 1))
	for n := range 9 {
		m := splitBTF(order, k.btf, 20+n, func(i int) string { return fmt.Sprintf("ext%d_%d", (20+n)%7, i) })
		k.modules = append(k.modules, Module{fmt.Sprintf("m%d", n), m})
		bad := bytes.Clone(m)
		bad[n*len(bad)/9] ^= 0x41
		k.modules = append(k.modules, Module{fmt.Sprintf("m%d_bad", n), bad})
	}
	return k
}

// TestSplit packs modules with split BTF, some of them damaged.
func TestSplit(t *testing.T) {
	slow.Skip(t)
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		a := withModules(t, order)
		b := in("6.1.0-2-amd64", build(t, order, 2))
		data := written(t, nil, a, b)
		f := open(t, data)
		same(t, f, a, b)
		raw, packed := 0, f.Entries()[0].Chunks[partModules].Packed
		for _, m := range a.modules {
			raw += len(m.BTF)
		}
		if packed > int64(raw)/8 {
			t.Errorf("%s: modules of %d bytes take %d", order, raw, packed)
		}
		second(t, data, a, b)
	}
}

// TestForgotten encodes the modules of a kernel that the cache has forgotten since, as others did that were made at the same time.
func TestForgotten(t *testing.T) {
	in := withModules(t, binary.LittleEndian)
	synctest.Test(t, func(t *testing.T) { encodeForgotten(t, in) }) // fails at once if encode waits for itself
}

func encodeForgotten(t *testing.T, in input) {
	w, err := NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	k, err := Prepare(Input{Key: in.key, BTF: in.btf, Modules: in.modules})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Plan(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	for _, p := range []part{partBTF, partModules} {
		if _, err := w.encode(t.Context(), k, p); err != nil {
			t.Fatalf("part %d: %v", p, err)
		}
		clear(w.file.states.of)
	}
}

// TestModuleSeries packs builds of a series with modules that change and go, as the kernels do.
func TestModuleSeries(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		var all []input
		for n := range 12 {
			k := in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, order, n))
			for m := range 10 {
				switch {
				case n == 4, m == n: // no modules, and one module fewer
					continue
				case n == 6:
					k.modules = append(k.modules, Module{fmt.Sprintf("m%d", m), []byte("as bytes")})
					continue
				}
				k.modules = append(k.modules, Module{fmt.Sprintf("m%d", m), splitBTF(order, k.btf, 200, func(i int) string {
					switch {
					case i%25 == n: // another one in each
						return fmt.Sprintf("m%d_%d_%d", m, i, n)
					case i < 50: // the kernel has some of these, if not always
						return fmt.Sprintf("s%d", (i*7+m)%90)
					}
					return fmt.Sprintf("m%d_%x", m, i*i*i)
				})})
			}
			all = append(all, k)
		}
		data := written(t, nil, all...)
		f := open(t, data)
		same(t, f, all...)
		second(t, data, all...)
		for i := range f.Entries() {
			e := f.Entries()[i]
			if parent := e.Chunks[partModules].Parent; i > 0 && e.has(partModules) && parent < 0 {
				t.Errorf("%s: modules are encoded against their kernel", e.Key)
			}
		}

		half := open(t, written(t, nil, all[:5]...))
		same(t, open(t, written(t, half, all[5:]...)), all...)
	}
}

// TestModuleError checks that an error names the kernel of the damaged modules, also when those of another kernel are read.
func TestModuleError(t *testing.T) {
	var all []input
	for n := range 2 {
		k := in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n))
		k.modules = []Module{{"m", splitBTF(binary.LittleEndian, k.btf, 50, func(i int) string { return fmt.Sprintf("m%d", i) })}}
		all = append(all, k)
	}
	data := written(t, nil, all...)
	e := open(t, data).entries[0]
	c := e.Chunks[partModules]
	data[c.offset+c.Packed-1] ^= 1
	f := open(t, data)
	want := fmt.Sprintf("kernel %s, at byte %d: ", e.Key, c.offset)
	for i := range all {
		_, err := f.Modules(ctx, i)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "kernel") > 1 {
			t.Errorf("modules of kernel %d: error %v, want %s…", i, err, want)
		}
	}
}

// TestModulesAgain packs the same modules for several builds. They take little from the second one on.
func TestModulesAgain(t *testing.T) {
	var all []input
	r := rand.New(rand.NewPCG(1, 2))
	var names []string
	for range 500 {
		names = append(names, strconv.FormatUint(r.Uint64(), 36))
	}
	for n := range 6 {
		k := in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n))
		if n > 0 {
			k.modules = []Module{{"m", splitBTF(binary.LittleEndian, k.btf, len(names), func(i int) string { return names[i] })}}
		}
		all = append(all, k)
	}
	f := open(t, written(t, nil, all...))
	for i := 2; i < len(all); i++ {
		got, first := f.entries[i].Chunks[partModules].Packed, f.entries[1].Chunks[partModules].Packed
		if f.entries[i].Chunks[partModules].Parent >= 0 && got > first/4 {
			t.Errorf("kernel %d: modules of %d bytes, the first of %d", i, got, first)
		}
	}
}

// TestDamagedModules reads chunks of modules in which every third byte is changed, or is where they end.
func TestDamagedModules(t *testing.T) {
	raceflag.SkipSerial(t)
	k := withModules(t, binary.LittleEndian)
	f := open(t, written(t, nil, k))
	e := f.entries[0]
	good, err := f.read(ctx, &e.Chunks[partModules].frame, new(buffers))
	if err != nil {
		t.Fatal(err)
	}
	back, err := f.read(ctx, &e.Chunks[partModules].Back, new(buffers))
	if err != nil {
		t.Fatal(err)
	}
	base, err := f.states.get(ctx, chunkID{partBTF, 0})
	if err != nil {
		t.Fatal(err)
	}
	readModules := func(payload []byte) (int, error) {
		st, err := decode(base, payload, back, e.unitsSize(partModules), nil)
		if err != nil {
			return 0, err
		}
		_, err = new(builder).build(st, 1, nil)
		return len(st.units) - 1, err
	}
	for at := 0; at < len(good); at += len(good) / slow.Some(len(good)/3) {
		bad := bytes.Clone(good)
		bad[at] ^= 0x15
		n, err := readModules(bad)
		if err == nil && n != len(k.modules) {
			t.Errorf("byte %d changed: %d modules and no error", at, n)
		}
		if _, err := readModules(good[:at]); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", at, len(good))
		}
	}
}

// FuzzModules decodes damaged payloads of modules, with and without a parent: there is an error, or modules.
func FuzzModules(f *testing.F) {
	var all []input
	for n := range 2 {
		k := in(fmt.Sprintf("6.1.0-%d-amd64", n), build(f, binary.LittleEndian, n))
		for m := range 2 {
			k.modules = append(k.modules, Module{fmt.Sprintf("m%d", m), splitBTF(binary.LittleEndian, k.btf, 10, func(i int) string { return fmt.Sprintf("s%d", i*7) })})
		}
		all = append(all, k)
	}
	file := open(f, written(f, nil, all...))
	var parents [2]*state
	var sizes [2]int64
	for i := range parents {
		id := chunkID{partModules, i}
		var err error
		if parents[i], err = file.states.get(ctx, file.parent(id)); err != nil {
			f.Fatal(err)
		}
		e := file.entries[i]
		sizes[i] = e.unitsSize(partModules)
		var payloads [2][]byte
		for n, from := range e.Chunks[partModules].frames() {
			if payloads[n], err = file.read(ctx, from, new(buffers)); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(payloads[0], payloads[1], i == 1)
	}
	f.Fuzz(func(t *testing.T, front, back []byte, second bool) {
		i := 0
		if second {
			i = 1
		}
		st, err := decode(parents[i], front, back, sizes[i], nil)
		if err != nil {
			return
		}
		got, err := new(builder).build(st, 0, nil)
		if err == nil && int64(len(got)) != sizes[i] {
			t.Errorf("%d bytes, want %d", len(got), sizes[i])
		}
	})
}

// TestModuleNames checks that the names of modules can be names of files: readers make paths of them.
func TestModuleNames(t *testing.T) {
	btf := build(t, binary.LittleEndian, 0)
	for _, name := range []string{"", ".", "..", "../victim", "a/../../victim", "/victim", "a/b", `a\b`, "a\nb", "a\x7f", strings.Repeat("x", 300)} {
		if _, err := Prepare(Input{Key: in("6.1", btf).key, BTF: btf, Modules: []Module{{name, btf}}}); err == nil || !strings.Contains(err.Error(), "module") {
			t.Errorf("%q is written: %v", name, err)
		}
		if _, _, err := sumModules([]Module{{name, btf}}); err == nil {
			t.Errorf("%q is read", name)
		}
	}
	if _, err := Prepare(Input{Key: in("6.1", btf).key, BTF: btf, Modules: []Module{{"nf_nat", btf}}}); err != nil {
		t.Error(err)
	}
}

// TestCopies adds kernels with the BTF, or the BTF and the modules, of others in the same run and in the file.
func TestCopies(t *testing.T) {
	with := withModules(t, binary.LittleEndian)
	with.extras = Extras{Config: []byte("CONFIG_BPF=y\n"), Symbols: []byte("t x\n")}
	as := func(release string) input {
		k := with
		k.key.Release = release
		return k
	}
	btf, extras := int64(len(with.btf)), int64(17)
	modules := btf
	for _, m := range with.modules {
		modules += int64(len(m.BTF))
	}
	plain := []byte("not BTF")
	for _, test := range []struct {
		all     []input
		encodes []int64
	}{
		{[]input{in("1", with.btf), as("2"), in("3", with.btf), in("4", build(t, binary.LittleEndian, 2))}, []int64{btf, modules + extras, 0, -1}},
		{[]input{as("1"), as("2"), in("3", with.btf)}, []int64{btf + modules + extras, extras, 0}},
		{[]input{in("1", plain), in("2", plain)}, []int64{7, 0}},
	} {
		w, err := NewWriter(nil, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		for i, k := range test.all {
			it, err := Prepare(Input{Key: k.key, BTF: k.btf, Modules: k.modules, Extras: k.extras})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Plan(ctx, it); err != nil {
				t.Fatal(err)
			}
			if got, want := w.Encodes(it), test.encodes[i]; got != want && want >= 0 {
				t.Errorf("%s: %d bytes to be encoded, want %d", k.key, got, want)
			}
			if err := w.Make(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if _, err := w.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		f := open(t, out.Bytes())
		same(t, f, test.all...)
		for _, e := range f.Entries() {
			if e.Plain != (test.all[0].btf[0] == 'n') {
				t.Errorf("%s: kept as bytes: %v", e.Key, e.Plain)
			}
		}
		more := test.all[1]
		more.key.Release = "9"
		same(t, open(t, written(t, f, more)), append(test.all, more)...)
	}
}
