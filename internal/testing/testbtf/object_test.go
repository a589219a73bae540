// SPDX-License-Identifier: Apache-2.0

package testbtf

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/testing/oracle"
)

const (
	localTypes = `struct foo 24: a int 0, # #in 4, d *foo 8, e u32 @128:3
		struct #in 4: b u8[4 of int] 0
		enum bar 4 signed: X 1, Y 0xffffffff
		enum64 baz 8: Z 0x100000000
		typedef fn *#fn
		proto #fn int: *void, u64
		fwd far union`
	relocations = `byte_off struct foo.a
		byte_sz struct foo.b
		program two
		byte_off struct foo[1].b[3]
		lshift_u64 struct foo.e
		enumval_value enum bar::Y
		enumval_exists enum baz::Z
		type_exists fn
		type_matches union far`
)

// TestObject reads the output of Types and Object with other libraries.
func TestObject(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		obj, kernel := Object(t, order, localTypes, relocations), Types(t, order, localTypes)
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(obj))
		if err != nil {
			t.Fatal(err)
		}
		if len(spec.Programs) != 2 || spec.Programs["main"] == nil || spec.Programs["two"] == nil {
			t.Errorf("programs %v", spec.Programs)
		}
		target, err := btf.LoadSpecFromReader(bytes.NewReader(kernel))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string][]string{
			"main": {"byte_off=0->0", "byte_sz=4->4"},
			"two":  {"byte_off=31->31", "lshift_u64=0->61", "enumval_value=18446744073709551615->18446744073709551615", "enumval_exists=1->1", "type_exists=1->1", "type_matches=1->1"},
		} {
			if order == binary.BigEndian && name == "two" {
				want[1] = "lshift_u64=0->32"
			}
			var relos []*btf.CORERelocation
			for it := spec.Programs[name].Instructions.Iterate(); it.Next(); {
				if r := btf.CORERelocationMetadata(it.Ins); r != nil {
					relos = append(relos, r)
				}
			}
			fixups, err := btf.CORERelocate(relos, []*btf.Spec{target}, order, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range fixups {
				if i >= len(want) || fixups[i].String() != want[i] {
					t.Errorf("%s: %s, relocation %d of %s: %s, want %v", order, name, i, name, &fixups[i], want)
				}
			}
		}
	}
}

func TestObjectBpftool(t *testing.T) {
	bpftool := oracle.Need(t, "bpftool")
	dir := t.TempDir()
	kernel, obj := filepath.Join(dir, "k.btf"), filepath.Join(dir, "o.o")
	for path, data := range map[string][]byte{
		kernel: Types(t, binary.LittleEndian, localTypes),
		obj:    Object(t, binary.LittleEndian, localTypes, relocations),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := oracle.Run(t.Context(), bpftool, kernel, filepath.Join(dir, "out.btf"), obj)
	if err != nil {
		t.Fatal(err)
	}
	if res.ExitStatus != 0 || len(res.Records) != 8 {
		t.Errorf("status %d (%s), %d records", res.ExitStatus, res.Failure, len(res.Records))
	}
}
