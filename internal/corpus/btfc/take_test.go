// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// taken returns the file that is made of these kernels of files, none of which is encoded again.
func taken(t *testing.T, from map[*File][]int, order ...*File) []byte {
	t.Helper()
	w, err := NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for _, f := range order {
		take := w.From(f)
		for _, i := range from[f] {
			if ok, err := take.Take(i); !ok || err != nil {
				t.Fatalf("%s: taken %v, error %v", f.entries[i].Key, ok, err)
			}
		}
		w.Note(f.packages...)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// numbers returns those of n kernels.
func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// other gives kernels another distribution.
func other(id string, all []input) []input {
	all = slices.Clone(all)
	for i := range all {
		all[i].key.ID = id
	}
	return all
}

// TestTake merges two files without encoding anything, splits the result into the same files, and adds a kernel to it.
func TestTake(t *testing.T) {
	kernels := withExtras(t)
	a, b := kernels[:20], other("ubuntu", kernels[15:])
	one, two := written(t, nil, a...), written(t, nil, b...)
	f, g := open(t, one), open(t, two)
	merged := taken(t, map[*File][]int{f: numbers(len(a)), g: numbers(len(b))}, f, g)
	m := open(t, merged)
	all := slices.Concat(a, b)
	same(t, m, all...)
	second(t, merged, all...)
	for i, want := range [][]byte{one, two} {
		part := numbers(len(all))[:len(a)]
		if i == 1 {
			part = numbers(len(all))[len(a):]
		}
		if got := taken(t, map[*File][]int{m: part}, m); !bytes.Equal(got, want) {
			t.Errorf("part %d: other bytes than before it was merged", i)
		}
	}
	more := in("6.1.0-99-amd64", build(t, binary.LittleEndian, 41))
	same(t, open(t, written(t, m, more)), append(all, more)...)
}

// TestTakeRefuses takes kernels without those that they are encoded against, twice, and from a file that is cut.
func TestTakeRefuses(t *testing.T) {
	kernels := withExtras(t)
	data := written(t, nil, kernels[:10]...)
	f := open(t, data)
	w, err := NewWriter(nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	take := w.From(f)
	for _, want := range []struct {
		i     int
		taken bool
		err   error
	}{{1, false, nil}, {0, true, nil}, {0, false, ErrOther}, {2, false, nil}, {1, true, nil}, {2, true, nil}} {
		if ok, err := take.Take(want.i); ok != want.taken || !errors.Is(err, want.err) {
			t.Errorf("kernel %d: taken %v, error %v, want %v, %v", want.i, ok, err, want.taken, want.err)
		}
	}
	if ok, err := w.From(f).Take(0); ok || !errors.Is(err, ErrOther) {
		t.Errorf("the same key of another source: taken %v, error %v", ok, err)
	}
	f.reader = bytes.NewReader(data[:f.entries[4].Chunks[partBTF].offset+1])
	if _, err := take.Take(3); err != nil {
		t.Error(err)
	}
	if ok, err := take.Take(4); ok || err == nil {
		t.Errorf("cut: taken %v, error %v", ok, err)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	same(t, open(t, out.Bytes()), kernels[:4]...)
}

// TestInput encodes kernels of a file anew.
func TestInput(t *testing.T) {
	kernels := withExtras(t)[3:12]
	f := open(t, written(t, nil, kernels...))
	var again []input
	for i := range kernels {
		got, err := f.Input(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, input{got.Key, got.BTF, got.Modules, got.Extras})
	}
	slices.Reverse(again)
	slices.Reverse(kernels)
	same(t, open(t, written(t, nil, again...)), kernels...)
}

// TestContents wants a sum that depends on the kernels and their order, and on nothing else.
func TestContents(t *testing.T) {
	kernels := withExtras(t)[:12]
	sum := func(f *File, kernels []int) Sum {
		t.Helper()
		s, err := f.Contents(ctx, kernels)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := open(t, written(t, nil, kernels...))
	g := open(t, written(t, nil, slices.Concat(other("ubuntu", kernels[2:5]), kernels)...))
	want := sum(f, numbers(12))
	if got := sum(g, numbers(15)[3:]); got != want {
		t.Error("the same kernels encoded against others have another sum")
	}
	seen := map[Sum]string{want: "all"}
	for i, change := range []func(k *input){
		func(k *input) { k.key.Release += "x" },
		func(k *input) { k.btf = build(t, binary.LittleEndian, 100) },
		func(k *input) { k.modules = []Module{{"a", nil}} },
		func(k *input) { k.extras.Config = bytes.ToLower(k.extras.Config) },
		func(k *input) { k.extras.Symbols = bytes.ToUpper(k.extras.Symbols) },
		func(k *input) { k.extras = Extras{} },
	} {
		changed := slices.Clone(kernels)
		change(&changed[11])
		s := sum(open(t, written(t, nil, changed...)), numbers(12))
		if seen[s] != "" {
			t.Errorf("change %d: the sum is that of %s", i, seen[s])
		}
		seen[s] = fmt.Sprint("change ", i)
	}
	if sum(f, numbers(11)) == want || sum(f, append(numbers(12)[1:], 0)) == want {
		t.Error("fewer kernels or another order have the same sum")
	}
}
