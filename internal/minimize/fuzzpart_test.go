// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// partAsks are relocations that look differently far.
var partAsks = []string{
	"byte_off struct s.a\nbyte_off struct s.c[1]\nfield_exists struct s.b", "byte_off struct u.y", "byte_sz struct t.s",
	"type_exists struct t\ntype_exists d", "type_exists p\ntype_size p", "type_size struct s", "type_exists r", "enumval_value enum e::B",
	"type_matches struct t", "type_matches struct u\nbyte_off struct s.b", "byte_off struct t.next\ntype_exists q",
}

// parts has an object for each of partAsks, and what reads of a kernel what it looks at.
type parts struct {
	objects []*core.Object
	queries []*btfc.Query
}

func newParts(t testing.TB) *parts {
	p := new(parts)
	const types = shapedTypes + "typedef q *s\ntypedef r *p\n"
	for _, asks := range partAsks {
		o, err := core.ParseObject("o", testbtf.Object(t, binary.LittleEndian, types, asks))
		if err != nil {
			t.Fatal(err)
		}
		reach := make(map[string]btf.Reach)
		if !o.Reach(reach) {
			t.Fatalf("%s: a whole kernel", asks)
		}
		p.objects, p.queries = append(p.objects, o), append(p.queries, btfc.NewQuery(reach))
	}
	return p
}

// check minimizes a kernel, and what each object looks at of it, and reports how often both gave a BTF. Where the part does,
// the whole has to, and it has to be the same. Objects are numbered from first, by step.
func (p *parts) check(t *testing.T, btf []byte, first, step int) (n int) {
	f := packedKernel(t, btf)
	for i := first; i < len(p.objects); i += step {
		o := p.objects[i]
		part, err := f.For(p.queries[i]).Part(t.Context(), 0, nil, nil)
		if errors.Is(err, btfc.ErrWhole) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		m := minimize.New([]*core.Object{o}, minimize.Options{})
		target, err := testinput.NewKernel("part", part.BTF)
		if err != nil {
			t.Fatal(err)
		}
		target.SetPart()
		of, err := m.Minimize(testlimit.Looks(1<<7), target)
		if errors.Is(err, minimize.ErrPart) {
			t.Errorf("%s: %v", partAsks[i], err)
		}
		if err != nil {
			continue
		}
		if target, err = testinput.NewKernel("whole", btf); err != nil {
			t.Fatal(err)
		}
		whole, err := m.Minimize(testlimit.Looks(1<<8), target)
		if err == context.Canceled { // there may be more to look at
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", partAsks[i], err)
			continue
		}
		if !bytes.Equal(of.BTF, whole.BTF) {
			t.Errorf("%s: %d bytes of a part of the kernel, %d of the whole", partAsks[i], len(of.BTF), len(whole.BTF))
		}
		if decisions, all := describe(of), describe(whole); decisions != all {
			t.Errorf("%s:\n%sof the whole:\n%s", partAsks[i], decisions, all)
		}
		n++
	}
	return n
}

// packedKernel returns a .btfc file with a kernel.
func packedKernel(t testing.TB, btf []byte) *btfc.File {
	t.Helper()
	w, err := btfc.NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	var file bytes.Buffer
	k, err := btfc.Prepare(btfc.Input{Key: kernel.Key{ID: "a", Arch: "x86_64", Release: "1"}, BTF: btf})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Plan(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if err := w.Make(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	f, err := btfc.Open(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// describe lists the decisions on a kernel.
func describe(res *minimize.Result) string {
	var b strings.Builder
	for _, d := range res.Decisions {
		b.WriteString(d.Relocation() + " " + d.Result.String() + "\n")
	}
	return b.String()
}

// TestParts minimizes what objects look at of kernels of all shapes.
func TestParts(t *testing.T) {
	slow.Skip(t)
	p := newParts(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	n := 0
	for range 60 {
		data := make([]byte, 40+rnd.IntN(300))
		for i := range data {
			data[i] = byte(rnd.IntN(256))
		}
		for i := range 20 { // how often things are done, not too often
			data[i*len(data)/20] %= 4
		}
		n += p.check(t, (&shaper{data: data}).kernel(), 0, 1)
	}
	if n < 100 {
		t.Errorf("only %d comparisons", n)
	}
	t.Logf("%d comparisons", n)
}

// FuzzParts does so with any, and with one of the objects.
func FuzzParts(f *testing.F) {
	p := newParts(f)
	for i := range p.objects {
		f.Add([]byte{byte(i), 0xff, 0, 1, 1, 1, 0, 0x10, 0})
		f.Add([]byte{byte(i), 0x40, 2, 2, 0, 3, 0, 0x55, 0x10, 0, 0, 0x0d, 0x20, 8, 0x10})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 0 && len(data) <= 1<<12 {
			p.check(t, (&shaper{data: data[1:]}).kernel(), int(data[0])%len(p.objects), len(p.objects))
		}
	})
}

// TestTrap minimizes a part with fewer types than the relocations look at.
func TestTrap(t *testing.T) {
	le := binary.LittleEndian
	const types = "struct inner 8: a u64 0\nstruct s 16: next *inner 0, b u32 8"
	for asks, trapped := range map[string]bool{"byte_off struct s.b": false, "type_exists struct s": false, "type_matches struct s": true} {
		o, err := core.ParseObject("o", testbtf.Object(t, le, types, asks))
		if err != nil {
			t.Fatal(err)
		}
		f := packedKernel(t, testbtf.Types(t, le, types)).For(btfc.NewQuery(map[string]btf.Reach{"s": btf.ReachValue}))
		part, err := f.Part(t.Context(), 0, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		target, err := testinput.NewKernel("part", part.BTF)
		if err != nil {
			t.Fatal(err)
		}
		target.SetPart()
		if _, err := minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(t.Context(), target); trapped && !errors.Is(err, minimize.ErrPart) || !trapped && err != nil {
			t.Errorf("%s: error %v", asks, err)
		}
	}
}
