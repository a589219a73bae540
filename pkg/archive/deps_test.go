// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies checks the dependencies of a tracer that imports this package. They
// include no loader.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Skipf("needs the go command: go list: %v", err)
	}
	allowed := []string{
		"github.com/btfgen/btfgen/pkg/archive",
		"github.com/btfgen/btfgen/pkg/kernel",
		"github.com/btfgen/btfgen/pkg/relo",
		"github.com/btfgen/btfgen/internal/btfa",
		"github.com/btfgen/btfgen/internal/btf",
		"github.com/btfgen/btfgen/internal/btf/canonical",
		"github.com/btfgen/btfgen/internal/limits",
		"github.com/klauspost/compress",
		"golang.org/x/sys",
	}
	deps := strings.Fields(string(out))
	if len(deps) < 4 {
		t.Fatalf("only %d dependencies", len(deps))
	}
next:
	for _, d := range deps {
		for _, a := range allowed {
			if d == a || strings.HasPrefix(d, a+"/") {
				continue next
			}
		}
		t.Errorf("depends on %s", d)
	}
}
