// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"errors"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
)

// FuzzPayload opens a decompressed payload and reads every BTF, which must be valid.
func FuzzPayload(f *testing.F) {
	raceflag.SkipSerial(f)
	for _, p := range payloads(f) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, err := archive.Open(raw(t, payload))
		if (a != nil) != (err == nil) {
			t.Fatalf("archive %v, error %v", a, err)
		}
		if err != nil {
			return
		}
		for _, k := range a.Keys() {
			b, err := a.BTF(k)
			if err != nil {
				continue
			}
			if _, err := btf.New(b, nil); err != nil {
				t.Fatalf("%s: %v", k, err)
			}
		}
	})
}

// FuzzOpen opens files. Their checksum detects nearly all changes.
func FuzzOpen(f *testing.F) {
	f.Add(mustWrite(f, testminimized.Kernels(f)))
	f.Add([]byte(btfa.Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := archive.Open(data)
		if (a != nil) != (err == nil) {
			t.Fatalf("archive %v, error %v", a, err)
		}
		if err != nil && !errors.Is(err, archive.ErrNotArchive) && !errors.Is(err, archive.ErrVersion) && !errors.Is(err, archive.ErrDamaged) {
			t.Fatalf("error %v is none of those that Open returns", err)
		}
	})
}
