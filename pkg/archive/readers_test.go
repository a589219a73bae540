// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestMain(m *testing.M) { readers.Main(m) }

// TestReaders compares the readers on archives and payloads.
func TestReaders(t *testing.T) {
	slow.Skip(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		for _, kernels := range [][]archive.Kernel{nil, testminimized.Kernels(t)[:1], testminimized.Kernels(t)} {
			if !c.Compare(t, mustWrite(t, kernels)) {
				t.Errorf("%d kernels: not opened", len(kernels))
			}
		}
		for _, tt := range hostile(t) {
			t.Run(tt.name, func(t *testing.T) { c.Compare(t, raw(t, tt.payload)) })
		}
		files, err := os.ReadFile("../../examples/go-tracer/tracer.btfa")
		if err != nil {
			t.Fatal(err)
		}
		c.Compare(t, files)
	})
}

// TestReadersDamage compares the readers on damaged files.
func TestReadersDamage(t *testing.T) {
	slow.Skip(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		data := mustWrite(t, testminimized.Kernels(t)[:2])
		opened := 0
		try := func(bad []byte) {
			if c.Compare(t, bad) {
				opened++
			}
		}
		for n := range data {
			try(data[:n])
		}
		for at := range data {
			for _, mask := range []byte{1, 0x80, 0xff} {
				bad := slices.Clone(data)
				bad[at] ^= mask
				try(bad)
			}
		}
		try(append(slices.Clone(data), 0))
		try(make([]byte, btfa.MaxFile+1))
		t.Logf("compared %d files of %d bytes, %d of which both open", 4*len(data)+2, len(data), opened)
	})
}

// TestReadersLookup looks up kernels in series, and releases that several distributions have.
func TestReadersLookup(t *testing.T) {
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		btfs := testminimized.Kernels(t)
		var kernels []archive.Kernel
		for i := range slow.Some(40) {
			for _, k := range []kernel.Key{
				{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprintf("6.1.0-%d-amd64", i)},
				{ID: "debian", VersionID: "12", Arch: "x86_64", Release: fmt.Sprintf("6.1.0-%d-rt-amd64", i/2*2)},
				{ID: "ubuntu", VersionID: "22.04", Arch: "aarch64", Release: fmt.Sprintf("5.15.0-%d-generic", 3*i)},
				{ID: "Ubuntu", VersionID: "20.04", Arch: "arm64", Release: fmt.Sprintf("5.15.0-%d-generic", 6*i)},
				{ID: "mint", VersionID: "21", Arch: "arm64", Release: fmt.Sprintf("5.15.0-%d-generic", 9*i)},
				{ID: "amazon", VersionID: "2", Arch: "amd64", Release: fmt.Sprintf("5.10.%d-%d.amzn2.x86_64", i/4, i)},
				{ID: "fedora", VersionID: "39", Arch: "s390x", Release: fmt.Sprintf("6.%d.0-0.rc%d.fc39", i/8, i%8)},
			} {
				if !slices.ContainsFunc(kernels, func(o archive.Kernel) bool { return o.Key == k }) {
					kernels = append(kernels, archive.Kernel{Key: k, BTF: btfs[i/7%len(btfs)].BTF})
				}
			}
		}
		data := mustWrite(t, kernels)
		if !c.Compare(t, data) {
			t.Fatal("not opened")
		}
		a := mustOpen(t, data)
		var wants []kernel.Key
		for _, k := range a.Keys() {
			for i := range 3 {
				k := k
				k.Release = k.Release[:len(k.Release)-i]
				wants = append(wants, k)
				k.ID = "other"
				wants = append(wants, k)
			}
		}
		if c.Language() == readers.Python {
			wants = wants[:len(wants)/10]
		}
		c.CompareLookups(t, a, wants)
		found := map[archive.Rule]int{}
		for _, k := range wants {
			found[a.Lookup(k, 1).Rule]++
		}
		t.Logf("compared lookups of %d kernels among %d; with 1 neighbour: %v", len(wants), a.Len(), found)
	})
}

// TestAllocations makes each allocation fail in turn: the C reader reports it and does not leak.
func TestAllocations(t *testing.T) {
	c := readers.Start(t, readers.C)
	n, wrong := c.Failures(t, mustWrite(t, testminimized.Kernels(t)))
	if wrong != "" || n < 20 {
		t.Errorf("allocation %d: %q", n, wrong)
	}
	t.Logf("no memory is lost where any of %d allocations fails", n)
}

// largeLayout returns a payload with one BTF that has as many members as possible.
func largeLayout() []byte {
	const structs, members = 7, 1<<16 - 1
	var streams [btfa.NumStreams][]byte
	streams[btfa.StreamMeta] = make([]byte, 6)
	streams[btfa.StreamKernels] = []byte("\x01\x00\x00d/1/a/6\x00")
	streams[btfa.StreamParents] = []byte{structs}
	streams[btfa.StreamLayouts] = []byte{1, 0, structs}
	streams[btfa.StreamNumbers] = make([]byte, structs*(members+1))
	for i := range structs {
		streams[btfa.StreamNames] = append(streams[btfa.StreamNames], byte('a'+i), 0)
		streams[btfa.StreamParents] = append(streams[btfa.StreamParents], 1, 0)
		streams[btfa.StreamLayouts] = append(streams[btfa.StreamLayouts], 0, btfa.VariantNext)
		shape := binary.AppendUvarint([]byte{4 << 1}, members)
		for j := range members { // a member of the type in some slot, without a name
			shape = append(shape, btfa.NameNone, btfa.ToFirst+1+2*byte((i+j)%structs))
		}
		streams[btfa.StreamShapes] = append(streams[btfa.StreamShapes], shape...)
	}
	p := []byte{btfa.NumStreams}
	for _, s := range streams {
		p = binary.AppendUvarint(p, uint64(len(s)))
	}
	return append(p, slices.Concat(streams[:]...)...)
}

// TestReadersBounds checks the memory of readers for payloads that consist of one stream.
func TestReadersBounds(t *testing.T) {
	slow.Skip(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		payloads := heavy()
		delete(payloads, "kernels") // too slow, as every kernel is read
		payloads["layout"] = largeLayout()
		if !c.Compare(t, raw(t, largeLayout())) {
			t.Error("layout: not opened")
		}
		for name, p := range payloads {
			a := c.Open(t, raw(t, p))
			t.Logf("%s: %d MiB to open, %d MiB to take a BTF out, no more than 256 and 64 (%s)", name, a.Most>>20, a.Taking>>20, a.Error)
			if a.Most > maxMemory || a.Taking > 64<<20 {
				t.Errorf("%s: %d and %d bytes", name, a.Most, a.Taking)
			}
		}
	})
}

// TestDictionaries compares the copies of the dictionary, which are beside the readers so that their folders can be copied.
func TestDictionaries(t *testing.T) {
	want, err := os.ReadFile("../../internal/btfa/dictionary")
	if err != nil {
		t.Fatal(err)
	}
	for _, copied := range []string{"../../lib/rust/src/dictionary", "../../lib/python/btfa/dictionary"} {
		if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs (%v)", copied, err)
		}
	}
}
