// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// contents is the content of each kernel of an archive. Equal texts are equal BTFs.
type contents map[kernel.Key]string

func TestNeighbours(t *testing.T) {
	c := make(contents)
	for s, text := range map[string]string{
		"debian/12/x86_64/6.1.0-8-amd64": "b", "debian/12/x86_64/6.1.0-9-amd64": "a",
		"debian/12/amd64/6.1.0-10-amd64": "a", "debian/12/x86_64/6.1.0-13-amd64": "a",
		"debian/12/x86_64/6.1.0-14-amd64": "b", "debian/12/x86_64/6.1.0-15-amd64": "b",
		"debian/12/x86_64/6.1.0-11-cloud-amd64": "c", "debian/11/x86_64/6.1.0-11-bpo-amd64": "c",
		"debian/12/arm64/6.1.0-11-arm64": "c", "debian/12/x86_64/6.5.0-1-amd64": "c",
		"rhel/8/x86_64/4.18.0-348.2.1.el8_5.x86_64": "d", "rhel/8/x86_64/4.18.0-348.20.1.el8_5.x86_64": "d",
		"pop/22/x86_64/5.15.0-1-generic": "e", "mint/21/x86_64/5.15.0-2-generic": "e", "ubuntu/22/x86_64/5.15.0-2-generic": "f",
	} {
		c[mustKey(t, s)] = text
	}
	a := archive.Equal(c).Lookup
	for _, tt := range []struct {
		want   string
		n      int
		rule   archive.Rule
		key    string
		reason string
	}{
		{"debian/12/x86_64/6.1.0-11-amd64", 0, archive.NoMatch, "", "x86_64"},
		{"debian/12/x86_64/6.1.0-11-amd64", -1, archive.NoMatch, "", "x86_64"},
		{"debian/12/x86_64/6.1.0-9-amd64", 1, archive.ExactMatch, "debian/12/x86_64/6.1.0-9-amd64", ""},
		{"debian/11/x86_64/6.1.0-9-amd64", 1, archive.ReleaseMatch, "debian/12/x86_64/6.1.0-9-amd64", ""},
		{"debian/12/amd64/6.1.0-11-amd64", 1, archive.NeighbourMatch, "debian/12/amd64/6.1.0-10-amd64", "have one BTF: 1 before it (6.1.0-10-amd64), 1 after it (6.1.0-13-amd64)"},
		{"debian/12/x86_64/6.1.0-11-amd64", 2, archive.NoMatch, "", "; the BTFs of the 4 builds next to it differ"},
		{"debian/12/x86_64/6.1.0-9.5-amd64", 1, archive.NeighbourMatch, "debian/12/x86_64/6.1.0-9-amd64", "1 after it (6.1.0-10-amd64)"},
		{"debian/12/x86_64/6.1.0-16-amd64", 2, archive.NeighbourMatch, "debian/12/x86_64/6.1.0-15-amd64", "2 before it (6.1.0-14-amd64 … 6.1.0-15-amd64), none after it"},
		{"debian/12/x86_64/6.1.0-16-amd64", 3, archive.NoMatch, "", "; the BTFs of the 3 builds next to it differ"},
		{"debian/12/x86_64/6.1.0-16-amd64", 7, archive.NoMatch, "", "; builds of its series before it: 6, want 7"},
		{"debian/12/x86_64/6.1.0-7-amd64", 1, archive.NoMatch, "", "before it: 0, want 1"},
		{"debian/12/x86_64/6.1.0-12-cloud-amd64", 1, archive.NeighbourMatch, "debian/12/x86_64/6.1.0-11-cloud-amd64", ""},
		{"debian/12/x86_64/6.1.0-12-rt-amd64", 1, archive.NoMatch, "", "before it: 0, want 1"},
		{"debian/12/x86_64/6.2.0-1-amd64", 1, archive.NoMatch, "", "before it: 0, want 1"},
		{"debian/13/x86_64/6.1.0-11-amd64", 1, archive.NoMatch, "", "before it: 0, want 1"},
		{"rhel/8/x86_64/4.18.0-372.9.1.el8.x86_64", 2, archive.NeighbourMatch, "rhel/8/x86_64/4.18.0-348.20.1.el8_5.x86_64", "none after it"},
		{"pop/22/x86_64/5.15.0-2-generic", 1, archive.NoMatch, "", "their BTFs differ"},
		{"debian/12/x86_64/-", 1, archive.NoMatch, "", "unknown"},
	} {
		m := a(mustKey(t, tt.want), tt.n)
		key := ""
		if m.Found() {
			key = m.Key.String()
		}
		if m.Rule != tt.rule || key != tt.key || !strings.Contains(m.Reason, tt.reason) {
			t.Errorf("%s with %d: %s %s: %s", tt.want, tt.n, m.Rule, key, m.Reason)
		}
	}
}

// TestFindNeighbours checks that Find returns neighbours only with Options.Neighbours.
func TestFindNeighbours(t *testing.T) {
	opts := archive.FindOptions{Archive: lookupArchive(t), IgnoreKernel: true, Host: kernel.HostOptions{
		OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-9.5-amd64", Arch: "x86_64",
	}}
	if _, err := archive.Find(opts); err == nil {
		t.Error("took a neighbour without being told to")
	}
	opts.Neighbours = 1
	got, err := archive.Find(opts)
	if err != nil {
		t.Fatal(err)
	}
	want, err := opts.Archive.BTF(mustKey(t, "debian/12/x86_64/6.1.0-9-amd64"))
	if err != nil || got.Match.Rule != archive.NeighbourMatch || !bytes.Equal(got.BTF, want) {
		t.Errorf("%+v, %v", got.Match, err)
	}
}

// tally counts results for kernels that were left out.
type tally struct{ asked, given, wrong int }

// measure looks up each kernel in an archive without it, and without the kernels after it
// if next is set.
func (y *tally) measure(t *testing.T, c contents, n int, next bool) {
	t.Helper()
	for out, text := range c {
		rest := make(contents)
		for k, text := range c {
			later := k.Compare(out) > 0 && k.ID == out.ID && k.VersionID == out.VersionID && k.Arch == out.Arch
			if k != out && !(next && later) {
				rest[k] = text
			}
		}
		if len(rest) == 0 {
			continue
		}
		a := archive.Equal(rest)
		y.asked++
		m := a.Lookup(out, n)
		if m.Rule != archive.NeighbourMatch {
			continue
		}
		y.given++
		if rest[m.Key] != text {
			y.wrong++
		}
	}
}

// objectSet is objects to minimize for, each alone and all together.
type objectSet struct {
	name    string
	objects []*core.Object
	alone   []contents
	all     contents
}

func (s *objectSet) add(t *testing.T, k *corpus.Kernel, target *core.Target) {
	t.Helper()
	var everything []string
	for i, o := range s.objects {
		res, err := minimize.New([]*core.Object{o}, minimize.Options{}).Minimize(t.Context(), target)
		if errors.Is(err, minimize.ErrNoObject) {
			return // a big-endian kernel
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", k.Name, o.Name(), err)
		}
		text := fmt.Sprintf("%x", sha256.Sum256(res.BTF))
		s.alone[i][k.Key] = text
		everything = append(everything, text)
	}
	// Kernels with the same BTF for each object have the same BTF for all objects.
	s.all[k.Key] = strings.Join(everything, " ")
}

// TestNeighbourFigures looks up each kernel of the corpus without it. Its log has the
// figures in docs/howto-tracers.md, added up.
func TestNeighbourFigures(t *testing.T) {
	raceflag.SkipSerial(t)
	if os.Getenv("BTFGEN_CORPUS") == "" {
		t.Skip("needs BTFGEN_CORPUS")
	}
	sets := objectSets(t)
	testinput.Each(t, testinput.Corpus(t), func(k *corpus.Kernel) {
		var target core.Target
		if err := k.Load(t.Context(), &target, k.Name); err != nil {
			t.Fatal(err)
		}
		for _, s := range sets {
			s.add(t, k, &target)
		}
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nobjects\tbuilds\tleft out\tgiven\twrong\tnext build\tgiven\twrong")
	for _, s := range sets {
		for _, archives := range []struct {
			name string
			list []contents
		}{{s.name + ", each alone", s.alone}, {s.name + ", all in one", []contents{s.all}}} {
			for _, n := range []int{1, 2, 3, 4, 6} {
				var between, next tally
				for _, c := range archives.list {
					between.measure(t, c, n, false)
					next.measure(t, c, n, true)
				}
				if wrong := between.wrong + next.wrong; n >= 3 && wrong > 0 { // the default of --builds
					t.Errorf("%s, %d builds: %d wrong", archives.name, n, wrong)
				}
				if between.given == 0 || next.given == 0 {
					t.Errorf("%s, %d builds: no answers to judge", archives.name, n)
				}
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", archives.name, n,
					between.asked, between.given, between.wrong, next.asked, next.given, next.wrong)
			}
		}
	}
	w.Flush()
	t.Log(b.String())
}

// objectSets returns the little-endian objects of testdata and of BTFGEN_DEBIAN.
func objectSets(t *testing.T) []*objectSet {
	t.Helper()
	ours, debian := &objectSet{name: "testdata"}, &objectSet{name: "Debian"}
	for _, o := range testinput.Objects(t) {
		set := debian
		if strings.HasSuffix(o.Name(), ".bpfel.o") {
			set = ours
		} else if strings.HasSuffix(o.Name(), "bpfeb.o") || strings.HasSuffix(o.Name(), "_bpfel.o") {
			continue // of the other byte order, or for one machine
		}
		set.objects = append(set.objects, o.Object)
	}
	sets := slices.DeleteFunc([]*objectSet{ours, debian}, func(s *objectSet) bool { return len(s.objects) == 0 })
	for _, s := range sets {
		s.all = make(contents)
		for range s.objects {
			s.alone = append(s.alone, make(contents))
		}
	}
	return sets
}
