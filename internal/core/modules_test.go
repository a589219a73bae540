// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	cbtf "github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestModules resolves an object that needs types of modules on vmlinux alone,
// on vmlinux with its modules, and on the merged minimized BTF. It takes
// kernels of BTFGEN_CORPUS that have modules: little- and big-endian, and one
// whose modules have copies of vmlinux's types.
func TestModules(t *testing.T) {
	if os.Getenv("BTFGEN_CORPUS") == "" {
		t.Skip("needs BTFGEN_CORPUS")
	}
	for _, k := range testinput.Kernels(t, "x86_64/6.1.0-47-amd64", "x86_64/6.18.15+deb13-amd64", "s390x/6.12.107") {
		t.Run(strings.ReplaceAll(k.Name, "/", "_"), func(t *testing.T) {
			if len(k.Modules) == 0 {
				t.Fatal("the corpus has no modules for this kernel")
			}
			alone, err := testinput.NewKernel(k.Name, k.BTF)
			if err != nil {
				t.Fatal(err)
			}
			full, err := testinput.NewKernel(k.Name, k.BTF, k.Modules...)
			if err != nil {
				t.Fatal(err)
			}
			name := "module.bpfel.o"
			if full.Order().String() == "BigEndian" {
				name = "module.bpfeb.o"
			}
			o := testinput.Named(t, name)
			out, err := minimize.New([]*core.Object{o.Object}, minimize.Options{}).Minimize(t.Context(), full)
			if err != nil {
				t.Fatal(err)
			}
			merged, err := testinput.NewKernel("merged", out.BTF)
			if err != nil {
				t.Fatal(err)
			}
			checkModules(t, logOf(t, o, alone), logOf(t, o, full), logOf(t, o, merged))
			ciliumModules(t, o, k, out.BTF)
		})
	}
}

func logOf(t *testing.T, o testinput.Object, target *core.Target) *relo.Log {
	t.Helper()
	l, err := core.NewSet(o.Object).Run(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// checkModules holds libbpf's rule: a module counts only where vmlinux has no
// candidate, and what is merged decides the same.
func checkModules(t *testing.T, alone, full, merged *relo.Log) {
	t.Helper()
	fromModules := 0
	for i := range full.Entries {
		a, f, m := &alone.Entries[i], &full.Entries[i], &merged.Entries[i]
		what := f.Kind.String() + " " + f.Local.Type + "." + f.Local.Path
		if len(a.Candidates) > 0 {
			for _, c := range f.Candidates {
				if *c.Module != "" {
					t.Errorf("%s: candidate in %s although vmlinux has one", what, *c.Module)
				}
			}
		}
		if f.Result != m.Result || f.New != nil && *f.New != *m.New {
			t.Errorf("%s: %s with modules, %s merged", what, f.Result, m.Result)
		}
		if m.Target != nil && *m.Target.Module != "" {
			t.Errorf("%s: a module in merged BTF", what)
		}
		if f.Target != nil && *f.Target.Module != "" {
			fromModules++
			if a.Target != nil {
				t.Errorf("%s: resolved by %s, and without it as well", what, *f.Target.Module)
			}
		}
	}
	t.Logf("%d of %d relocations are resolved by modules", fromModules, len(full.Entries))
	if fromModules == 0 {
		t.Error("no relocation needs a module")
	}
}

// ciliumModules has cilium/ebpf relocate each type's relocations on vmlinux
// with its modules and on the merged BTF.
func ciliumModules(t *testing.T, o testinput.Object, k corpus.Kernel, merged []byte) {
	t.Helper()
	base, err := cbtf.LoadSpecFromReader(bytes.NewReader(k.BTF))
	if err != nil {
		t.Fatal(err)
	}
	targets := []*cbtf.Spec{base}
	for _, m := range k.Modules {
		s, err := cbtf.LoadSplitSpecFromReader(bytes.NewReader(m.BTF), base)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, s)
	}
	small, err := cbtf.LoadSpecFromReader(bytes.NewReader(merged))
	if err != nil {
		t.Fatal(err)
	}
	_, ext, err := cbtf.LoadSpecAndExtInfosFromReader(bytes.NewReader(o.Data))
	if err != nil {
		t.Fatal(err)
	}
	id := func(cbtf.Type) (cbtf.TypeID, error) { return 1, nil }
	found := 0
	for section, offsets := range ext.CORERelos {
		var relos []*cbtf.CORERelocation
		for _, r := range offsets {
			relos = append(relos, r.Relo)
		}
		want, err := cbtf.CORERelocate(relos, targets, o.Order(), id)
		if err != nil {
			t.Fatalf("%s: %v", section, err)
		}
		got, err := cbtf.CORERelocate(relos, []*cbtf.Spec{small}, o.Order(), id)
		if err != nil {
			t.Fatalf("%s: merged: %v", section, err)
		}
		for i := range want {
			found++
			if want[i].String() != got[i].String() {
				t.Errorf("%s: %s: %s with modules, %s merged", section, relos[i], &want[i], &got[i])
			}
		}
	}
	if found == 0 {
		t.Error("cilium/ebpf relocated nothing")
	}
}

// TestModulesDisagree has two modules with a struct of one name, first of one
// layout, then of two. The merged BTF has to decide as the modules do.
func TestModulesDisagree(t *testing.T) {
	k := testinput.Kernels(t, "x86_64/6.1.0-47-amd64")[0]
	o := testinput.Named(t, "module.bpfel.o")
	for _, tt := range []struct {
		name          string
		first, second uint32 // offset of nft_ctx.portid in the two modules, bits
		want          relo.Result
	}{
		{"one layout", 32, 32, relo.Resolved},
		{"two layouts", 32, 64, relo.Ambiguous},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, err := testinput.NewKernel(k.Name, k.BTF,
				corpus.Module{Name: "first", BTF: splitBTF(t, k.BTF, tt.first)},
				corpus.Module{Name: "second", BTF: splitBTF(t, k.BTF, tt.second)})
			if err != nil {
				t.Fatal(err)
			}
			out, err := minimize.New([]*core.Object{o.Object}, minimize.Options{}).Minimize(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			merged, err := testinput.NewKernel("merged", out.BTF)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range []*relo.Log{logOf(t, o, target), logOf(t, o, merged)} {
				found := false
				for _, e := range l.Entries {
					if e.Local.Path == "portid" {
						found = true
						if e.Result != tt.want {
							t.Errorf("on %s: %s (%s), want %s", l.Kernel, e.Result, e.Reason, tt.want)
						}
					}
				}
				if !found {
					t.Error("no relocation reads nft_ctx.portid")
				}
			}
		})
	}
}

// splitBTF returns the BTF of a module that has
// struct nft_ctx { unsigned portid; }, the member at this offset in bits.
func splitBTF(t *testing.T, vmlinux []byte, bitOff uint32) []byte {
	t.Helper()
	base, err := btf.New(vmlinux, nil)
	if err != nil {
		t.Fatal(err)
	}
	var number btf.TypeID
	for id := range base.Named {
		if typ := base.Type(id); typ.Kind() == btf.KindInt && typ.Size() == 4 {
			number = id
			break
		}
	}
	if number == 0 {
		t.Fatal("vmlinux has no integer of 4 bytes")
	}
	// Strings of a module continue those of vmlinux, types as well.
	const strs = "\x00nft_ctx\x00portid\x00"
	at := binary.LittleEndian.Uint32(vmlinux[20:])
	words := []uint32{
		24, 0, 24, 24, uint32(len(strs)), // hdr_len, type_off, type_len, str_off, str_len
		at + 1, uint32(btf.KindStruct)<<24 | 1, 16, // nft_ctx, 1 member, 16 bytes
		at + 9, uint32(number), bitOff,
	}
	out := []byte{0x9f, 0xeb, 1, 0}
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return append(out, strs...)
}
