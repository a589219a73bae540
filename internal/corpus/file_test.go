// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
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
		k := &Kernel{BTF: tt.vmlinux, Modules: []relo.Module{{Name: "nf", BTF: tt.module}}, ModulePaths: []string{"nf.btf"}}
		err := k.Load(t.Context(), new(core.Target), "name")
		if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
		if err == nil && (len(k.Modules)+len(k.ModulePaths) > 0 || len(k.unfit) != 1) {
			t.Errorf("%d modules, %v", len(k.Modules), k.unfit)
		}
	}
}
