// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// judgeOf returns a judge of objects, and so their roots.
func judgeOf(t *testing.T, objects ...Object) *Judge {
	t.Helper()
	return NewJudge(t.Context(), Config{Objects: objects, Jobs: 1})
}

// unnamed returns how many types with a name have none in a copy of a BTF.
func unnamed(t *testing.T, full, copied []byte) (n int) {
	t.Helper()
	a, err := btf.New(full, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := btf.New(copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	for id := range a.Named {
		if b.Type(id).NameOff == 0 {
			n++
		}
	}
	return n
}

// TestWithoutCopies counts the candidates that are left out.
func TestWithoutCopies(t *testing.T) {
	const local = "struct req 12: a u32 0, b u32 4\nstruct other 4: a u32 0"
	for _, c := range []struct {
		name, asks, kernel string
		want               int
	}{
		{"copies", "byte_off struct req.a", "struct req 4: a u32 0\n struct req#2 4: a u32 0\n struct req#3 4: a u32 0", 2},
		{"types", "type_exists struct req\n type_size struct req", "struct req 4: a u32 0\n struct req#2 4: a u32 0", 1},
		{"unions", "byte_off struct req.a", "union req 4: a u32 0\n union req#2 4: a u32 0", 1},
		{"a name without relocations", "byte_off struct other.a", "struct req 4: a u32 0\n struct req#2 4: a u32 0", 0},
		{"other flavors", "byte_off struct req.a", "struct req 4: a u32 0\n struct req___x 4: a u32 0", 0},
		{"kind", "byte_off struct req.a", "struct req 4: a u32 0\n union req#2 4: a u32 0", 0},
		{"offset", "byte_off struct req.a", "struct req 12: a u32 0\n struct req#2 12: a u32 4", 0},
		{"size", "byte_off struct req.a", "struct req 4: a u32 0\n struct req#2 8: a u32 0", 0},
		{"type of a member", "byte_off struct req.a", "struct req 4: a u32 0\n struct req#2 4: a int 0", 0},
		{"type in a member", "byte_off struct req.a", "struct in 4: a u32 0\n struct in#2 4: a int 0\n struct req 4: a in 0\n struct req#2 4: a in#2 0", 0},
		{"behind a pointer", "byte_off struct req.a", "struct in 4: a u32 0\n struct in#2 4: a int 0\n struct req 8: a *in 0\n struct req#2 8: a *in#2 0", 1},
		{"enums", "byte_off struct req.a", "enum req 4: A 0\n enum req#2 4: A 0", 0},
		{"IDs", "byte_off struct req.a\n target_type_id struct req", "struct req 4: a u32 0\n struct req#2 4: a u32 0", 0},
		{"IDs of another type", "byte_off struct req.a\n target_type_id struct other", "struct req 4: a u32 0\n struct req#2 4: a u32 0", 1},
		{"names of types", "byte_off struct req.a\n type_matches struct other", "struct req 4: a u32 0\n struct req#2 4: a u32 0", 0},
	} {
		data := testbtf.Object(t, binary.LittleEndian, local, c.asks)
		o, err := core.ParseObject("o", data)
		if err != nil {
			t.Fatal(err)
		}
		kernel := testbtf.Types(t, binary.LittleEndian, c.kernel)
		view, err := btf.New(kernel, nil)
		if err != nil {
			t.Fatal(err)
		}
		own := slices.Clone(kernel)
		copied, err := judgeOf(t, Object{Object: o, Data: data}).roots.withoutCopies(t.Context(), kernel, view)
		if err != nil {
			t.Fatal(err)
		}
		if n := unnamed(t, kernel, copied); n != c.want || !slices.Equal(kernel, own) {
			t.Errorf("%s: %d left out, want %d", c.name, n, c.want)
		}
	}
}

// sameFixups relocates the groups of all objects of a judge, equal ones once, against a kernel with and without copies. It returns how
// many types are left out.
func sameFixups(t *testing.T, k *corpus.Kernel, j *Judge) int {
	t.Helper()
	target, err := testinput.NewKernel(k.Name, k.BTF, k.Modules...)
	if err != nil {
		t.Fatal(err)
	}
	view, err := btf.New(k.BTF, nil)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := j.roots.withoutCopies(t.Context(), k.BTF, view)
	if err != nil {
		t.Fatal(err)
	}
	left := unnamed(t, k.BTF, copied)
	if left == 0 {
		return 0
	}
	full, err := readCiliumTarget(t.Context(), target, k.BTF, k.Modules, nil)
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := readCiliumTarget(t.Context(), target, k.BTF, k.Modules, &j.roots)
	if err != nil {
		t.Fatal(err)
	}
	done := make(map[int]bool)
	for n, c := range j.objects {
		if c.order != target.Order() {
			continue
		}
		for i := range c.groups {
			g := &c.groups[i]
			if done[g.question] {
				continue
			}
			done[g.question] = true
			a, b := g.relocate(full, c.order), g.relocate(fewer, c.order)
			if x, y := fmt.Sprint(a.texts, a.err), fmt.Sprint(b.texts, b.err); x != y {
				t.Errorf("%s on %s: %s: %s, without copies %s", j.Objects[n].Name(), k.Name, g.program, x, y)
			}
		}
	}
	return left
}

// TestCopiesRandom checks on random kernels with copies that cilium/ebpf decides the same without them.
func TestCopiesRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	number := regexp.MustCompile(`#\d+`)
	left := 0
	for range 300 {
		p := newRandomPair(rnd, rnd.IntN(3))
		types := strings.SplitAfter(p.vmlinux, "\n")
		for i := range rnd.IntN(6) {
			p.vmlinux += number.ReplaceAllString(types[rnd.IntN(len(types))], fmt.Sprint("#", 100+i))
		}
		left += sameFixups(t, withModules(t, p.vmlinux, p.modules...), judgeOf(t, p.object(t, p.programs...)))
		if t.Failed() {
			t.Fatal(p)
		}
	}
	if t.Logf("%d types left out", left); left < 100 {
		t.Error("too few")
	}
}

// TestCopiesKernels checks that cilium/ebpf decides the same on real kernels without copies. One has hundreds.
func TestCopiesKernels(t *testing.T) {
	slow.Skip(t)
	var objects []Object
	for _, o := range testinput.Objects(t) {
		if !core.NewSet(o.Object).HasKind(relo.TypeMatches) {
			objects = append(objects, Object(o))
		}
	}
	j, left := judgeOf(t, objects...), 0
	testinput.Each(t, testinput.Varied(t), func(k *corpus.Kernel) { left += sameFixups(t, k, j) })
	if t.Logf("%d types left out", left); left == 0 && os.Getenv("BTFGEN_CORPUS") != "" { // those of testdata have none
		t.Error("no kernel has copies")
	}
}
