// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// part of a sparse file.
type piece struct {
	at   int64
	data string
}

// sparseTar returns a tar file of one sparse member of size bytes, which are all a hole
func sparseTar(name string, size int64, pieces ...piece) []byte {
	table := fmt.Sprintf("%d\n", len(pieces))
	var data bytes.Buffer
	for _, p := range pieces {
		table += fmt.Sprintf("%d\n%d\n", p.at, len(p.data))
		data.WriteString(p.data)
	}
	table += strings.Repeat("\x00", -len(table)&511)
	records := ""
	for _, kv := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprint("GNU.sparse.realsize=", size)} {
		n := len(kv) + 3
		for len(fmt.Sprintf("%d %s\n", n, kv)) != n {
			n++
		}
		records += fmt.Sprintf("%d %s\n", n, kv)
	}
	file := tarOf(member{"pax", []byte(records)}, member{name, []byte(table + data.String())})
	h := file[:512]
	h[156] = tar.TypeXHeader
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return file
}

// hollowDeb returns a tar file that holds a Debian package of n members with a
// gigabyte of nothing each.
func hollowDeb(n int) []byte {
	const size = 1 << 30
	pieces := []piece{{0, "!<arch>\n"}}
	at := int64(8)
	for i := range n {
		pieces = append(pieces, piece{at, fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n", fmt.Sprint("m", i), 0, 0, 0, "100644", size)})
		at += 60 + size
	}
	return sparseTar("x.deb", at, pieces...)
}

// tooMuch reports whether one of the errors is that of the budget.
func tooMuch(errs []*Error) bool {
	return slices.ContainsFunc(errs, func(e *Error) bool { return strings.Contains(e.Error(), "unpacks to more than") })
}

// TestSparse reads the holes of a sparse file, which take no space in it and
func TestSparse(t *testing.T) {
	small := sparseTar("1.btf", int64(len(blobLE)), piece{0, string(blobLE)})
	path := filepath.Join(tree(t, map[string]string{"f": string(small)}), "f")
	if _, got, errs := readAll(t, Options{}, path); len(got) != 1 || len(errs) > 0 {
		t.Fatalf("a sparse file without holes: %d kernels, %v", len(got), errs)
	}
	path = filepath.Join(tree(t, map[string]string{"f": string(hollowDeb(15))}), "f")
	_, got, errs := readAll(t, Options{MaxSize: 1 << 20}, path)
	if len(got) > 0 || !tooMuch(errs) {
		t.Errorf("15 GB of holes: %d kernels, errors %v", len(got), errs)
	}
}

// TestSparseStops wants the reading of holes to end with its context.
func TestSparseStops(t *testing.T) {
	path := filepath.Join(tree(t, map[string]string{"f": string(hollowDeb(2))}), "f")
	c, err := Open(t.Context(), []string{path}, Options{MaxSize: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	ctx := testlimit.Looks(100)
	if err := c.Files[0].Read(ctx, func(*Kernel) error { return nil }); ctx.Left > 0 {
		t.Errorf("%d looks are left, %v", ctx.Left, err)
	}
}

// TestCompressedSections reads many ELF files whose sections are compressed: each
// is within the limit of one, all together are not.
func TestCompressedSections(t *testing.T) {
	raceflag.SkipSerial(t)
	var members []member
	for i := range 60 {
		f := elfFile(binary.LittleEndian, elf.ET_EXEC, elf.EM_X86_64, compressedSection(".BTF", make([]byte, 1<<20)))
		members = append(members, member{fmt.Sprintf("lib/modules/%d/vmlinux", i), f})
	}
	path := filepath.Join(tree(t, map[string]string{"f": string(tarOf(members...))}), "f")
	_, got, errs := readAll(t, Options{MaxSize: 1 << 20}, path)
	if len(got) > 0 || !tooMuch(errs) {
		t.Errorf("%d kernels, errors %v", len(got), errs)
	}
}
