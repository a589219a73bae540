// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/report/logs"
	"github.com/btfgen/btfgen/internal/testing/oracle"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestBpftool compares the log with bpftool's output, record by record: kind, local spec, the candidates with their specs,
// and whether any matches. It uses every pair of object and kernel that bpftool accepts.
func TestBpftool(t *testing.T) {
	slow.Skip(t)
	b := &bpftoolTest{T: t, tool: oracle.Need(t, "bpftool"), dir: t.TempDir(), refused: make(map[string]int), missed: make(map[string]int)}
	bigEndian := 0
	for i, o := range testinput.Objects(t) {
		if o.Order().String() != "LittleEndian" {
			bigEndian++
			continue
		}
		p := filepath.Join(b.dir, fmt.Sprintf("%d.o", i))
		if err := os.WriteFile(p, o.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		b.objects = append(b.objects, &bpftoolObject{Object: o.Object, path: p})
	}
	kernels := 0
	testinput.Each(t, testinput.Few(t), func(k *corpus.Kernel) {
		if b.kernel(k) {
			kernels++
		}
	})
	t.Logf("%d objects on %d kernels: %d records with %d candidates compared", len(b.objects), kernels, b.records, b.candidates)
	t.Logf("bpftool could not do %d big-endian objects", bigEndian)
	for _, why := range slices.Sorted(maps.Keys(b.refused)) {
		t.Logf("bpftool could not do %d pairs, nor %d records in them: %s", b.refused[why], b.missed[why], why)
	}
	if b.records == 0 {
		t.Error("nothing was compared")
	}
}

type bpftoolObject struct {
	*core.Object
	path    string
	refused bool // by bpftool, on some kernel
}

type bpftoolTest struct {
	*testing.T
	tool, dir           string
	objects             []*bpftoolObject
	records, candidates int
	refused, missed     map[string]int // pairs and records by object and bpftool's reason
}

// kernel runs bpftool on one kernel, with several objects at once if it accepts them, because reading the kernel's BTF is
// most of its work.
func (b *bpftoolTest) kernel(k *corpus.Kernel) bool {
	target, err := testinput.NewKernel(k.Name, k.BTF)
	if err != nil {
		b.Fatal(err)
	}
	if target.Order().String() != "LittleEndian" {
		return false
	}
	input := filepath.Join(b.dir, "vmlinux.btf")
	if err := os.WriteFile(input, k.BTF, 0o600); err != nil {
		b.Fatal(err)
	}
	// What bpftool refused on one kernel it usually refuses on all.
	b.try(input, target, slices.DeleteFunc(slices.Clone(b.objects), func(o *bpftoolObject) bool { return o.refused }))
	return true
}

// try compares objects. If bpftool refuses some of them, it tries each half.
func (b *bpftoolTest) try(input string, target *core.Target, objects []*bpftoolObject) {
	res := b.run(input, objects)
	if n := len(objects); res.ExitStatus != 0 && n > 1 {
		b.try(input, target, objects[:n/2])
		b.try(input, target, objects[n/2:])
		return
	}
	logs := make([]*relo.Log, len(objects))
	for i, o := range objects {
		var err error
		if logs[i], err = core.NewSet(o.Object).Run(b.Context(), target); err != nil {
			b.Fatal(err)
		}
	}
	before := b.records
	b.compare(logs, res)
	if res.ExitStatus != 0 {
		objects[0].refused = true
		why := objects[0].Name() + ": " + reason(res.Failure)
		b.refused[why]++
		b.missed[why] += len(logs[0].Entries) - (b.records - before)
	}
}

func (b *bpftoolTest) run(input string, objects []*bpftoolObject) *oracle.Result {
	ctx, cancel := context.WithTimeout(b.Context(), oracle.Timeout)
	defer cancel()
	args := []string{"-d", "gen", "min_core_btf", input, filepath.Join(b.dir, "out.btf")}
	for _, o := range objects {
		args = append(args, o.path)
	}
	out, err := exec.CommandContext(ctx, b.tool, args...).CombinedOutput()
	if ctx.Err() != nil {
		b.Fatal(ctx.Err())
	}
	res := oracle.Parse(string(out))
	if err != nil {
		res.ExitStatus = 1
	}
	if len(res.Other) > 0 {
		b.Errorf("cannot parse bpftool's output: %q", res.Other)
	}
	return res
}

// typeIDs matches the numbers in parentheses in bpftool's reasons.
var typeIDs = regexp.MustCompile(` \(\d+\)`)

// reason removes type IDs and file names from bpftool's message.
func reason(failure string) string {
	first, _, _ := strings.Cut(failure, "; ")
	first = typeIDs.ReplaceAllString(first, "")
	if i := strings.Index(first, " for /"); i >= 0 {
		_, after, _ := strings.Cut(first[i:], ": ")
		first = first[:i] + ": " + after
	}
	return first
}

// compare compares the logs of some objects with bpftool's records, which are incomplete if it failed.
func (b *bpftoolTest) compare(logs []*relo.Log, res *oracle.Result) {
	recs := res.Records
	for _, l := range logs {
		for i := range l.Entries {
			if len(recs) == 0 {
				if res.ExitStatus == 0 {
					b.Errorf("%s on %s: bpftool has %d records, we have %d", l.Object, l.Kernel, i, len(l.Entries))
				}
				return
			}
			b.record(&l.Entries[i], &recs[0])
			recs = recs[1:]
		}
	}
	if len(recs) > 0 {
		b.Errorf("%s: bpftool has %d more records", logs[0].Kernel, len(recs))
	}
}

func (b *bpftoolTest) record(e *relo.Entry, r *oracle.Record) {
	b.records++
	fail := func(format string, args ...any) {
		b.Errorf("%s on %s: %s #%d: %s: %s", e.Object, e.Kernel, e.Section, e.Index, e.Relocation(), fmt.Sprintf(format, args...))
	}
	if r.Program != e.Section || r.Index != e.Index || r.Kind != e.Kind.String() {
		fail("bpftool has %s #%d %s", r.Program, r.Index, r.Kind)
		return
	}
	if want, got := specOf(&r.Local), logs.Spec(e.Kind, &e.Local); got != want && !r.Local.Truncated {
		fail("local spec %q, bpftool has %q", got, want)
	}
	if (r.Err != "") != (e.Result == relo.Ambiguous || e.Result == relo.Error && e.Target == nil) {
		fail("%s (%s), bpftool's error is %q", e.Result, e.Reason, r.Err)
	}
	if r.Err != "" {
		return // it stopped before the last candidate
	}
	if len(r.Candidates) != len(e.Candidates) {
		fail("%d candidates, bpftool has %d", len(e.Candidates), len(r.Candidates))
		return
	}
	matched := false
	for i := range e.Candidates {
		b.candidates++
		c, rc := &e.Candidates[i], &r.Candidates[i]
		matched = matched || c.Match
		switch {
		case c.Match != rc.Match || c.TypeID != rc.TypeID || i != rc.Index:
			fail("candidate [%d] match %v %s, bpftool has #%d [%d] match %v", c.TypeID, c.Match, c.Reason, rc.Index, rc.TypeID, rc.Match)
		case c.Match:
			if want, got := specOf(&rc.Spec), logs.Spec(e.Kind, &c.Spec); got != want && !rc.Truncated {
				fail("candidate %q, bpftool has %q", got, want)
			}
		}
	}
	if asks := e.Kind != relo.LocalTypeID; asks && r.NoMatch == matched {
		fail("matched: %v, bpftool: %v", matched, !r.NoMatch)
	}
}

// specOf converts bpftool's spec to the form of logs.Spec, without the distinction of enum64 and the value of an enumerator.
func specOf(s *oracle.Spec) string {
	kind := strings.TrimSuffix(s.TypeKind, "64")
	path, _, _ := strings.Cut(s.Path, " = ")
	out := fmt.Sprintf("[%d] %s%s", s.TypeID, typeText(kind, s.TypeName), path)
	if s.Offset != "" {
		out += fmt.Sprintf(" (%s @ offset %s)", s.Raw, s.Offset)
	}
	return out
}

func typeText(kind, name string) string {
	switch kind {
	case "struct", "union", "enum":
		return kind + " " + name
	}
	return name
}
