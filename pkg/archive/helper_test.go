// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// testInfo is the Info of the archives of these tests.
func testInfo() archive.Info {
	info := archive.Info{
		Tool: "test 1", Shard: archive.Shard{Index: 2, N: 3},
		Objects: []archive.Object{
			archive.NewObject("b.o", []byte("b")), archive.NewObject("a.o", []byte("a")), archive.NewObject("x86.o", nil, "x86_64"),
			archive.NewObject("some.o", nil, "amd64", "aarch64"),
		},
		Relocations: []archive.Relocations{{Arch: "amd64", Sum: []byte("for.x86.")}, {Sum: []byte("others..")}},
	}
	for i := range info.Objects {
		info.Objects[i].Fingerprint = []byte{'f', 'p', 0, byte(i)}
	}
	return info
}

// encoded returns the BTF of types.
func encoded(t testing.TB, types []*canonical.Type, order binary.ByteOrder) []byte {
	t.Helper()
	merged, err := canonical.Merge(context.Background(), types)
	if err != nil {
		t.Fatal(err)
	}
	return canonical.Write(merged, order)
}

func mustWrite(t testing.TB, kernels []archive.Kernel) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := archive.Write(context.Background(), &b, testInfo(), kernels); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// rewritten returns the archive of some kernels with fast compression, which otherwise
// takes most of the time of Write.
func rewritten(t testing.TB, kernels []archive.Kernel) *archive.Archive {
	t.Helper()
	payload, err := archive.Payload(t.Context(), testInfo(), kernels)
	if err != nil {
		t.Fatal(err)
	}
	return mustOpen(t, framed(payload))
}

var hasty = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	return w
})

// framed returns a file with a payload.
func framed(payload []byte) []byte {
	return hasty().EncodeAll(payload, append([]byte(btfa.Magic), btfa.Version))
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
