// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"os"
	"testing"
)

// FuzzExt feeds .BTF.ext sections to the reader, with the types of a real
// object.
func FuzzExt(f *testing.F) {
	data, err := os.ReadFile("../../testdata/bpf/kinds.bpfel.o")
	if err != nil {
		f.Fatal(err)
	}
	file, err := Open(data)
	if err != nil {
		f.Fatal(err)
	}
	ext, err := file.Section(".BTF.ext")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ext)
	f.Fuzz(func(t *testing.T, ext []byte) { _, _ = parseExt(ext, file.BTF) })
}
