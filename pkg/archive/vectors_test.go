// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// vectorDir has archives, and what readers in any language must say of them.
const vectorDir = "../../testdata/btfa"

// vector is an archive in vectorDir. Its README.md describes the fields.
type vector struct {
	File    string         `json:"file"`
	Status  string         `json:"status"`
	Part    string         `json:"part,omitempty"`
	Kernels []vectorKernel `json:"kernels,omitempty"`
	Lookups []vectorLookup `json:"lookups,omitempty"`
	Covers  []vectorCovers `json:"covers,omitempty"`
}

type vectorKernel struct {
	Kernel string `json:"kernel"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

type vectorLookup struct {
	Want       string `json:"want"`
	Neighbours int    `json:"neighbours"`
	Rule       string `json:"rule"`
	Kernel     string `json:"kernel,omitempty"`
}

type vectorCovers struct {
	Object  string `json:"object"`
	Arch    string `json:"arch"`
	Covered bool   `json:"covered"`
}

// partOf finds the damaged part of an archive in an error.
var partOf = regexp.MustCompile(`^archive: (frame|payload|meta|kernels|names|shapes|parents|numbers|layouts|fingerprints): `)

// describePart returns the damaged part that an error names, or "" for an error about the whole file.
func describePart(message string) string {
	if m := partOf.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// statuses are the words for the statuses of the readers.
var statuses = map[readers.Status]string{readers.OK: "ok", readers.NotArchive: "not an archive", readers.UnknownVersion: "unknown version", readers.Damaged: "damaged"}

func readVectors(t *testing.T) (all []vector) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectorDir, "vectors.json"))
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (v *vector) data(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(vectorDir, v.File))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func describeKernels(kernels []archive.Kernel) (all []vectorKernel) {
	for _, k := range kernels {
		v := vectorKernel{Kernel: k.Key.String(), Bytes: len(k.BTF)}
		if len(k.BTF) > 0 {
			v.SHA256 = fmt.Sprintf("%x", sha256.Sum256(k.BTF))
		}
		all = append(all, v)
	}
	return all
}

// answer returns the vector as this package answers it.
func (v vector) answer(t *testing.T) vector {
	t.Helper()
	a, err := archive.Open(v.data(t))
	got := vector{File: v.File, Status: "ok"}
	switch {
	case errors.Is(err, archive.ErrNotArchive):
		got.Status = "not an archive"
	case errors.Is(err, archive.ErrVersion):
		got.Status = "unknown version"
	case errors.Is(err, archive.ErrDamaged):
		got.Status = "damaged"
	case err != nil:
		t.Fatal(err)
	}
	if err != nil {
		got.Part = describePart(err.Error())
		return got
	}
	var kernels []archive.Kernel
	for _, k := range a.Keys() {
		b, err := a.BTF(k)
		if err != nil && !errors.Is(err, archive.ErrDamaged) {
			t.Fatal(err)
		}
		kernels = append(kernels, archive.Kernel{Key: k, BTF: b})
	}
	got.Kernels = describeKernels(kernels)
	for _, l := range v.Lookups {
		m := a.Lookup(mustKey(t, l.Want), l.Neighbours)
		l.Rule, l.Kernel = m.Rule.String(), ""
		if m.Found() {
			l.Kernel = m.Key.String()
		}
		got.Lookups = append(got.Lookups, l)
	}
	for _, c := range v.Covers {
		c.Covered = a.Covers(archive.NewObject("", bpfObject(t, c.Object), c.Arch)) == nil
		got.Covers = append(got.Covers, c)
	}
	return got
}

// TestVectors compares all readers with the vectors.
func TestVectors(t *testing.T) {
	if *update {
		addVectors(t)
	}
	all := readVectors(t)
	files, err := filepath.Glob(filepath.Join(vectorDir, "*.btfa"))
	if err != nil || len(files) != len(all) || len(all) < 30 {
		t.Errorf("%d files, %d vectors (%v)", len(files), len(all), err)
	}
	statusesSeen := make(map[string]bool)
	for _, v := range all {
		statusesSeen[v.Status] = true
		if d := cmp.Diff(v, v.answer(t)); d != "" {
			t.Errorf("%s (-want +Go):\n%s", v.File, d)
		}
	}
	if len(statusesSeen) != len(statuses) {
		t.Errorf("vectors have %d statuses of %d", len(statusesSeen), len(statuses))
	}
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		if strings.HasSuffix(t.Name(), "/Python") { // ten seconds
			slow.Skip(t)
		}
		for _, v := range all {
			a := c.Open(t, v.data(t))
			got := vector{File: v.File, Status: statuses[a.Status], Part: describePart(a.Error), Kernels: describeKernels(a.Kernels)}
			for _, l := range v.Lookups {
				m := c.Lookups(t, []kernel.Key{mustKey(t, l.Want)}, l.Neighbours)[0]
				l.Rule, l.Kernel = m.Rule.String(), ""
				if m.Found() {
					l.Kernel = m.Key.String()
				}
				got.Lookups = append(got.Lookups, l)
			}
			for _, o := range v.Covers {
				status, _ := c.Covers(t, bpfObject(t, o.Object), o.Arch)
				o.Covered = status == readers.OK
				got.Covers = append(got.Covers, o)
			}
			if d := cmp.Diff(v, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", v.File, d)
			}
		}
	})
}

// addVectors writes vectors that are missing. It never changes one: later versions must read these.
func addVectors(t *testing.T) {
	t.Helper()
	var all []vector
	if _, err := os.Stat(filepath.Join(vectorDir, "vectors.json")); err == nil {
		all = readVectors(t)
	}
	add := func(v vector, data []byte) {
		if slices.ContainsFunc(all, func(o vector) bool { return o.File == v.File }) {
			return
		}
		if err := os.WriteFile(filepath.Join(vectorDir, v.File), data, 0o666); err != nil {
			t.Fatal(err)
		}
		all = append(all, v.answer(t))
	}
	btfs := testminimized.Kernels(t)
	of := func(objects []archive.Object, kernels ...archive.Kernel) []byte {
		var b bytes.Buffer
		if err := archive.Write(t.Context(), &b, archive.Info{Tool: "btfgen", Objects: objects}, kernels); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	exec, tool := bpfObject(t, "execsnoop.bpfel.o"), bpfObject(t, "tool.bpfel.o")
	real := of([]archive.Object{archive.NewObject("execsnoop.bpf.o", exec), archive.NewObject("tool.bpf.o", tool, "arm64")}, btfs...)
	var lookups []vectorLookup
	for _, want := range []string{
		"debian/12/x86_64/6.1.0-47-amd64", "Debian/12/amd64/6.1.0-47-amd64", "devuan/5/x86_64/6.1.0-47-amd64", "debian/12/x86_64/6.1.0-48-amd64",
		"debian/12/s390x/6.1.0-47-amd64", "-/-/x86_64/6.1.0-47-amd64", "debian/12/x86_64/-", "debian/12/-/6.1.0-47-amd64",
	} {
		lookups = append(lookups, vectorLookup{Want: want})
	}
	covers := []vectorCovers{
		{Object: "execsnoop.bpfel.o", Arch: "x86_64"}, {Object: "tool.bpfel.o", Arch: "aarch64"}, {Object: "tool.bpfel.o", Arch: "x86_64"},
		{Object: "shapes.bpfel.o"}, {Object: "norelo.bpfel.o"},
	}
	add(vector{File: "kernels.btfa", Lookups: lookups, Covers: covers}, real)
	var series []archive.Kernel
	for i, release := range []string{"6.1.0-1-amd64", "6.1.0-2-amd64", "6.1.0-4-amd64", "6.1.0-5-amd64", "6.1.0-7-amd64", "6.1.0-5-rt-amd64"} {
		series = append(series, archive.Kernel{Key: mustKey(t, "debian/12/x86_64/"+release), BTF: btfs[i/4].BTF})
	}
	lookups = nil
	for _, release := range []string{"6.1.0-3-amd64", "6.1.0-6-amd64", "6.1.0-8-amd64", "6.1.0-10-amd64", "6.1.0-1-rt-amd64", "6.1.0-6-rt-amd64"} {
		for _, n := range []int{0, 1, 2, 3} {
			lookups = append(lookups, vectorLookup{Want: "debian/12/x86_64/" + release, Neighbours: n})
		}
	}
	add(vector{File: "series.btfa", Lookups: lookups}, of(nil, series...))
	add(vector{File: "empty.btfa", Covers: covers}, of(nil))
	add(vector{File: "names.btfa", Covers: covers}, (&vector{File: "names.btfa"}).data(t))
	add(vector{File: "words.btfa"}, []byte("words\n"))
	add(vector{File: "version-2.btfa"}, append([]byte("btfa\x02"), real[5:]...))
	add(vector{File: "cut-short.btfa"}, real[:len(real)/2])
	add(vector{File: "header-only.btfa"}, real[:5])
	add(vector{File: "magic-only.btfa"}, real[:4])
	add(vector{File: "bytes-follow.btfa"}, append(slices.Clone(real), 0))
	checksum := slices.Clone(real)
	checksum[len(checksum)-1] ^= 1
	add(vector{File: "wrong-checksum.btfa"}, checksum)
	for _, c := range hostile(t) {
		name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(c.name), "-"), "-")
		if data := raw(t, c.payload); len(data) < 4096 {
			add(vector{File: "payload-" + name + ".btfa"}, data)
		}
	}
	out, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(vectorDir, "vectors.json"), append(out, '\n'), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
