// SPDX-License-Identifier: Apache-2.0

package testinput_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// small has fewer of each part than the default object.
var small = testinput.LargeConfig{Programs: 20, Functions: 10, Records: 1500, Questions: 300}

// what identifies the question of an entry. Records of different kinds about the same
// member, type or enumerator have the same question.
func what(e relo.Entry) string { return e.Local.Type + " " + e.Local.Path }

// run returns the log of an object against a kernel.
func run(t *testing.T, object []byte, k corpus.Kernel) *relo.Log {
	t.Helper()
	o, err := core.ParseObject("large.o", object)
	if err != nil {
		t.Fatal(err)
	}
	target, err := testinput.NewKernel(k.Name, k.BTF)
	if err != nil {
		t.Fatal(err)
	}
	log, err := core.NewSet(o).Run(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestLarge(t *testing.T) {
	slow.Skip(t)
	const little, big = "6.12.107+deb13-amd64", "6.12.107+deb13-s390x"
	kernels := map[binary.ByteOrder]corpus.Kernel{
		nil:              testinput.Kernels(t, little)[0],
		binary.BigEndian: testinput.Kernels(t, big)[0],
	}
	for _, tt := range []struct {
		name   string
		config testinput.LargeConfig
		want   testinput.LargeConfig
	}{
		{"default", testinput.LargeConfig{}, testinput.LargeConfig{Programs: 250, Functions: 300, Records: 35_000, Questions: 400}},
		{"half", testinput.LargeConfig{Records: 17_500}, testinput.LargeConfig{Programs: 250, Functions: 300, Records: 17_500, Questions: 400}},
		{"small", small, small},
		{"one", testinput.LargeConfig{Programs: 1, Functions: 1, Records: 1, Questions: 1}, testinput.LargeConfig{Programs: 1, Functions: 1, Records: 1, Questions: 1}},
		{"many questions", testinput.LargeConfig{Questions: 2000}, testinput.LargeConfig{Programs: 250, Functions: 300, Records: 35_000, Questions: 2000}},
		{"big-endian", testinput.LargeConfig{Order: binary.BigEndian}, testinput.LargeConfig{Programs: 250, Functions: 300, Records: 35_000, Questions: 400}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := testinput.Large(tt.config)
			if !bytes.Equal(data, testinput.Large(tt.config)) {
				t.Error("not the same bytes again")
			}
			log := run(t, data, kernels[tt.config.Order])
			if n := len(log.Entries); n != tt.want.Records {
				t.Errorf("%d records, want %d", n, tt.want.Records)
			}
			distinct := make(map[string]bool)
			for _, e := range log.Entries {
				distinct[what(e)] = true
			}
			if n := len(distinct); n != tt.want.Questions {
				t.Errorf("%d questions, want %d", n, tt.want.Questions)
			}
			spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(spec.Programs); n != tt.want.Programs {
				t.Errorf("%d programs, want %d", n, tt.want.Programs)
			}
		})
	}
}

// TestLargeResolves checks that no record of Large makes a load fail, and that a guard
// protects each record that a kernel cannot resolve.
func TestLargeResolves(t *testing.T) {
	o, err := core.ParseObject("large.o", testinput.Large(small))
	if err != nil {
		t.Fatal(err)
	}
	kernels := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		target, err := testinput.NewKernel(it.Name, it.BTF)
		if err != nil {
			t.Fatal(err)
		}
		if target.Order() != o.Order() {
			return
		}
		kernels++
		log, err := core.NewSet(o).Run(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		absent, poisoned := make(map[string]bool), make(map[string]bool)
		for _, e := range log.Entries {
			switch e.Result {
			case relo.Resolved:
			case relo.Absent:
				absent[what(e)] = true
			case relo.Poisoned:
				poisoned[what(e)] = true
			default:
				t.Errorf("%s: %s: %s: %s", it.Name, what(e), e.Result, e.Reason)
			}
		}
		for w := range poisoned {
			if !absent[w] {
				t.Errorf("%s: %s is poisoned without a guard", it.Name, w)
			}
		}
		if len(poisoned) < 10 {
			t.Errorf("%s: only %d questions are poisoned", it.Name, len(poisoned))
		}
	})
	if kernels == 0 {
		t.Error("no kernel of the object's byte order")
	}
}

// TestLargeLoads loads a small object into the running kernel.
func TestLargeLoads(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Skipf("needs memory for programs: %v", err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(testinput.Large(small)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, os.ErrPermission) {
		var rejected *ebpf.VerifierError
		if !errors.As(err, &rejected) {
			t.Skipf("needs a kernel that loads programs for this process: %v", err)
		}
	}
	if err != nil {
		t.Fatalf("%+v", err)
	}
	c.Close()
}

// TestLargeBpftool resolves a small object with bpftool, which uses libbpf.
func TestLargeBpftool(t *testing.T) {
	bpftool, err := exec.LookPath("bpftool")
	if err != nil {
		t.Skip("needs bpftool")
	}
	dir := t.TempDir()
	object, kernel, out := filepath.Join(dir, "large.o"), filepath.Join(dir, "vmlinux"), filepath.Join(dir, "out.btf")
	if err := os.WriteFile(object, testinput.Large(small), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kernel, testinput.Kernels(t, "6.12.107+deb13-amd64")[0].BTF, 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(bpftool, "-d", "gen", "min_core_btf", kernel, out, object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	if fi, err := os.Stat(out); err != nil || fi.Size() < 5000 {
		t.Errorf("minimized BTF: %v, %v", fi, err)
	}
}
