// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// kernels returns two kernels, in order of their keys.
func kernels() (list []archive.Kernel) {
	for _, release := range []string{"5.10", "6.1"} {
		b := btf.NewBuilder(binary.LittleEndian)
		b.Type("of_"+release, btf.KindStruct, false, 0, 8)
		list = append(list, archive.Kernel{
			Key: kernel.Key{ID: "debian", VersionID: "12", Arch: "arm64", Release: release}, BTF: b.Bytes(),
		})
	}
	return list
}

// TestKernels reads every form of output back.
func TestKernels(t *testing.T) {
	info := archive.Info{Tool: "test", Relocations: []archive.Relocations{{Sum: []byte("12345678")}}}
	for name, bcc := range map[string]bool{"x.btfa": false, "x": false, "x.tar.xz": false, "x.tar.gz": false, "bcc.tgz": true} {
		format, err := FormatOf(name)
		if err != nil {
			t.Fatal(err)
		}
		out := Output{Path: filepath.Join(t.TempDir(), name), Format: format, Layout: Layouts[map[bool]int{true: 1}[bcc]]}
		if _, err := out.Write(context.Background(), info, kernels()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, list, err := ReadKernels(context.Background(), out.Path)
		want := kernels()
		if d := cmp.Diff(want, list); d != "" || err != nil {
			t.Errorf("%s: %v, %s", name, err, d)
		}
		if a, err := OpenNative(out.Path); (a != nil) != (name == "x.btfa") || (a != nil || name == "x") != cmp.Equal(got, info, cmpopts.EquateEmpty()) || err != nil {
			t.Errorf("%s: native %t, %+v, %v", name, a != nil, got, err)
		}
	}
	for _, name := range []string{"x.tar", "x.zip", "x.btf"} {
		if _, err := FormatOf(name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{empty, t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if _, _, err := ReadKernels(context.Background(), name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
