// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// minimized returns the minimized BTF of a kernel for some objects.
func minimized(t *testing.T, kernel []byte, objs ...Object) []byte {
	t.Helper()
	var plain []*core.Object
	for _, o := range objs {
		plain = append(plain, o.Object)
	}
	target, err := testinput.NewKernel("kernel", kernel)
	if err != nil {
		t.Fatal(err)
	}
	out, err := minimize.New(plain, minimize.Options{}).Minimize(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return out.BTF
}

// change rewrites BTF after fn changed its types.
func change(t *testing.T, data []byte, fn func(types []btf.Type)) []byte {
	t.Helper()
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var types []btf.Type
	for typ, err := range spec.All() {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, typ)
	}
	fn(types)
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.Marshal(nil, &btf.MarshalOptions{Order: binary.LittleEndian})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// verifyOne compares one minimized BTF with the kernel in a file.
func verifyOne(t *testing.T, kernel string, small []byte, objs ...Object) *Report {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{kernel}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: objs, Minimized: []Minimized{{Name: "small.btf", BTF: small}}, Corpus: c, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Kernels) != 1 {
		t.Fatalf("%d kernels compared: %+v", len(rep.Kernels), rep)
	}
	return rep
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vmlinux.btf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func object(t *testing.T, name string) Object { return Object(testinput.Named(t, name)) }

// findStructs returns the structs of a name.
func findStructs(t *testing.T, types []btf.Type, name string) (all []*btf.Struct) {
	t.Helper()
	for _, typ := range types {
		if s, ok := typ.(*btf.Struct); ok && s.Name == name {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no struct %s", name)
	}
	return all
}

// TestDetects makes typical changes to real minimized BTF, each of which verify has to report.
func TestDetects(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	kernels := testinput.Kernels(t, "6.1.0-47-amd64", "5.10.0-30-amd64")
	slices.SortFunc(kernels, func(a, b corpus.Kernel) int { return -bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	full, other := kernels[0].BTF, kernels[1].BTF
	path := write(t, full)
	exec, kinds, biolat := object(t, "execsnoop.bpfel.o"), object(t, "kinds.bpfel.o"), object(t, "biolat.bpfel.o")
	dups, enums := object(t, "dups.bpfel.o"), object(t, "enums.bpfel.o")
	tests := []struct {
		name  string
		obj   Object
		small func(t *testing.T, min []byte) []byte
	}{
		{"member dropped", exec, func(t *testing.T, min []byte) []byte {
			return change(t, min, func(types []btf.Type) {
				s := findStructs(t, types, "task_struct")[0]
				s.Members = s.Members[1:]
			})
		}},
		{"offset changed by one bit", exec, func(t *testing.T, min []byte) []byte {
			return change(t, min, func(types []btf.Type) { findStructs(t, types, "task_struct")[0].Members[0].Offset++ })
		}},
		{"size of a type changed", kinds, func(t *testing.T, min []byte) []byte {
			return change(t, min, func(types []btf.Type) { findStructs(t, types, "dentry")[0].Size += 8 })
		}},
		{"size of a member changed", biolat, func(t *testing.T, min []byte) []byte {
			return change(t, min, func(types []btf.Type) {
				for _, m := range findStructs(t, types, "request")[0].Members {
					if m.Name == "cmd_flags" {
						m.Type.(*btf.Int).Size = 8
						return
					}
				}
				t.Fatal("no member cmd_flags")
			})
		}},
		{"enumerator renamed", enums, func(t *testing.T, min []byte) []byte {
			return change(t, min, func(types []btf.Type) {
				for _, typ := range types {
					if e, ok := typ.(*btf.Enum); ok && e.Name == "pid_type" {
						e.Values[0].Name += "_OLD"
						return
					}
				}
				t.Fatal("no enum pid_type")
			})
		}},
		{"candidate dropped", dups, dropCandidate},
		{"another kernel", exec, func(t *testing.T, _ []byte) []byte { return minimized(t, other, exec) }},
		{"older object", exec, func(t *testing.T, _ []byte) []byte { return minimized(t, full, enums) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			min := minimized(t, full, tt.obj)
			if rep := verifyOne(t, path, change(t, min, func([]btf.Type) {}), tt.obj); findings(rep) > 0 {
				t.Fatalf("unchanged: %+v", rep.Kernels[0].Differences[0])
			}
			rep := verifyOne(t, path, tt.small(t, min), tt.obj)
			if findings(rep) == 0 {
				t.Fatal("not detected")
			}
			t.Logf("%d differences, first %+v", findings(rep), rep.Kernels[0].Differences[0])
		})
	}
}

// dropCandidate renames the last of several structs of one name.
func dropCandidate(t *testing.T, min []byte) []byte {
	return change(t, min, func(types []btf.Type) {
		seen := make(map[string]bool)
		for _, typ := range types {
			if s, ok := typ.(*btf.Struct); ok && s.Name != "" {
				if seen[s.Name] {
					t.Logf("drops a struct %s", s.Name)
					s.Name += "_dropped"
					return
				}
				seen[s.Name] = true
			}
		}
		t.Fatal("no struct has a copy")
	})
}

// TestDetectsEach changes every member and enumerator of minimized BTF in turn. Some decision depends on each of them, so
// verify has to report every change.
func TestDetectsEach(t *testing.T) {
	raceflag.SkipSerial(t)
	full := testinput.Kernels(t, "6.1.0-47-amd64")[0].BTF
	for _, name := range []string{"execsnoop.bpfel.o", "enums.bpfel.o", "bitfields.bpfel.o", "tcplife.bpfel.o"} {
		o := object(t, name)
		min := minimized(t, full, o)
		path := write(t, min) // used as the kernel, because it is much faster to read
		changes := 0
		try := func(what string, index int, fn func(typ btf.Type)) {
			changes++
			small := change(t, min, func(types []btf.Type) { fn(types[index]) })
			if rep := verifyOne(t, path, small, o); findings(rep) == 0 {
				t.Errorf("%s: not detected: %s", name, what)
			}
		}
		asked := valuesAsked(t, o, min)
		change(t, min, func(types []btf.Type) {
			for i, typ := range types {
				for j, m := range members(typ) {
					try(fmt.Sprintf("%v: offset of %s", typ, m.Name), i, func(typ btf.Type) { members(typ)[j].Offset++ })
					try(fmt.Sprintf("%v: name of %s", typ, m.Name), i, func(typ btf.Type) { members(typ)[j].Name += "x" })
				}
				e, ok := typ.(*btf.Enum)
				if !ok {
					continue
				}
				for j, v := range e.Values {
					try(fmt.Sprintf("%v: name of %s", typ, v.Name), i, func(typ btf.Type) { typ.(*btf.Enum).Values[j].Name += "x" })
					if asked[v.Name] {
						try(fmt.Sprintf("%v: value of %s", typ, v.Name), i, func(typ btf.Type) { typ.(*btf.Enum).Values[j].Value ^= 1 })
					}
				}
			}
		})
		t.Logf("%s: %d changes", name, changes)
		if changes == 0 {
			t.Errorf("%s: nothing to change", name)
		}
	}
}

// valuesAsked returns the enumerators whose value a relocation needs, rather than their existence.
func valuesAsked(t *testing.T, o Object, kernel []byte) map[string]bool {
	t.Helper()
	target, err := testinput.NewKernel("kernel", kernel)
	if err != nil {
		t.Fatal(err)
	}
	log, err := core.NewSet(o.Object).Run(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(map[string]bool)
	for _, e := range log.Entries {
		if e.Kind == relo.EnumvalValue && e.Target != nil {
			asked[e.Target.Path] = true
		}
	}
	return asked
}

func members(typ btf.Type) []btf.Member {
	switch t := typ.(type) {
	case *btf.Struct:
		return t.Members
	case *btf.Union:
		return t.Members
	}
	return nil
}

// findings returns the number of findings of a report.
func findings(r *Report) int {
	n := len(r.NotMinimized) + len(r.NoKernel) + len(r.Skipped)
	for i := range r.Kernels {
		n += len(r.Kernels[i].Differences)
	}
	return n
}
