// SPDX-License-Identifier: Apache-2.0

package btfa_test

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

func fingerprint(t testing.TB, data []byte) string {
	t.Helper()
	b, err := btfa.Fingerprint(data)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(b)
}

// TestFingerprintVectors compares fingerprints with those in testdata, which the test of the C reader also reads.
// Archives contain fingerprints, so a change here makes all of them stale.
func TestFingerprintVectors(t *testing.T) {
	vectors, err := os.ReadFile("testdata/fingerprints")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(vectors)) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		data, err := os.ReadFile(filepath.Join("../../testdata/bpf", name))
		if err != nil || !ok {
			t.Fatal(err, line)
		}
		if got := fingerprint(t, data); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		n++
	}
	if n < 50 {
		t.Errorf("only %d vectors", n)
	}
}

// TestFingerprintObjects checks that objects with equal fingerprints have equal relocations.
func TestFingerprintObjects(t *testing.T) {
	byFingerprint := make(map[string][]testinput.Object)
	objects := testinput.Objects(t)
	for _, o := range objects {
		fp := fingerprint(t, o.Data)
		byFingerprint[fp] = append(byFingerprint[fp], o)
	}
	for fp, all := range byFingerprint {
		for _, o := range all[1:] {
			if core.Hash(o.Object) != core.Hash(all[0].Object) {
				t.Errorf("%s and %s have other relocations but fingerprint %s", all[0].Name(), o.Name(), fp)
			}
		}
	}
	t.Logf("%d objects have %d fingerprints", len(objects), len(byFingerprint))
}

// TestFingerprintCode changes an object's code: the fingerprint stays the same.
func TestFingerprintCode(t *testing.T) {
	data := testinput.Named(t, "execsnoop.bpfel.o").Data
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(data)
	changed := 0
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 {
			other[s.Offset] ^= 0xff
			changed++
		}
	}
	if got, want := fingerprint(t, other), fingerprint(t, data); got != want || changed == 0 {
		t.Errorf("%s with other code, %s before", got, want)
	}
}

// TestFingerprintChanges changes bytes of the types and records of objects. If the relocations then differ for
// core.Hash, on which the contents of archives depend, the fingerprint differs too.
func TestFingerprintChanges(t *testing.T) {
	slow.Nightly(t)
	raceflag.SkipSerial(t)
	random := rand.New(rand.NewPCG(1, 2))
	tried, differ := 0, 0
	for _, in := range testinput.Objects(t) {
		f, err := elf.NewFile(bytes.NewReader(in.Data))
		if err != nil || len(in.Data) > 1<<20 {
			continue
		}
		before, fp := core.Hash(in.Object), fingerprint(t, in.Data)
		for _, name := range []string{".BTF", ".BTF.ext"} {
			s := f.Section(name)
			if s == nil || s.Size == 0 {
				continue
			}
			for range 200 {
				at := s.Offset + random.Uint64N(s.Size)
				changed := slices.Clone(in.Data)
				changed[at] ^= 1 << random.UintN(8)
				o, err := core.ParseObject(in.Name(), changed)
				if err != nil || core.Hash(o) == before {
					continue
				}
				tried++
				if got, err := btfa.Fingerprint(changed); err == nil && hex.EncodeToString(got) == fp {
					t.Errorf("%s: relocations change with byte %d of %s, the fingerprint does not", in.Name(), at-s.Offset, name)
					differ++
				}
			}
		}
	}
	t.Logf("%d changes of relocations; the fingerprint misses %d", tried, differ)
}
