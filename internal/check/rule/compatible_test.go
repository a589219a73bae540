// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
)

// TestPrototypeEnds compares and prints a function that takes itself so often
// that to follow all parameters would take forever.
func TestPrototypeEnds(t *testing.T) {
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("", btf.KindFuncProto, false, 3000, 2)
	for range 3000 {
		b.Word(0, 2)
	}
	b.Type("", btf.KindPtr, false, 0, 1)
	v, err := btf.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if core.Compatible(v, 1, v, 1) {
		t.Error("compatible, though nobody can tell")
	}
	if text := prototype(v, 1); !strings.Contains(text, "…") || len(text) > 10_000 {
		t.Errorf("prototype of %d bytes", len(text))
	}
}
