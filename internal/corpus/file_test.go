// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
)

// TestLoad checks that the error of a kernel's BTF does not repeat its name.
func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		vmlinux, module []byte
		want            string
	}{
		{blobLE, splitLE, ""},
		{blobLE[:40], splitLE, "header: string section at 40+5 exceeds 40 bytes of data"},
	} {
		k := &Kernel{BTF: tt.vmlinux, Modules: []Module{{"nf", "nf.btf", tt.module}}}
		err := k.Load(t.Context(), new(core.Target), "name")
		if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
		if err == nil && (len(k.Modules) > 0 || len(k.unfit) != 1) {
			t.Errorf("%d modules, %v", len(k.Modules), k.unfit)
		}
	}
}

// TestKeep checks that what is kept stays as it is while other files are read: of kernels that are alone in the memory, and of others.
func TestKeep(t *testing.T) {
	blob := func(c string, split bool) []byte { return btfBlob(binary.LittleEndian, strings.Repeat(c, 5000), split) }
	dir := tree(t, map[string]string{
		"debian/12/x86_64/6.1.btf":                 string(blob("a", false)),
		"modules/debian/12/x86_64/6.1.modules.tar": string(tarOf(member{"6.1/m.btf", blob("b", true)}, member{"6.1/n.btf", blob("c", true)})),
		"debian/12/x86_64/6.2.btf":                 string(blob("d", false)),
		"debian/12/x86_64/6.3.tar":                 string(tarOf(member{"6.3.btf", blob("e", false)}, member{"6.4.btf", blob("f", false)})),
		"debian/12/x86_64/6.5.btf":                 string(blobLE),
		"modules/debian/12/x86_64/6.2.modules.tar": string(tarOf(member{"6.2/m.btf", blob("g", true)})),
		"modules/debian/12/x86_64/6.5.modules.tar": string(tarOf(member{"6.5/m.btf", splitLE})),
		"debian/12/x86_64/6.6.btf":                 string(blob("h", false)),
	})
	c, want, errs := readAll(t, Options{}, dir)
	if len(want) != 6 || len(errs) > 0 {
		t.Fatalf("%d kernels, %v", len(want), errs)
	}
	var got []Kernel
	var releases []func()
	for _, f := range c.Files {
		if err := f.Read(t.Context(), func(k *Kernel) error {
			release, err := k.Keep()
			if err != nil {
				return err
			}
			releases = append(releases, release)
			kept := *k
			kept.Modules = slices.Clone(k.Modules)
			got = append(got, kept)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range got {
		if !bytes.Equal(k.BTF, want[i].btf) {
			t.Errorf("%s: other BTF", k.Name)
		}
		if len(k.Modules) != len(want[i].mods) {
			t.Errorf("%s: %d modules, want %d", k.Name, len(k.Modules), len(want[i].mods))
		}
		for _, m := range k.Modules {
			if string(m.BTF) != want[i].mods[m.Name] {
				t.Errorf("%s: other BTF of %s", k.Name, m.Name)
			}
		}
	}
	for _, release := range releases {
		release()
	}
}
