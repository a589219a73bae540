package minimize_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/oracle"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestAgainstBpftool has libbpf relocate every object against a kernel and
// against what we made of it. Its decisions must be the same, and what
// bpftool would have shipped must not be smaller than ours.
func TestAgainstBpftool(t *testing.T) {
	bpftool := oracle.Need(t, "bpftool")
	files := objectFiles(t)
	dir := t.TempDir()
	var all []*relolog.Object
	for _, f := range files {
		all = append(all, f.obj)
	}
	bySet := sets(t, all)
	var records, failing, kernels int
	var ours, theirs int64
	eachKernel(t, func(name string, data []byte) {
		full, err := relolog.NewTarget(name, data)
		if err != nil {
			t.Fatal(err)
		}
		set := bySet[full.Order().String()]
		if set == nil {
			t.Fatalf("%s: no object of its byte order", name)
		}
		out, err := minimize.New(set, minimize.Options{}).Minimize(full)
		if err != nil {
			t.Fatal(err)
		}
		kernels++
		p := pair{t: t, bpftool: bpftool, full: filepath.Join(dir, "full.btf"), small: filepath.Join(dir, "small.btf"), out: filepath.Join(dir, "out.btf")}
		write(t, p.full, data)
		write(t, p.small, out)
		// All objects in one run, which ends at the first failure; those are
		// then run one by one.
		var list []objectFile
		for _, f := range files {
			if f.obj.Order() == full.Order() {
				list = append(list, f)
			}
		}
		n, size := p.compare(name, list)
		if n < 0 {
			n = 0
			for _, f := range list {
				m, _ := p.compare(name, []objectFile{f})
				if m < 0 {
					failing++
					continue
				}
				n += m
			}
		} else {
			ours += int64(len(out))
			theirs += size
		}
		records += n
	})
	t.Logf("%d kernels, %d records compared; %d pairs that bpftool cannot do; %d bytes, bpftool %d", kernels, records, failing, ours, theirs)
	if records == 0 {
		t.Error("nothing was compared")
	}
	if ours > theirs {
		t.Errorf("our outputs have %d bytes, bpftool's %d", ours, theirs)
	}
}

// pair is a kernel and its minimized BTF, as files.
type pair struct {
	t                         *testing.T
	bpftool, full, small, out string
}

// compare returns the number of records that libbpf decided the same on both,
// and the size of bpftool's output. Where bpftool fails on the kernel it must fail on ours
// for the same reason; then the number is -1.
func (p *pair) compare(name string, files []objectFile) (records int, size int64) {
	p.t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	want := p.run(p.full, paths)
	if fi, err := os.Stat(p.out); err == nil {
		size = fi.Size()
	}
	got := p.run(p.small, paths)
	if want.ExitStatus != got.ExitStatus || want.Failure != got.Failure || len(want.Records) != len(got.Records) {
		p.t.Errorf("%s: %s: status %d (%s) with %d records, on the minimized BTF %d (%s) with %d", name, files[0].obj.Name(),
			want.ExitStatus, want.Failure, len(want.Records), got.ExitStatus, got.Failure, len(got.Records))
		return -1, 0
	}
	for i := range want.Records {
		if w, g := decision(&want.Records[i]), decision(&got.Records[i]); w != g {
			p.t.Errorf("%s: record %d:\nfull: %s\nours: %s", name, i, w, g)
			return -1, 0
		}
	}
	if want.ExitStatus != 0 {
		return -1, 0
	}
	return len(want.Records), size
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

// decision is a record without what minimizing changes: the candidates' type
// IDs, numbers and raw indices, and candidates that do not match or that equal
// another.
func decision(r *oracle.Record) string {
	s := fmt.Sprintf("%s #%d %s %s (%s @ %s) nomatch=%v err=%v:", r.Program, r.Index, r.Kind, r.Local.TypeName+r.Local.Path, r.Local.Raw, r.Local.Offset, r.NoMatch, r.Err != "")
	seen := make(map[string]bool)
	for _, c := range r.Candidates {
		m := fmt.Sprintf(" %s %s%s @ %s", c.TypeKind, c.TypeName, c.Path, c.Offset)
		if c.Match && !seen[m] {
			seen[m] = true
			s += m
		}
	}
	return s
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
