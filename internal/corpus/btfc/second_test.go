// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
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

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// TestSecondReader reads a file with a reader that was written from docs/corpus-format.md. TestReal does so, too.
func TestSecondReader(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	var all []input
	for n := range 40 {
		all = append(all, in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n)))
	}
	for n := 1; n < 30; n++ {
		if all[n].extras = extras(n); n%10 == 3 {
			all[n].extras.Symbols = nil
		}
	}
	all[3].modules = []Module{{"ext4", []byte("one")}, {"xfs", nil}}
	for n := range 3 {
		all = append(all, in(fmt.Sprintf("6.2.0-%d-s390x", n), build(t, binary.BigEndian, n)))
	}
	blobs := odd(t)
	for i, name := range slices.Sorted(maps.Keys(blobs)) {
		all = append(all, in(fmt.Sprintf("6.%d", i), blobs[name]))
	}
	f := open(t, written(t, nil, all...))
	w, err := NewWriter(f, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	last := in("7.0", all[0].btf)
	k, err := Prepare(Input{Key: last.key, BTF: last.btf, Made: Made{By: "pahole v1.24"}, Shape: shapeOf(t, last.btf)})
	if err != nil {
		t.Fatal(err)
	}
	if added, err := w.Plan(ctx, k); !added {
		t.Fatal(err)
	}
	if err := w.Make(ctx, k); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := w.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	second(t, out.Bytes(), append(all, last)...)
	if e := open(t, out.Bytes()).Entries()[len(all)]; e.Shape.Types == 0 || e.Made.By != "pahole v1.24" {
		t.Errorf("shape %+v, made by %q", e.Shape, e.Made.By)
	}
}

func shapeOf(t *testing.T, blob []byte) Shape {
	t.Helper()
	b, err := btf.New(blob, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ShapeOf(b)
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
		fmt.Fprintf(&want, "%s %x %d", btfa.KeyText(k.key), sha256.Sum256(k.btf), len(k.modules))
		if hasExtras(k) {
			fmt.Fprintf(&want, " %x %x", sha256.Sum256(k.extras.Config), sha256.Sum256(k.extras.Symbols))
		}
		want.WriteByte('\n')
	}
	got, err := exec.Command("python3", "testdata/second_reader.py", path).CombinedOutput()
	if err != nil || string(got) != want.String() {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want.String())
	}
}
