package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestRealKernels(t *testing.T) {
	kernels := realKernels(t)
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
		spec, err := a.Spec(k.Key)
		if err != nil {
			t.Errorf("%s: %v", k.Key, err)
			continue
		}
		var task *btf.Struct
		if err := spec.TypeByName("task_struct", &task); err != nil {
			t.Errorf("%s: %v", k.Key, err)
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
	kernels := slices.Clone(realKernels(t))
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
	kernels := slices.Clone(realKernels(t))
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
	good := realKernels(t)[0]
	other := realKernels(t)[1]
	for _, tt := range []struct {
		name    string
		kernels []Kernel
		want    string
	}{
		{"no release", []Kernel{{kernel.Key{ID: "a"}, good.BTF}}, "kernel a/-/-/-: no release"},
		{"bad key", []Kernel{{kernel.Key{Release: "a/b"}, good.BTF}}, "bad character"},
		{"no BTF", []Kernel{{good.Key, nil}}, "header: 0 bytes"},
		{"two BTFs", []Kernel{good, {good.Key, other.BTF}}, "two different BTFs"},
		{"two spellings", []Kernel{
			{mustKey(t, "amzn/2/arm64/5.10"), good.BTF}, {mustKey(t, "amazon/2/aarch64/5.10"), other.BTF},
		}, "two different BTFs"},
		{"order", []Kernel{{good.Key, swapTypes(t, good.BTF)}}, errNotCanonical.Error()},
	} {
		var b bytes.Buffer
		err := Write(&b, Info{}, tt.kernels)
		if err == nil || !strings.Contains(err.Error(), tt.want) || b.Len() > 0 {
			t.Errorf("%s: error %v, want %q; %d bytes written", tt.name, err, tt.want, b.Len())
		}
	}
	for _, info := range []Info{{Tool: "a\x00"}, {Objects: []Object{{Name: "a"}}}} {
		if err := Write(new(bytes.Buffer), info, nil); err == nil {
			t.Errorf("%+v was written", info)
		}
	}
}

// swapTypes returns BTF whose types are not in canonical order.
func swapTypes(t *testing.T, data []byte) []byte {
	t.Helper()
	a := mustOpen(t, mustWrite(t, []Kernel{{kernel.Key{Release: "a"}, data}}))
	types, err := a.types(a.variantsOf(0))
	if err != nil {
		t.Fatal(err)
	}
	return canon.Write(types, binary.LittleEndian)
}

func TestAliases(t *testing.T) {
	k := realKernels(t)[0]
	a := mustOpen(t, mustWrite(t, []Kernel{{mustKey(t, "amazon/2/aarch64/5.10"), k.BTF}}))
	for _, s := range []string{"amzn/2/arm64/5.10", "amazon/2/aarch64/5.10", "AMZN/2/aarch64/5.10"} {
		if _, err := a.BTF(mustKey(t, s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	_, err := a.BTF(mustKey(t, "amzn/2/x86_64/5.10"))
	if !errors.Is(err, ErrNoKernel) || !strings.Contains(err.Error(), "amzn/2/x86_64/5.10") {
		t.Errorf("error %v", err)
	}
	if _, err := a.Spec(kernel.Key{}); !errors.Is(err, ErrNoKernel) {
		t.Errorf("error %v", err)
	}
}

func TestEmpty(t *testing.T) {
	a := mustOpen(t, mustWrite(t, nil))
	if a.Len() != 0 || a.Layouts() != 0 || len(a.Keys()) != 0 || a.Lookup(kernel.Key{}).Found() {
		t.Error("an empty archive has something")
	}
}

func TestOpenFrom(t *testing.T) {
	data := mustWrite(t, realKernels(t))
	path := filepath.Join(t.TempDir(), "x.btfa")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err != nil {
		t.Error(err)
	}
	if _, err := OpenReader(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Error(err)
	}
	if _, err := OpenReader(bytes.NewReader(data), int64(len(data))+1); err == nil {
		t.Error("read more than is there")
	}
	if _, err := OpenReader(bytes.NewReader(data), -1); err == nil {
		t.Error("read a negative size")
	}
	if _, err := OpenReader(readerAt{iotest.ErrReader(os.ErrPermission)}, 10); !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(path, data[:100], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.HasPrefix(err.Error(), path+": archive: ") {
		t.Errorf("error %v", err)
	}
	if _, err := OpenFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

type readerAt struct {
	r interface{ Read([]byte) (int, error) }
}

func (r readerAt) ReadAt(p []byte, _ int64) (int, error) { return r.r.Read(p) }

func TestManyGoroutines(t *testing.T) {
	kernels := realKernels(t)
	a := mustOpen(t, mustWrite(t, kernels))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			k := kernels[i%len(kernels)]
			if b, err := a.BTF(a.Lookup(k.Key).Key); err != nil || !bytes.Equal(b, k.BTF) {
				t.Errorf("%s: %v", k.Key, err)
			}
		}()
	}
	wg.Wait()
}
