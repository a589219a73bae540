// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/archive"
)

var update = flag.Bool("update", false, "write the examples of docs/archive-format.md")

// exampleBTF is struct task { ...; int pid; }; with pid at a byte offset.
func exampleBTF(t *testing.T, pid uint32) []byte {
	return encoded(t, []*canonical.Type{
		{Kind: btf.KindStruct, Name: "task", Size: 64 + pid, Fields: []canonical.Field{{Name: "pid", Lo: 8 * pid}}, Refs: []int{1}},
		{Kind: btf.KindInt, Name: "int", Size: 4, Fields: []canonical.Field{{Lo: btf.IntSigned<<24 | 32}}},
	}, binary.LittleEndian)
}

// TestFormatDoc checks the examples of docs/archive-format.md. With -update it writes them.
func TestFormatDoc(t *testing.T) {
	kernels := []archive.Kernel{
		{Key: mustKey(t, "debian/12/x86_64/6.1.0-9-amd64"), BTF: exampleBTF(t, 12)},
		{Key: mustKey(t, "debian/12/x86_64/6.1.0-7-amd64"), BTF: exampleBTF(t, 4)},
	}
	info := archive.Info{Tool: "btfgen", Objects: []archive.Object{archive.NewObject("a.o", []byte("a"))}}
	var file bytes.Buffer
	if err := archive.Write(t.Context(), &file, info, kernels); err != nil {
		t.Fatal(err)
	}
	payload, err := btfa.Unpack(file.Bytes()[btfa.HeaderLen:])
	if err != nil {
		t.Fatal(err)
	}
	streams, err := btfa.Split(payload)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	at := 0
	part := func(name string, data []byte) {
		for len(data) > 0 {
			n := min(16, len(data))
			words := ""
			for word := range slices.Chunk(data[:n], 4) {
				words += fmt.Sprintf(" %x", word)
			}
			text := slices.Clone(data[:n])
			for i, c := range text {
				if c < ' ' || c > '~' {
					text[i] = '.'
				}
			}
			fmt.Fprintf(&b, "%-8s %04x %-36s  %s\n", name, at, words, text)
			name, data, at = "", data[n:], at+n
		}
	}
	rest := len(payload)
	for _, s := range streams {
		rest -= s.Len()
	}
	part("head", payload[:rest])
	for i, s := range streams {
		part(btfa.StreamTexts[i], s.Rest())
	}

	const path = "../../docs/archive-format.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := put(t, string(old), "<!-- example -->\n", b.String())
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(old) {
		t.Error("docs/archive-format.md is not up to date, run: go test ./pkg/archive -run TestFormatDoc -update")
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(btfa.Dictionary)); !strings.Contains(text, sum) {
		t.Errorf("docs/archive-format.md does not say that the dictionary's SHA-256 is %s", sum)
	}
	if want := fmt.Sprintf("%d MiB", btfa.MaxPayload>>20); !strings.Contains(text, want) {
		t.Errorf("docs/archive-format.md does not say %s", want)
	}
}

// put replaces the text between a mark and the end mark.
func put(t *testing.T, text, mark, block string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, mark)
	_, after, ok2 := strings.Cut(rest, "<!-- end -->")
	if !ok || !ok2 {
		t.Fatalf("no %s", mark)
	}
	return before + mark + "```\n" + block + "```\n<!-- end -->" + after
}
