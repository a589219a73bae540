// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/btfgen/btfgen/pkg/archive"
)

// TestMergeMachines merges archives with kernels of different machines. Objects keep the machines whose kernels have their BTF.
func TestMergeMachines(t *testing.T) {
	type in struct{ arches, objects []string }
	object := func(text string) archive.Object {
		var name, arch string
		fmt.Sscan(text, &name, &arch)
		o := archive.Object{Name: name, Sum: []byte("sum."), Fingerprint: []byte("fing")}
		if arch != "" {
			o.Arches = []string{arch}
		}
		return o
	}
	for name, tt := range map[string]struct {
		in   []in
		want []string
	}{
		"any, here only":        {[]in{{[]string{"x86_64"}, []string{"any.o"}}, {[]string{"arm64"}, []string{"arm.o arm64"}}}, []string{"any.o x86_64", "arm.o arm64"}},
		"any, in both":          {[]in{{[]string{"x86_64"}, []string{"any.o"}}, {[]string{"arm64"}, []string{"any.o", "arm.o arm64"}}}, []string{"any.o", "any.o", "arm.o arm64"}},
		"one machine":           {[]in{{[]string{"x86_64"}, []string{"any.o"}}, {[]string{"x86_64"}, []string{"renamed.o"}}}, []string{"any.o", "renamed.o"}},
		"machine not here":      {[]in{{[]string{"x86_64"}, []string{"any.o", "arm.o arm64"}}, {[]string{"arm64"}, []string{"other.o"}}}, []string{"any.o x86_64", "other.o arm64"}},
		"machine in no archive": {[]in{{[]string{"x86_64"}, []string{"arm.o arm64"}}, {[]string{"x86_64"}, nil}}, []string{"arm.o arm64"}},
		"unknown machine":       {[]in{{[]string{""}, []string{"any.o"}}, {[]string{"arm64"}, []string{"other.o"}}}, []string{"any.o", "other.o"}},
	} {
		var names []string
		for i, x := range tt.in {
			var info archive.Info
			for _, o := range x.objects {
				info.Objects = append(info.Objects, object(o))
			}
			list := kernels()[:len(x.arches)]
			for k := range list {
				list[k].Key.Arch, list[k].Key.VersionID = x.arches[k], fmt.Sprint(i)
			}
			out := Output{Path: filepath.Join(t.TempDir(), "a")}
			if _, err := out.Write(context.Background(), info, list); err != nil {
				t.Fatal(err)
			}
			names = append(names, out.Path)
		}
		info, _, err := Merge(context.Background(), names, false)
		if err != nil {
			t.Fatal(err)
		}
		var want []archive.Object
		for _, o := range tt.want {
			want = append(want, object(o))
		}
		if d := cmp.Diff(want, info.Objects, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
