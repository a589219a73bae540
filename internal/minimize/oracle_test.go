// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/oracle"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestAgainstBpftool has libbpf relocate every object against a kernel and
// against what we made of it. Its decisions must be the same, and what
// bpftool would have shipped must not be smaller than ours.
func TestAgainstBpftool(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	t.Parallel()
	bpftool := oracle.Need(t, "bpftool")
	files := objectFiles(t)
	dir := t.TempDir()
	var records, failing, kernels int
	var ours, theirs int64
	refused := make(map[string]bool) // objects that bpftool cannot do on some kernel
	testinput.Each(t, testinput.Few(t), func(it *corpus.Kernel) {
		name, data := it.Name, it.BTF
		full, err := testinput.NewKernel(name, data)
		if err != nil {
			t.Fatal(err)
		}
		var list []objectFile
		for _, f := range files {
			if f.obj.Order() == full.Order() {
				list = append(list, f)
			}
		}
		p := pair{t: t, bpftool: bpftool, name: name, full: filepath.Join(dir, "full.btf"), small: filepath.Join(dir, "small.btf"), out: filepath.Join(dir, "out.btf")}
		write(t, p.full, data)
		write(t, p.small, minimized(t, full, list))
		kernels++
		// bpftool takes all objects in one run, but stops at the first that it
		// cannot do. That one has to fail on ours, too; then the others are tried,
		// here and on later kernels.
		list = slices.DeleteFunc(list, func(f objectFile) bool { return refused[f.path] })
		for len(list) > 0 {
			n, bad := p.compare(list)
			if bad < 0 {
				records += n
				theirs += p.size
				ours += int64(len(minimized(t, full, list)))
				break
			}
			failing++
			refused[list[bad].path] = true
			list = slices.Delete(list, bad, bad+1)
		}
	})
	t.Logf("%d kernels, %d records compared; %d pairs that bpftool cannot do fail the same way; %d bytes, bpftool %d", kernels, records, failing, ours, theirs)
	if records == 0 {
		t.Error("nothing was compared")
	}
	if ours > theirs {
		t.Errorf("our outputs have %d bytes, bpftool's %d", ours, theirs)
	}
}

func minimized(t *testing.T, full *core.Target, files []objectFile) []byte {
	t.Helper()
	var objs []*core.Object
	for _, f := range files {
		objs = append(objs, f.obj)
	}
	out, err := minimize.Blob(minimize.New(objs, minimize.Options{}).Minimize(t.Context(), full))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pair is a kernel and its minimized BTF, as files.
type pair struct {
	t                               *testing.T
	name, bpftool, full, small, out string
	size                            int64 // of bpftool's output for the kernel
}

// compare returns the number of records that libbpf decided the same on both.
// Where bpftool fails, it must fail with the same object and reason on both,
// and bad is the position of that object, otherwise -1.
func (p *pair) compare(files []objectFile) (records, bad int) {
	p.t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	want := p.run(p.full, paths)
	if fi, err := os.Stat(p.out); err == nil {
		p.size = fi.Size()
	}
	got := p.run(p.small, paths)
	if want.ExitStatus != got.ExitStatus || failure(want) != failure(got) || len(want.Records) != len(got.Records) {
		p.t.Fatalf("%s: status %d (%s) with %d records, on the minimized BTF %d (%s) with %d", p.name,
			want.ExitStatus, want.Failure, len(want.Records), got.ExitStatus, got.Failure, len(got.Records))
	}
	for i := range want.Records {
		if w, g := decision(&want.Records[i]), decision(&got.Records[i]); w != g {
			p.t.Errorf("%s: record %d:\nfull: %s\nours: %s", p.name, i, w, g)
		}
	}
	if want.ExitStatus == 0 {
		return len(want.Records), -1
	}
	for i, f := range files {
		if strings.Contains(want.Failure, f.path) {
			return 0, i
		}
	}
	if len(files) > 1 {
		p.t.Fatalf("%s: bpftool does not say which object it fails with: %s", p.name, want.Failure)
	}
	return 0, 0
}

func (p *pair) run(input string, objects []string) *oracle.Result {
	p.t.Helper()
	res, err := oracle.Run(context.Background(), p.bpftool, input, p.out, objects...)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(res.Other) > 0 {
		p.t.Fatalf("lines not understood: %q", res.Other)
	}
	return res
}

// failure is bpftool's reason without type IDs.
func failure(r *oracle.Result) string {
	return regexp.MustCompile(`\(\d+\)`).ReplaceAllString(r.Failure, "(ID)")
}

// decision is a record without what minimizing changes: the candidates' type
// IDs, raw indices and order, and candidates that do not match or that equal
// another. Of an ambiguity libbpf prints as many as it takes to see it.
func decision(r *oracle.Record) string {
	s := fmt.Sprintf("%s #%d %s %s (%s @ %s) nomatch=%v err=%v:", r.Program, r.Index, r.Kind, r.Local.TypeName+r.Local.Path, r.Local.Raw, r.Local.Offset, r.NoMatch, r.Err != "")
	if r.Err != "" {
		return s
	}
	var matches []string
	for _, c := range r.Candidates {
		if c.Match {
			matches = append(matches, fmt.Sprintf(" %s %s%s @ %s", c.TypeKind, c.TypeName, c.Path, c.Offset))
		}
	}
	slices.Sort(matches)
	return s + strings.Join(slices.Compact(matches), ",")
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
