// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/oracle"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestRulesBpftool compares what the rules say of candidates with what libbpf
// decides in bpftool. It patches no instructions and prints no values, so those
// are not compared. bpftool stops at a relocation that ends the load; it is
// asked again without that one, as the engine goes on.
func TestRulesBpftool(t *testing.T) {
	slow.Skip(t)
	b := &ruleTool{tool: oracle.Need(t, "bpftool"), dir: t.TempDir()}
	rules := readRules(t)
	done := 0
	for _, r := range rules {
		if r.without != "" {
			t.Logf("%s: not compared: %s", r.name, r.without)
			continue
		}
		done++
		t.Run(r.name, func(t *testing.T) { b.compare(t, r) })
	}
	t.Logf("%d of %d scenarios: %d relocations with %d candidates compared", done, len(rules), b.records, b.candidates)
	if b.records == 0 {
		t.Error("nothing was compared")
	}
}

type ruleTool struct {
	tool, dir           string
	records, candidates int
}

func (b *ruleTool) compare(t *testing.T, r *rule) {
	var tb Table
	if err := new(Filler).Fill(t.Context(), &tb, NewSet(r.object), r.kernel, nil); err != nil {
		t.Fatal(err)
	}
	var decisions []*Decision
	for _, d := range tb.Libbpf().Decisions(0) {
		decisions = append(decisions, d)
	}
	asks, seen := slices.Clone(r.asks), 0
	for len(asks) > 0 {
		res := b.run(t, r, asks)
		if len(res.Records) > len(asks) || len(res.Records) < len(asks) && res.ExitStatus == 0 {
			t.Fatalf("bpftool has %d records for %d relocations", len(res.Records), len(asks))
		}
		for i := seen; i < len(res.Records); i++ {
			rec := res.Records[i]
			// Of a value that cannot be computed libbpf says nothing, and bpftool
			// has no place for some kinds of types in what it writes.
			if last := i == len(res.Records)-1; last && rec.Err == "" && !strings.Contains(res.Failure, "unsupported kind") {
				rec.Err = res.Failure
			}
			b.record(t, decisions[i], &rec)
		}
		if res.ExitStatus == 0 {
			return
		}
		// The last one ended the run, be it by the rules or because bpftool
		// cannot do it. Decisions before it do not change.
		n := len(res.Records)
		if n == 0 {
			t.Fatalf("bpftool failed: %s", res.Failure)
		}
		asks, decisions = slices.Delete(asks, n-1, n), slices.Delete(decisions, n-1, n)
		seen = n - 1
	}
}

func (b *ruleTool) run(t *testing.T, r *rule, asks []ruleAsk) *oracle.Result {
	t.Helper()
	obj, err := ruleObject(r.object.Order(), r.local, asks, false)
	if err != nil {
		t.Fatal(err)
	}
	in, object := filepath.Join(b.dir, "vmlinux.btf"), filepath.Join(b.dir, "object.o")
	for path, data := range map[string][]byte{in: r.vmlinux, object: obj} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	res, err := oracle.Run(t.Context(), b.tool, in, filepath.Join(b.dir, "out.btf"), object)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Other) > 0 {
		t.Fatalf("bpftool said what is not understood: %q", res.Other)
	}
	return res
}

// record compares one relocation. What a record is about is compared as text,
// so that a difference shows both.
func (b *ruleTool) record(t *testing.T, d *Decision, r *oracle.Record) {
	t.Helper()
	b.records++
	failed := d.Result == relo.Ambiguous || d.Result == relo.Error && d.patch == nil
	if (r.Err != "") != failed {
		t.Errorf("%s: %s (%s), bpftool's error is %q", d.resolution.spec, d.Result, d.Reason(), r.Err)
	}
	if r.Err != "" {
		return // it stopped in the midst of the candidates
	}
	kind := d.resolution.spec.kind
	got := []string{placeText(kind, d.resolution.spec.entry(), true)}
	want := []string{oracleText(r.Local, true)}
	matched := false
	for _, c := range d.resolution.candidates(t.Context(), &explainer{tb: d.resolution.tb}) {
		b.candidates++
		matched = matched || c.Match
		got = append(got, placeText(kind, c.Spec, c.Match))
	}
	for _, c := range r.Candidates {
		want = append(want, oracleText(c.Spec, c.Match))
	}
	if kind != relo.LocalTypeID {
		got = append(got, fmt.Sprint("matched: ", matched))
		want = append(want, fmt.Sprint("matched: ", !r.NoMatch))
	}
	if r.Kind != kind.String() || !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nbpftool: %s\n%s", d.resolution.spec, strings.Join(got, "\n"), r.Kind, strings.Join(want, "\n"))
	}
}

// placeText has of a candidate that does not match the type alone.
func placeText(kind relo.Kind, p relo.Spec, match bool) string {
	text := fmt.Sprintf("[%d] match %v", p.TypeID, match)
	if !match {
		return text
	}
	if kind.IsEnumval() {
		return text + " ::" + p.Path
	}
	if p.Path != "" {
		text += " " + strings.TrimPrefix(p.Path, ".")
	}
	if p.Offset != nil {
		off := fmt.Sprint(*p.Offset)
		if p.BitOffset != nil {
			off += fmt.Sprintf(".%d", *p.BitOffset%8)
		}
		text += fmt.Sprintf(" (%s @ %s)", p.Raw, off)
	}
	return text
}

func oracleText(s oracle.Spec, match bool) string {
	text := fmt.Sprintf("[%d] match %v", s.TypeID, match)
	if !match {
		return text
	}
	if path, _, _ := strings.Cut(s.Path, " = "); path != "" {
		text += " " + strings.TrimPrefix(path, ".")
	}
	if s.Offset != "" {
		text += fmt.Sprintf(" (%s @ %s)", s.Raw, s.Offset)
	}
	return text
}
