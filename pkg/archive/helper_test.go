// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"testing"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/archive/writer"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func mustWrite(t testing.TB, kernels []archive.Kernel) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writer.Write(&b, archive.Info{}, kernels); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustOpen(t testing.TB, data []byte) *archive.Archive {
	t.Helper()
	a, err := archive.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustKey(t testing.TB, s string) kernel.Key {
	t.Helper()
	k, err := kernel.ParseKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
