// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
)

// open returns a corpus of n kernels and one damaged file.
func open(t *testing.T, n int) *corpus.Corpus {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "debian", "12", "x86_64")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type("s", btf.KindStruct, false, 0, 0)
	for i := range n + 1 {
		data := b.Bytes()
		if i == n {
			data = data[:len(data)-1]
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("6.%02d.btf", i)), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c, err := corpus.Open(context.Background(), []string{dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKernels(t *testing.T) {
	c := open(t, 20)
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("%d 6.%02d", i, i))
	}
	for _, jobs := range []int{-1, 1, 3, 100} {
		var mu sync.Mutex
		var got []string
		workers, last := 0, 0
		cfg := Config{Corpus: c, Jobs: jobs, Progress: func(p Progress) {
			if last++; p.Done != last || p.All != 21 || p.Skipped > 1 {
				t.Errorf("%+v after %d files", p, last)
			}
		}}
		skipped, err := Kernels(context.Background(), cfg, func() *int {
			mu.Lock()
			defer mu.Unlock()
			workers++
			return new(int)
		}, func(calls *int, file int, k *corpus.Kernel) error {
			*calls++ // the race detector sees it if a worker is not alone
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%d %s", file, k.Key.Release))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d jobs: %s", jobs, d)
		}
		if most := min(max(jobs, 1), 21); workers != most {
			t.Errorf("%d jobs: %d workers, want %d", jobs, workers, most)
		}
		if last != 21 {
			t.Errorf("%d jobs: progress ended at %d", jobs, last)
		}
		if len(skipped) != 1 || skipped[0].Path != c.Files[20].Path {
			t.Errorf("%d jobs: skipped %v", jobs, skipped)
		}
	}
}

func TestErrors(t *testing.T) {
	c := open(t, 20)
	mine := errors.New("mine")
	ctx, cancel := context.WithCancel(context.Background())
	for _, tc := range []struct {
		fail func() error
		want error
	}{
		{func() error { return mine }, mine},
		{func() error { cancel(); return nil }, context.Canceled},
	} {
		skipped, err := Kernels(ctx, Config{Corpus: c, Jobs: 2}, func() int { return 0 },
			func(int, int, *corpus.Kernel) error { return tc.fail() })
		if err != tc.want || skipped != nil {
			t.Errorf("%v, %v, want error %v", skipped, err, tc.want)
		}
	}
}

// TestSkippedMember holds that what is skipped has its whole path, whatever is in it.
func TestSkippedMember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a: b.tar")
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	const name = "c: d.btf"
	if err := errors.Join(tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 4}), write(tw, "\x9f\xeb\x01\x00"), tw.Close(),
		os.WriteFile(path, b.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	c, err := corpus.Open(context.Background(), []string{path}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	skipped, err := Kernels(context.Background(), Config{Corpus: c}, func() int { return 0 }, func(int, int, *corpus.Kernel) error { return nil })
	if err != nil || len(skipped) != 1 {
		t.Fatalf("%v, %v", skipped, err)
	}
	if got := skipped[0].Path; got != path+"!"+name {
		t.Errorf("path %s of %s", got, skipped[0])
	}
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// A defect that shows on one kernel costs that kernel only, and the worker that met it starts anew: what it
// was in the middle of must not show in what comes next.
func TestPanics(t *testing.T) {
	c := open(t, 5)
	var got []string
	workers := 0
	skipped, err := Kernels(context.Background(), Config{Corpus: c, Jobs: 1}, func() *string {
		workers++
		return new(string)
	}, func(middle *string, _ int, k *corpus.Kernel) error {
		if *middle != "" {
			t.Errorf("%s: in the middle of %s", k.Name, *middle)
		}
		if *middle = k.Key.Release; k.Key.Release == "6.02" {
			panic("trouble")
		}
		got = append(got, k.Key.Release)
		*middle = ""
		return nil
	})
	slices.Sort(got)
	if want := []string{"6.00", "6.01", "6.03", "6.04"}; err != nil || workers != 2 || !slices.Equal(got, want) {
		t.Errorf("%d workers, kernels %q, want %q; %v", workers, got, want, err)
	}
	if len(skipped) != 2 || skipped[0].Reason() != "defect of btfgen: trouble" { // and the damaged one
		t.Errorf("skipped %v", skipped)
	}
}
