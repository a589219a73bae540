// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestSums generates from a .btfc file in which some SHA-256 sums are wrong: those of chunks, or those of kernels, which are compared only if
// kernels are read as a whole. A run with hashes has sums of chunks in its manifest. The relocation uses struct wanted, which has two
// versions in the four kernels. The BTF of the first and the last kernel is equal, and every kernel is encoded against the one before.
func TestSums(t *testing.T) {
	raceflag.SkipSerial(t)
	le := binary.LittleEndian
	o, err := core.ParseObject("o.o", testbtf.Object(t, le, "struct wanted 8: a u32 4", "byte_off struct wanted.a"))
	if err != nil {
		t.Fatal(err)
	}
	keep, err := core.ParseKeep("struct:no_such_type") // kernels are then read as a whole
	if err != nil {
		t.Fatal(err)
	}
	var sums, chunks, sources []generate.Sum
	pack := func() string {
		path := filepath.Join(t.TempDir(), "x.btfc")
		w, err := btfc.NewWriter(nil, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		for i, other := range []int{4, 8, 12, 4} {
			btf := testbtf.Types(t, le, fmt.Sprintf("struct wanted 16: a u32 %d\nstruct other %d: b u32 0", 4+other/12*4, other))
			testinput.Add(t, w, kernel.Key{ID: "d", VersionID: "1", Arch: "x86_64", Release: fmt.Sprintf("6.%d", i)}, btf, nil)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := w.WriteTo(f); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fi, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		c, err := btfc.Open(file, fi.Size())
		if err != nil {
			t.Fatal(err)
		}
		sums, chunks, sources = nil, nil, nil
		for i, e := range c.Entries() {
			sums, chunks = append(sums, generate.Sum(e.Sum)), append(chunks, generate.Sum(e.Chunks[0].Check))
			sources = append(sources, c.Sources(i)[0])
		}
		return path
	}
	for _, tc := range []struct {
		name   string
		wrong  []int // kernels
		chunk  bool  // the sum of the chunk is wrong
		hash   bool
		whole  bool // kernels are read as a whole
		want   string
		shared int // kernels that use the result of another
	}{
		{"good", nil, false, false, false, "6.0 6.1 6.2 6.3", 2},
		{"good, with hashes", nil, false, true, false, "6.0 6.1 6.2 6.3", 2},
		{"good, as a whole", nil, false, false, true, "6.0 6.1 6.2 6.3", 1},
		{"the only one of its kind", []int{2}, false, true, false, "6.0 6.1 6.2 6.3", 2},
		{"the only one of its kind, as a whole", []int{2}, false, false, true, "6.0 6.1 6.3", 1},
		{"one of three, as a whole", []int{1}, false, false, true, "6.0 6.2 6.3", 1},
		{"all, as a whole", []int{0, 1, 2}, false, true, true, "6.3", 0},
		{"a chunk", []int{2}, true, false, false, "6.0 6.1 6.3", 2},
		{"a chunk, with hashes", []int{2}, true, true, false, "6.0 6.1 6.3", 2},
		{"a chunk, as a whole", []int{2}, true, false, true, "6.0 6.1 6.3", 1},
		{"a parent", []int{0}, true, false, false, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := pack()
			for _, i := range tc.wrong {
				if tc.chunk {
					testinput.WrongSum(t, path, btfc.Sum(chunks[i]))
				} else {
					testinput.WrongSum(t, path, btfc.Sum(sums[i]))
				}
			}
			c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{})
			if err != nil {
				t.Fatal(err)
			}
			cfg := generate.Config{Objects: []*core.Object{o}, Corpus: c, Jobs: 1, Hash: tc.hash}
			if tc.whole {
				cfg.Options.Keep = keep
			}
			rep, err := generate.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			shared := 0
			for _, k := range rep.Kernels {
				got = append(got, k.Key.Release)
				if k.Shared {
					shared++
				}
				n := k.Key.Release[2] - '0'
				if k.RawSize == 0 || tc.hash && !tc.chunk && !slices.Equal(k.Sources, []generate.Sum{sources[n]}) {
					t.Errorf("%s: %d bytes, sums %x", k.Name, k.RawSize, k.Sources)
				}
			}
			if text := strings.Join(got, " "); text != tc.want || shared != tc.shared {
				t.Errorf("kernels %s, %d of them shared; want %s, %d", text, shared, tc.want, tc.shared)
			}
			if len(rep.Skipped) != 4-len(got) {
				t.Errorf("skipped %v", rep.Skipped)
			}
			for _, e := range rep.Skipped {
				if !strings.Contains(e.Error(), "SHA-256") {
					t.Error(e)
				}
			}
		})
	}
}
