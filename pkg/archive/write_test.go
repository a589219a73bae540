// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestRealKernels(t *testing.T) {
	kernels := testminimized.Kernels(t)
	data := mustWrite(t, kernels)
	a := mustOpen(t, data)
	if a.Len() != len(kernels) {
		t.Fatalf("%d kernels of %d", a.Len(), len(kernels))
	}
	plain := 0
	for _, k := range kernels {
		plain += len(k.BTF)
		got, err := a.BTF(k.Key)
		if err != nil {
			t.Errorf("%s: %v", k.Key, err)
		} else if !bytes.Equal(got, k.BTF) {
			t.Errorf("%s: BTF differs", k.Key)
		}
	}
	t.Logf("%d kernels, %d layouts: %d bytes of %d", a.Len(), a.Layouts(), len(data), plain)

	all, err := a.Kernels()
	if err != nil {
		t.Fatal(err)
	}
	if again := mustWrite(t, all); !bytes.Equal(again, data) {
		t.Error("writing what was read gives other bytes")
	}
	keys := a.Keys()
	if !slices.IsSortedFunc(keys, kernel.Key.Compare) || len(keys) != len(kernels) {
		t.Errorf("keys are %v", keys)
	}
	info := a.Info()
	if b := archive.NewObject("b.o", []byte("b")); !bytes.Equal(info.Objects[1].Sum, b.Sum) || bytes.Equal(info.Objects[0].Sum, b.Sum) {
		t.Error("objects do not have their own hashes")
	}
	info.Objects[0].Sum[0]++
	info.Objects[0].Fingerprint[0]++
	if o := a.Info().Objects[0]; o.Sum[0] == info.Objects[0].Sum[0] || o.Fingerprint[0] == info.Objects[0].Fingerprint[0] {
		t.Error("the caller changed the archive")
	}
}

// TestInfo checks that Info is the same for any order and spelling of the input.
func TestInfo(t *testing.T) {
	raceflag.SkipSerial(t)
	btf := testminimized.Kernels(t)[0].BTF
	of := func(arches ...string) (list []archive.Kernel) {
		for _, a := range arches {
			list = append(list, archive.Kernel{Key: kernel.Key{ID: "debian", Arch: a, Release: "6.1"}, BTF: btf})
		}
		return list
	}
	hash := func(arch, sum string) archive.Relocations { return archive.Relocations{Arch: arch, Sum: []byte(sum)} }
	object := func(name string, arches ...string) archive.Object {
		return archive.NewObject(name, []byte(name), arches...)
	}
	for _, tt := range []struct {
		name     string
		kernels  []archive.Kernel
		in, want archive.Info
	}{
		{"nothing known", of("arm64"), archive.Info{}, archive.Info{}},
		{"a shard without kernels", nil,
			archive.Info{Tool: "t", Shard: archive.Shard{Index: 3, N: 3}, Relocations: []archive.Relocations{hash("x86_64", "abcdefgh"), hash("aarch64", "abcdefgh")}},
			archive.Info{Tool: "t", Shard: archive.Shard{Index: 3, N: 3}, Relocations: []archive.Relocations{hash("arm64", "abcdefgh"), hash("x86_64", "abcdefgh")}}},
		{"objects", nil,
			archive.Info{Objects: []archive.Object{object("c", "x86_64"), object("b"), object("a", "x86_64", "aarch64"), object("c", "aarch64"), object("b", "arm")}},
			archive.Info{Objects: []archive.Object{object("a", "arm64", "x86_64"), object("b"), object("c", "arm64", "x86_64")}}},
		{"the same for all", of("arm64", "x86_64"),
			archive.Info{Relocations: []archive.Relocations{hash("arm64", "abcdefgh..."), hash("amd64", "abcdefgh")}},
			archive.Info{Relocations: []archive.Relocations{hash("", "abcdefgh")}}},
		{"arches without kernels", of("s390x"),
			archive.Info{Relocations: []archive.Relocations{hash("", "abcdefgh"), hash("s390x", "12345678")}},
			archive.Info{Relocations: []archive.Relocations{hash("", "12345678")}}},
		{"each its own", of("s390x", "aarch64", "x86_64"),
			archive.Info{Relocations: []archive.Relocations{hash("", "abcdefgh"), hash("s390x", "12345678")}},
			archive.Info{Relocations: []archive.Relocations{hash("arm64", "abcdefgh"), hash("s390x", "12345678"), hash("x86_64", "abcdefgh")}}},
		{"one unknown", of("s390x", "x86_64"),
			archive.Info{Relocations: []archive.Relocations{hash("s390x", "12345678")}},
			archive.Info{Relocations: []archive.Relocations{hash("s390x", "12345678")}}},
	} {
		var b bytes.Buffer
		if err := archive.Write(t.Context(), &b, tt.in, tt.kernels); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got := mustOpen(t, b.Bytes()).Info()
		if d := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		again := bytes.Clone(b.Bytes())
		b.Reset()
		if err := archive.Write(t.Context(), &b, got, tt.kernels); err != nil || !bytes.Equal(b.Bytes(), again) {
			t.Errorf("%s: other bytes when written again (%v)", tt.name, err)
		}
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	raceflag.SkipSerial(t)
	kernels := slices.Clone(testminimized.Kernels(t))
	want := mustWrite(t, kernels)
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(kernels), func(i, j int) { kernels[i], kernels[j] = kernels[j], kernels[i] })
		if got := mustWrite(t, append(kernels, kernels[0])); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: other bytes", seed)
		}
	}
}

// TestCostOfKernel checks that a kernel with a known layout costs little more than its key.
func TestCostOfKernel(t *testing.T) {
	kernels := slices.Clone(testminimized.Kernels(t))
	before := len(mustWrite(t, kernels))
	const n = 100
	for i := range n {
		k := kernels[i%5]
		k.Key.Release = strings.Replace(k.Key.Release, "-", fmt.Sprintf(".%d-%d-", i/7, i), 1)
		kernels = append(kernels, k)
	}
	after := len(mustWrite(t, kernels))
	if cost := (after - before) / n; cost >= 16 {
		t.Errorf("a kernel costs %d bytes", cost)
	} else {
		t.Logf("a kernel costs %.1f bytes", float64(after-before)/n)
	}
}

func TestWriteRefuses(t *testing.T) {
	good := testminimized.Kernels(t)[0]
	other := testminimized.Kernels(t)[1]
	for _, tt := range []struct {
		name    string
		kernels []archive.Kernel
		want    string
	}{
		{"no release", []archive.Kernel{{Key: kernel.Key{ID: "a", Arch: "arm"}, BTF: good.BTF}}, "kernel a/-/arm/-: no release"},
		{"bad key", []archive.Kernel{{Key: kernel.Key{Arch: "arm", Release: "a/b"}, BTF: good.BTF}}, "bad character"},
		{"no arch", []archive.Kernel{{Key: kernel.Key{ID: "a", Release: "6.1"}, BTF: good.BTF}}, "kernel a/-/-/6.1: no arch"},
		{"no BTF", []archive.Kernel{{Key: good.Key, BTF: nil}}, "header: 0 bytes"},
		{"two BTFs", []archive.Kernel{good, {Key: good.Key, BTF: other.BTF}}, "two different BTFs"},
		{"two spellings", []archive.Kernel{
			{Key: mustKey(t, "amzn/2/arm64/5.10"), BTF: good.BTF}, {Key: mustKey(t, "amazon/2/aarch64/5.10"), BTF: other.BTF},
		}, "two different BTFs"},
		{"order", []archive.Kernel{{Key: good.Key, BTF: unordered()}}, archive.ErrNotCanonical.Error()},
	} {
		var b bytes.Buffer
		err := archive.Write(t.Context(), &b, archive.Info{}, tt.kernels)
		if err == nil || !strings.Contains(err.Error(), tt.want) || b.Len() > 0 {
			t.Errorf("%s: error %v, want %q; %d bytes written", tt.name, err, tt.want, b.Len())
		}
		if errors.Is(err, archive.ErrNotCanonical) != (tt.name == "order") {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
	sum := []byte("12345678")
	for _, info := range []archive.Info{
		{Tool: "a\x00"}, {Objects: []archive.Object{{Name: "a"}}}, {Objects: []archive.Object{{Name: "a\x00", Sum: sum}}},
		{Objects: []archive.Object{{Name: "a", Sum: sum, Arches: []string{""}}}}, {Objects: []archive.Object{{Name: "a", Sum: sum, Arches: []string{"a/b"}}}},
		{Shard: archive.Shard{N: 1}}, {Shard: archive.Shard{Index: 3, N: 2}}, {Shard: archive.Shard{Index: 1, N: 1 << 30}},
		{Relocations: []archive.Relocations{{Sum: []byte("short")}}},
		{Relocations: []archive.Relocations{{Arch: "a\x00", Sum: sum}}},
		{Relocations: []archive.Relocations{{Arch: "arm64", Sum: sum}, {Arch: "aarch64", Sum: []byte("87654321")}}},
	} {
		if err := archive.Write(t.Context(), new(bytes.Buffer), info, nil); err == nil {
			t.Errorf("%+v was written", info)
		}
	}
}

// unordered returns BTF whose types are not in canonical order.
func unordered() []byte {
	return canonical.Write([]*canonical.Type{
		{Kind: btf.KindFwd, Name: "b"}, {Kind: btf.KindFwd, Name: "a"},
	}, binary.LittleEndian)
}

// TestWriteEnds calls Write with contexts that end at each of its checks in turn. Write
// returns the context's error and writes nothing.
func TestWriteEnds(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	kernels := manyLayouts(t, 8)
	for n := 0; ; n++ {
		var b bytes.Buffer
		err := archive.Write(testlimit.Looks(n), &b, archive.Info{}, kernels)
		if err == nil {
			if n < 3*len(kernels) {
				t.Errorf("%d looks for %d layouts", n, len(kernels))
			}
			return
		}
		if !errors.Is(err, context.Canceled) || b.Len() > 0 {
			t.Fatalf("after %d looks: error %v, %d bytes written", n, err, b.Len())
		}
		if n >= 1000 {
			n += 500
		}
	}
}

// brokenWriter fails.
type brokenWriter struct{ calls int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write([]byte) (int, error) {
	w.calls++
	return 0, errBroken
}

// TestWriteOnce checks that Write calls its writer once and returns its error.
func TestWriteOnce(t *testing.T) {
	var w brokenWriter
	if err := archive.Write(t.Context(), &w, archive.Info{}, nil); !errors.Is(err, errBroken) || w.calls != 1 {
		t.Errorf("error %v after %d calls", err, w.calls)
	}
}

// TestShared writes kernels whose BTFs share memory, in part or not at all.
func TestShared(t *testing.T) {
	real := testminimized.Kernels(t)
	long := bytes.Clone(real[0].BTF)
	key := func(i int) kernel.Key { return kernel.Key{ID: "debian", Arch: "x86_64", Release: fmt.Sprint(i)} }
	kernels := []archive.Kernel{{Key: key(0), BTF: long}, {Key: key(1), BTF: long}, {Key: key(2), BTF: real[0].BTF}, {Key: key(3), BTF: real[1].BTF}}
	a := mustOpen(t, mustWrite(t, kernels))
	if a.Layouts() != 2 {
		t.Errorf("%d layouts, want 2", a.Layouts())
	}
	for _, k := range kernels {
		if b, err := a.BTF(k.Key); err != nil || !bytes.Equal(b, k.BTF) {
			t.Errorf("%s: differs (%v)", k.Key, err)
		}
	}
	kernels[1].BTF = long[:len(long)-1] // the same start, and cut off
	if err := archive.Write(t.Context(), new(bytes.Buffer), archive.Info{}, kernels); err == nil || !strings.Contains(err.Error(), key(1).String()) {
		t.Errorf("error %v, want one of kernel %s", err, key(1))
	}
}

// TestWriteTooLarge writes more than the format allows.
func TestWriteTooLarge(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	var types []*canonical.Type
	for i := range btfa.MaxTypes + 1 {
		types = append(types, &canonical.Type{Kind: btf.KindFwd, Name: fmt.Sprint("t", i), Copies: 1})
	}
	key := kernel.Key{ID: "debian", Arch: "x86_64", Release: "6.1"}
	for name, write := range map[string]func() error{
		"kernels": func() error {
			return archive.Write(t.Context(), new(bytes.Buffer), archive.Info{}, make([]archive.Kernel, btfa.MaxKernels+1))
		},
		"types": func() error {
			return archive.Write(t.Context(), new(bytes.Buffer), archive.Info{}, []archive.Kernel{{Key: key, BTF: encoded(t, types, binary.LittleEndian)}})
		},
		"objects": func() error {
			var info archive.Info
			for i := range btfa.MaxObjects + 1 {
				info.Objects = append(info.Objects, archive.Object{Name: fmt.Sprint(i), Sum: []byte("12345678")})
			}
			return archive.Write(t.Context(), new(bytes.Buffer), info, nil)
		},
		"names": func() error {
			var big []*canonical.Type
			for i := range btfa.MaxPayload / 1000 {
				big = append(big, &canonical.Type{Kind: btf.KindFwd, Name: strings.Repeat("x", 1000) + fmt.Sprint(i), Copies: 1})
			}
			return archive.Write(t.Context(), new(bytes.Buffer), archive.Info{}, []archive.Kernel{{Key: key, BTF: encoded(t, big, binary.LittleEndian)}})
		},
	} {
		if err := write(); !errors.Is(err, archive.ErrTooLarge) {
			t.Errorf("%s: error %v", name, err)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}
