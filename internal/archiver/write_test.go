package archiver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/internal/testminimized"
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
	if info.Tool != "test 1" || len(info.Objects) != 2 || info.Objects[0].Name != "a.o" || info.Relocations != testInfo().Relocations {
		t.Errorf("info is %+v", info)
	}
	if !info.Objects[1].Is([]byte("b")) || info.Objects[1].Is([]byte("a")) {
		t.Error("objects are not told apart by their hash")
	}
	info.Objects[0].Sum[0]++
	if !a.Info().Objects[0].Is([]byte("a")) {
		t.Error("the caller changed the archive")
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
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

// A kernel whose layout is there already costs its key and little more.
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
		{"no release", []archive.Kernel{{Key: kernel.Key{ID: "a"}, BTF: good.BTF}}, "kernel a/-/-/-: no release"},
		{"bad key", []archive.Kernel{{Key: kernel.Key{Release: "a/b"}, BTF: good.BTF}}, "bad character"},
		{"no BTF", []archive.Kernel{{Key: good.Key, BTF: nil}}, "header: 0 bytes"},
		{"two BTFs", []archive.Kernel{good, {Key: good.Key, BTF: other.BTF}}, "two different BTFs"},
		{"two spellings", []archive.Kernel{
			{Key: mustKey(t, "amzn/2/arm64/5.10"), BTF: good.BTF}, {Key: mustKey(t, "amazon/2/aarch64/5.10"), BTF: other.BTF},
		}, "two different BTFs"},
		{"order", []archive.Kernel{{Key: good.Key, BTF: unordered()}}, errNotCanonical.Error()},
	} {
		var b bytes.Buffer
		err := Write(&b, archive.Info{}, tt.kernels)
		if err == nil || !strings.Contains(err.Error(), tt.want) || b.Len() > 0 {
			t.Errorf("%s: error %v, want %q; %d bytes written", tt.name, err, tt.want, b.Len())
		}
	}
	for _, info := range []archive.Info{{Tool: "a\x00"}, {Objects: []archive.Object{{Name: "a"}}}} {
		if err := Write(new(bytes.Buffer), info, nil); err == nil {
			t.Errorf("%+v was written", info)
		}
	}
}

// unordered returns BTF whose types are not in canonical order.
func unordered() []byte {
	return canon.Write([]*canon.Type{
		{Kind: btfenc.KindFwd, Name: "b"}, {Kind: btfenc.KindFwd, Name: "a"},
	}, binary.LittleEndian)
}
