// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	cbtf "github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestOutput minimizes every kernel and checks what all outputs have in
// common. That they decide the same is checked by Minimize itself, by the
// comparison with bpftool, and by btfgen verify.
func TestOutput(t *testing.T) {
	objs := objects(t)
	kernels := 0
	eachKernel(t, func(name string, data []byte) {
		full, err := testinput.NewKernel(name, data)
		if err != nil {
			t.Fatal(err)
		}
		out, err := minimize.Blob(minimize.New(objs, minimize.Options{}).Minimize(t.Context(), full))
		if err != nil {
			t.Fatal(err)
		}
		v, err := btf.New(out, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if v.Order() != full.Order() || v.PointerSize() != uint32(full.PointerSize()) {
			t.Errorf("%s: byte order %s, pointers of %d bytes", name, v.Order(), v.PointerSize())
		}
		if h := v.Order().Uint32(out[4:]); h != 24 {
			t.Errorf("%s: header of %d bytes, want the 24 that every loader reads", name, h)
		}
		checkSorted(t, name, v)
		if _, err := cbtf.LoadSpecFromReader(bytes.NewReader(out)); err != nil {
			t.Errorf("%s: cilium/ebpf: %v", name, err)
		}
		kernels++
	})
	t.Logf("%d kernels", kernels)
	if kernels < 8 {
		t.Errorf("only %d kernels", kernels)
	}
}

// checkSorted holds the order that newer libbpf searches by bisection.
func checkSorted(t *testing.T, name string, v *btf.BTF) {
	t.Helper()
	last := ""
	for id := btf.TypeID(1); int(id) < v.NumTypes(); id++ {
		u := v.Type(id)
		if n := string(u.Name()); n < last {
			t.Fatalf("%s: type %d %q comes after %q", name, id, n, last)
		} else {
			last = n
		}
	}
}

// TestOrderOfKernel shuffles the types of a kernel, which must not change a
// byte of the output.
func TestOrderOfKernel(t *testing.T) {
	objs := objects(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	done := false
	keep, err := core.ParseKeep("struct:*sock*", "enum:.*", "func:vfs_*", "typedef:*_t", "var:*")
	if err != nil {
		t.Fatal(err)
	}
	eachKernel(t, func(name string, data []byte) {
		if done || !strings.Contains(name, "x86_64/6.12") {
			return
		}
		done = true
		shuffled := shuffle(t, data, rnd)
		for _, opts := range []minimize.Options{{}, {Keep: keep}} {
			var outs [][]byte
			for _, blob := range [][]byte{data, shuffled} {
				full, err := testinput.NewKernel(name, blob)
				if err != nil {
					t.Fatal(err)
				}
				out, err := minimize.Blob(minimize.New(objs, opts).Minimize(t.Context(), full))
				if err != nil {
					t.Fatal(err)
				}
				outs = append(outs, out)
			}
			if !bytes.Equal(outs[0], outs[1]) {
				t.Errorf("%d bytes, and %d from the shuffled kernel, differ", len(outs[0]), len(outs[1]))
			}
		}
	})
	if !done {
		t.Fatal("kernel is not there")
	}
}

// shuffle returns a little-endian BTF with its types in another order.
func shuffle(t *testing.T, data []byte, rnd *rand.Rand) []byte {
	t.Helper()
	v, err := btf.New(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	n := v.NumTypes() - 1
	to := make([]uint32, n+1) // old ID to new
	for i, p := range rnd.Perm(n) {
		to[i+1] = uint32(p + 1)
	}
	recs := make([][]byte, n+1)
	for at, id := data[24:24+le.Uint32(data[12:])], 1; len(at) > 0; id++ {
		u := v.Type(btf.TypeID(id))
		size, refs := layoutOf(&u)
		r := bytes.Clone(at[:size])
		at = at[size:]
		for _, off := range refs {
			le.PutUint32(r[off:], to[le.Uint32(r[off:])])
		}
		recs[to[id]] = r
	}
	out := bytes.Clone(data[:24])
	for _, r := range recs {
		out = append(out, r...)
	}
	return append(out, data[len(out):]...)
}

// layoutOf returns the size of a type's record and where it has references.
func layoutOf(u *btf.Type) (size int, refs []int) {
	shape := u.Kind().Shape()
	words := append([]btf.Word{btf.Name, btf.Data, shape.Third}, shape.Extra...)
	for i := uint32(0); i < u.Vlen() && len(shape.Elem) > 0; i++ {
		words = append(words, shape.Elem...)
	}
	for i, w := range words {
		if w == btf.Ref {
			refs = append(refs, 4*i)
		}
	}
	return 4 * len(words), refs
}
