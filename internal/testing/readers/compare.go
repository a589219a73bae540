// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Compare opens an archive with both readers, reads every BTF, and looks up many kernels.
// The readers must agree. It reports whether they open the archive.
func (r *Reader) Compare(t testing.TB, data []byte) bool {
	t.Helper()
	a, err := archive.Open(data)
	c := r.Open(t, data)
	if statusOf(err) != c.Status {
		t.Errorf("Go says %v, %s says %q (%d)", err, r.language.Name, c.Error, c.Status)
		return false
	}
	if err != nil {
		return false
	}
	var got []kernel.Key
	for _, k := range c.Kernels {
		got = append(got, k.Key)
		b, err := a.BTF(k.Key)
		if err == nil != (k.BTF != nil) || !bytes.Equal(b, k.BTF) {
			t.Errorf("%s: Go gives %d bytes (%v), %s %d", k.Key, len(b), err, r.language.Name, len(k.BTF))
		}
	}
	if diff := cmp.Diff(a.Keys(), append([]kernel.Key{}, got...)); diff != "" {
		t.Errorf("keys (-Go +%s):\n%s", r.language.Name, diff)
	}
	r.CompareLookups(t, a, lookups(a.Keys()))
	return true
}

// statusOf returns the other readers' status for an error of archive.Open.
func statusOf(err error) Status {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, archive.ErrNotArchive):
		return NotArchive
	case errors.Is(err, archive.ErrVersion):
		return UnknownVersion
	case errors.Is(err, archive.ErrDamaged):
		return Damaged
	}
	return 1 // not a status
}

// CompareLookups looks up kernels in a, which must be the archive opened last.
func (r *Reader) CompareLookups(t testing.TB, a *archive.Archive, wants []kernel.Key) {
	t.Helper()
	var like []kernel.Key // two distributions of the archive, for half of the look-ups
	for i, k := range a.Keys() {
		if i%(1+a.Len()/2) == 0 {
			like = append(like, kernel.Key{ID: kernel.CanonicalID(k.ID), VersionID: k.VersionID})
		}
	}
	for n, neighbours := range []int{0, 1, 2, 100} {
		like := like[:len(like)*(n%2)]
		got := r.Lookups(t, wants, neighbours, like...)
		for i, want := range wants {
			if m := a.Lookup(want, neighbours, like...); m != got[i] {
				t.Errorf("%s like %v, %d neighbours (-Go +%s):\n%s", want, like, neighbours, r.language.Name, cmp.Diff(m, got[i]))
			}
		}
	}
}

// lookups returns keys to look up in an archive with these keys: some of them, and near misses.
func lookups(keys []kernel.Key) []kernel.Key {
	wants := []kernel.Key{{}, {ID: "debian"}, {Release: "6.1"}, {ID: "x", Arch: "amd64", Release: "6.1.0-3"}}
	for i := 0; i < len(keys); i += 1 + len(keys)/8 {
		for _, change := range changes {
			k := keys[i]
			change(&k)
			if k.Validate() == nil {
				wants = append(wants, k)
			}
		}
	}
	return wants
}

// changes are the ways in which a host may differ from an archive.
var changes = []func(*kernel.Key){
	func(*kernel.Key) {},
	func(k *kernel.Key) { k.ID = "" },
	func(k *kernel.Key) { k.ID, k.VersionID = "", "" },
	func(k *kernel.Key) { k.ID = "derived" },
	func(k *kernel.Key) { k.ID = "Debian" },
	func(k *kernel.Key) { k.ID = "Amazon" },
	func(k *kernel.Key) { k.VersionID += ".5" },
	func(k *kernel.Key) { k.VersionID = "" },
	func(k *kernel.Key) { k.Arch = "" },
	func(k *kernel.Key) { k.Arch = "amd64" },
	func(k *kernel.Key) { k.Arch = "aarch64" },
	func(k *kernel.Key) { k.Arch = "vax" },
	func(k *kernel.Key) { k.Release = "" },
	func(k *kernel.Key) { k.Release = "0" + k.Release },
	func(k *kernel.Key) { k.Release = "9" + k.Release },
	func(k *kernel.Key) { k.Release += "1" },
	func(k *kernel.Key) { k.Release += "-rt" },
	func(k *kernel.Key) { k.Release += "~rc1" },
	func(k *kernel.Key) { k.Release += "-rc1" },
	func(k *kernel.Key) { k.Release = next(k.Release) },
	func(k *kernel.Key) { k.Release = next(next(k.Release)) },
	func(k *kernel.Key) { k.Release, k.ID = next(k.Release), "other" },
}

// next increments the last number of a release: "6.1.0-48" after "6.1.0-47".
func next(release string) string {
	b := []byte(release)
	numbers := 0
	for i := range b {
		if b[i] < '0' || b[i] > '9' {
			continue
		}
		if i+1 == len(b) || b[i+1] < '0' || b[i+1] > '9' {
			if numbers++; numbers >= 3 && b[i] < '9' {
				b[i]++
				break
			}
		}
	}
	return string(b)
}
