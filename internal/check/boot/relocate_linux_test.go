// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestRelocator compares instructions with those of cilium/ebpf, which decides most relocations as libbpf does.
func TestRelocator(t *testing.T) {
	corp, err := corpus.Open(t.Context(), []string{"../../../testdata/vmlinux/debian/12/x86_64"}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../testdata/bpf/*el.o")
	if err != nil || len(files) == 0 {
		t.Fatal("no objects", err)
	}
	same, differ, poisoned, resized := 0, 0, 0, 0
	err = corp.Files[0].Read(t.Context(), func(k *corpus.Kernel) error {
		var target core.Target
		if err := k.Load(t.Context(), &target, k.Name); err != nil {
			return err
		}
		types, err := btf.LoadSpecFromReader(bytes.NewReader(k.BTF))
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
			if err != nil {
				continue
			}
			r, err := newRelocator(t.Context(), parseObject(t, data), &target)
			if err != nil {
				return err
			}
			for _, p := range spec.Programs {
				ours, err := r.program(p)
				theirs := loadtest.Relocate(p, types)
				if err != nil || theirs == nil {
					continue
				}
				for i, in := range ours.Instructions {
					if btf.CORERelocationMetadata(&p.Instructions[i]) == nil {
						if in.OpCode != p.Instructions[i].OpCode || in.Constant != p.Instructions[i].Constant {
							t.Errorf("%s: %s: instruction %d has no relocation and is changed", file, p.Name, i)
						}
						continue
					}
					if in.OpCode.Class().IsLoad() && in.OpCode != p.Instructions[i].OpCode && !in.OpCode.IsDWordLoad() {
						resized++
					}
					x := theirs[i]
					switch {
					case in.OpCode == x.OpCode && in.Constant == x.Constant && in.Offset == x.Offset && in.Dst == x.Dst && in.Src == x.Src:
						same++
						if in.Constant == btf.COREBadRelocationSentinel {
							poisoned++
						}
					default:
						differ++
						t.Logf("%s: %s: instruction %d: %v, of cilium/ebpf %v", filepath.Base(file), p.Name, i, in, x)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d instructions are the same, %d of them poisoned; %d differ; %d are of another width", same, poisoned, differ, resized)
	if same < 500 || poisoned < 20 || resized == 0 || differ > same/20 {
		t.Error("too few results, or too many differ")
	}
}

// loadTarget reads the one BTF that a path leads to.
func loadTarget(t *testing.T, path string) *core.Target {
	t.Helper()
	corp, err := corpus.Open(t.Context(), []string{path}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	target := new(core.Target)
	if err := corp.Files[0].Read(t.Context(), func(k *corpus.Kernel) error { return k.Load(t.Context(), target, k.Name) }); err != nil {
		t.Fatal(err)
	}
	return target
}

// TestRelocatorAdded adds types that the kernel lacks.
func TestRelocatorAdded(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/bpf/supplied.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	kernel, added := loadTarget(t, "../../../testdata/vmlinux/debian/12/x86_64"), loadTarget(t, "../../../testdata/bpf/supplied.bpfel.o")
	o := parseObject(t, data)
	for name, want := range map[string][2]bool{"added": {true, false}, "flavored": {true, false}, "kernels_own": {true, true}} {
		for i, types := range [][]types{nil, {{core: added}}} {
			r, err := newRelocator(t.Context(), o, kernel, types...)
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.program(spec.Programs[name])
			if err != nil {
				t.Fatal(err)
			}
			poisoned := false
			for _, in := range p.Instructions {
				poisoned = poisoned || in.Constant == btf.COREBadRelocationSentinel
			}
			if poisoned != want[i] {
				t.Errorf("%s with %d files of types: poisoned %t", name, len(types), poisoned)
			}
		}
	}
}

// TestRelocatorSameName relocates two functions that have one name in BTF and two symbols, like renamed static
// functions.
func TestRelocatorSameName(t *testing.T) {
	const types, asks = "struct s 12: a int 0, b int 4", "program p\n byte_off struct s.a\n call one\n call two\n function one\n byte_off struct s.a\n function two\n byte_off struct s.b"
	data := testbtf.Object(t, binary.LittleEndian, types, asks, 0, 0, 4)
	f, err := bpfobj.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(f.Types, []byte("\x00two\x00"))
	copy(f.Types[at+1:], "one")
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var target core.Target
	if err := target.Load(t.Context(), "kernel", testbtf.Types(t, binary.LittleEndian, "struct s 32: b int 16, a int 24")); err != nil {
		t.Fatal(err)
	}
	r, err := newRelocator(t.Context(), parseObject(t, data), &target)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.program(spec.Programs["p"])
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int16)
	name := ""
	for i, in := range p.Instructions {
		name = cmp.Or(in.Symbol(), name)
		if btf.CORERelocationMetadata(&spec.Programs["p"].Instructions[i]) != nil {
			got[name] = in.Offset
		}
	}
	if want := map[string]int16{"p": 24, "one": 24, "two": 16}; !maps.Equal(got, want) {
		t.Errorf("offsets %v, want %v", got, want)
	}
}

func parseObject(t *testing.T, data []byte) *rule.Object {
	t.Helper()
	o, err := rule.Parse(t.Context(), "object", data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestNesting rejects recursive types, which cilium/ebpf would follow until the stack overflows.
func TestNesting(t *testing.T) {
	const loop, want = "typedef loop loop[2]\nstruct s 8: b loop 0\n", "leads back to itself"
	l := &loader{own: types{core: loadTarget(t, "../../../testdata/vmlinux/debian/12/x86_64")}}
	if _, err := l.read(t.Context(), testbtf.Object(t, binary.LittleEndian, loop, "program p\nbyte_off struct s.b")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("object: error %v", err)
	}
	path := filepath.Join(t.TempDir(), "types.btf")
	if err := os.WriteFile(path, testbtf.Types(t, binary.LittleEndian, loop), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := readTypes(t.Context(), path); err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
		t.Errorf("types: error %v", err)
	}
}

// TestUnlike checks which programs of an object libbpf loads in a way that is not followed here.
func TestUnlike(t *testing.T) {
	o, err := rule.Parse(t.Context(), "globals", testinput.Named(t, "globals.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	if got := unlike(o); len(got) != 1 || got["calls_with_tagged_context"] == nil {
		t.Error(got)
	}
}
