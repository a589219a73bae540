// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
)

// TestSecondReader reads a file with a reader that was written from docs/corpus-format.md. TestReal does so, too.
func TestSecondReader(t *testing.T) {
	var all []input
	for n := range 40 {
		all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n)))
	}
	all[3].modules = []Module{{"ext4", []byte("one")}, {"xfs", nil}}
	for n := range 3 {
		all = append(all, in(fmt.Sprintf("6.2.0-%d-s390x", n), build(t, binary.BigEndian, n)))
	}
	blobs := odd(t)
	for i, name := range slices.Sorted(maps.Keys(blobs)) {
		all = append(all, in(fmt.Sprintf("6.%d", i), blobs[name]))
	}
	second(t, written(t, nil, all...), all...)
}

// second compares what the second reader says of a file.
func second(t *testing.T, data []byte, all ...input) {
	t.Helper()
	for _, tool := range []string{"python3", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs ", tool, ": ", err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.btfc")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, k := range all {
		fmt.Fprintf(&want, "%s %x %d\n", btfa.KeyText(k.key), sha256.Sum256(k.btf), len(k.modules))
	}
	got, err := exec.Command("python3", "testdata/second_reader.py", path).CombinedOutput()
	if err != nil || string(got) != want.String() {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want.String())
	}
}
