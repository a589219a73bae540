// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
)

var update = flag.Bool("update", false, "write vectors that are missing")

// vectorDir has corpora, and what readers in any language must say of them.
const vectorDir = "../../../testdata/btfc"

// describe returns what the reader in Go says of a file, in the words of the second reader.
func describe(t *testing.T, data []byte) (text string, all []input) {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "damaged\n", nil
	}
	var b strings.Builder
	for i, e := range f.Entries() {
		k := input{key: e.Key}
		if k.btf, err = f.BTF(ctx, i, nil); err == nil {
			k.modules, err = f.Modules(ctx, i)
		}
		if err == nil {
			k.extras, err = f.Extras(ctx, i)
		}
		if err != nil {
			fmt.Fprintf(&b, "%s damaged\n", btfa.KeyText(e.Key))
			continue
		}
		fmt.Fprintf(&b, "%s %x %d", btfa.KeyText(k.key), sha256.Sum256(k.btf), len(k.modules))
		if hasExtras(k) {
			fmt.Fprintf(&b, " %x %x", sha256.Sum256(k.extras.Config), sha256.Sum256(k.extras.Symbols))
		}
		b.WriteByte('\n')
		all = append(all, k)
	}
	return b.String(), all
}

// TestVectors reads corpora of earlier versions, also with the second reader. -update adds missing files and never changes one.
func TestVectors(t *testing.T) {
	if *update {
		addVectors(t)
	}
	files, err := filepath.Glob(filepath.Join(vectorDir, "*.btfc"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(file, "c") + "c.txt")
		if err != nil {
			t.Fatal(err)
		}
		got, all := describe(t, data)
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
		if !strings.Contains(got, "damaged") {
			t.Run(filepath.Base(file), func(t *testing.T) { second(t, data, all...) })
		}
	}
}

func addVectors(t *testing.T) {
	t.Helper()
	var series []input
	for n := range 6 {
		k := in(fmt.Sprintf("6.1.0-%d-amd64", n), build(t, binary.LittleEndian, n))
		if n > 2 {
			k.extras = extras(n)
		}
		series = append(series, k)
	}
	for n := range 2 {
		series = append(series, in(fmt.Sprintf("6.2.0-%d-s390x", n), build(t, binary.BigEndian, n)))
	}
	kernels := written(t, nil, series...)
	modules := withModules(t, binary.LittleEndian)
	broken := bytes.Clone(kernels)
	broken[len(broken)/4] ^= 1
	for name, data := range map[string][]byte{
		"kernels.btfc": kernels, "modules.btfc": written(t, nil, modules), "empty.btfc": written(t, nil),
		"cut-short.btfc": kernels[:len(kernels)/2], "changed.btfc": broken,
	} {
		path := filepath.Join(vectorDir, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		text, _ := describe(t, data)
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".txt", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
