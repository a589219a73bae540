// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/relo"
)

// large is a report as big as is promised to be handled with ease: 50 programs
// on 1,000 kernels, each with some 30 findings. Most begin or end at a release;
// some hold on kernels here and there.
func large() *verdict.Report {
	const programs, kernels, findings = 50, 1000, 30
	rnd := rand.New(rand.NewPCG(1, 2))
	r := &verdict.Report{Version: verdict.ReportVersion}
	for k := range kernels {
		arch := []string{"x86_64", "arm64", "s390x", "ppc64le"}[k%4]
		dist := []string{"debian/12", "ubuntu/22.04", "fedora/38", "centos/9"}[k/4%4]
		r.Kernels = append(r.Kernels, verdict.Column{Name: fmt.Sprintf("%s/%s/%d.%d.%d-%d-generic", dist, arch, 4+k/300, k%300/20, k%7, k%90)})
	}
	for i := range programs {
		p := verdict.ProgramRow{Object: fmt.Sprintf("tool%d.bpf.o", i/4), Name: fmt.Sprintf("handle_event_%d", i), Section: "kprobe/do_exit", Status: make([]rule.Status, kernels)}
		for j := range findings {
			f := verdict.KernelFinding{Finding: rule.Finding{
				Status: []rule.Status{rule.Guarded, rule.Unknown, rule.MayFail, rule.Fails}[j%4], Code: relo.FieldMissing,
				Relocation: "byte_off", Subject: fmt.Sprintf("struct task_struct.member_%d.inner_%d", j, i),
				Source: fmt.Sprintf("./tool%d.bpf.c:%d", i/4, 10+j),
			}}
			if f.Status == rule.Guarded {
				f.Guard = rule.Guard{By: rule.Fact, Name: fmt.Sprintf("field_exists struct task_struct.member_%d", j), Source: fmt.Sprintf("./tool%d.bpf.c:%d", i/4, 9+j)}
			}
			from, to, odds := rnd.IntN(kernels), rnd.IntN(kernels), 100
			if j%5 == 0 {
				from, to, odds = 0, kernels, 10 // here and there
			}
			for k := from; k < to; k++ {
				if rnd.IntN(100) < odds {
					f.Kernels = append(f.Kernels, k)
					p.Status[k] = max(p.Status[k], f.Status)
				}
			}
			if len(f.Kernels) > 0 {
				p.Findings = append(p.Findings, f)
			}
		}
		r.Programs = append(r.Programs, p)
	}
	return whole(r)
}

// whole adds the rows of objects, which need all of their programs.
func whole(r *verdict.Report) *verdict.Report {
	for i := range r.Programs {
		p := &r.Programs[i]
		n := len(r.Objects)
		if n == 0 || r.Objects[n-1].Object != p.Object {
			r.Objects = append(r.Objects, verdict.ObjectRow{Object: p.Object, Status: make([]rule.Status, len(r.Kernels))})
			n++
		}
		o, d := &r.Objects[n-1], verdict.Decider{Program: i}
		o.Programs = append(o.Programs, i)
		for k, s := range p.Status {
			o.Status[k] = max(o.Status[k], s)
			if s > rule.Other {
				d.Kernels = append(d.Kernels, k)
			}
		}
		o.Load = o.Status
		o.Decides = append(o.Decides, d)
	}
	r.Summarize()
	return r
}

const maxPage = 480_000 // bytes that the page of large may have

// TestLargePage wants the page of a large report small, and logs how long a
// browser takes to open and to filter it.
func TestLargePage(t *testing.T) {
	slow.Nightly(t)
	raceflag.SkipSerial(t)
	var b bytes.Buffer
	if err := HTML(&b, large(), Options{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", b.Len())
	if b.Len() > maxPage {
		t.Errorf("%d bytes, more than %d", b.Len(), maxPage)
	}
	// Each step ends when all is laid out; of five times the median counts, since
	// other work goes on on the machine.
	const script = `<script>
const settle = () => document.body.getBoundingClientRect();
settle();
const times = { opened: performance.now(), steps: [] };
let n = 0;
const step = (what, f) => { const t = performance.now(); f(); settle();
  const s = times.steps[n] ??= { what, all: [], rows: rows.filter(r => !r.p).length, cols: cols.length };
  s.all.push(performance.now() - t); n++ };
const input = (id, v) => step(id + " " + v, () => { $(id).value = v; $(id).dispatchEvent(new Event("input")) });
for (let round = 0; round < 5; round++) {
  n = 0;
  for (const w of ["d", "debian", "debian x86_64", "debian x86_64 6.", ""]) input("fk", w);
  for (const w of ["h", "handle_event_1", "tool3 member_7", ""]) input("fp", w);
  input("fs", "7"); input("fs", "0"); input("so", "0"); input("so", "2"); input("so", "1");
  input("co", "1"); input("co", "0"); input("co", "2");
  step("open", () => document.querySelectorAll("tr.p button")[round].click());
}
for (const s of times.steps) s.ms = s.all.sort((a, b) => a - b)[2];
document.title = JSON.stringify(times);
</script>`
	title := chromiumTitle(t, b.String()+script)
	var times struct {
		Opened float64
		Steps  []struct {
			What       string
			MS         float64
			Rows, Cols int
		}
	}
	if err := json.Unmarshal([]byte(title), &times); err != nil {
		t.Fatalf("%v: %s", err, title)
	}
	slowest := 0
	for i, s := range times.Steps {
		t.Logf("%-24s %6.1f ms, %d programs, %d columns", s.What, s.MS, s.Rows, s.Cols)
		if s.MS > times.Steps[slowest].MS {
			slowest = i
		}
	}
	t.Logf("opened after %.0f ms; slowest step %q: median %.1f ms, %.1f frames of 1/60 s", times.Opened, times.Steps[slowest].What,
		times.Steps[slowest].MS, times.Steps[slowest].MS*60/1000)
	wants := [][2]int{5: {50, 0}, 6: {11, 0}, 7: {1, 0}, 8: {50, 0}, 13: {50, 16}, 14: {50, 800}, 15: {50, 1000}, 16: {50, 16}}
	for i, want := range wants {
		s := times.Steps[i]
		if want[0] > 0 && s.Rows != want[0] || want[1] > 0 && s.Cols != want[1] {
			t.Errorf("%q shows %d programs and %d columns, want %v", s.What, s.Rows, s.Cols, want)
		}
	}
}

// largestWrite keeps what is written and the size of the largest write.
type largestWrite struct {
	bytes.Buffer
	largest int
}

func (l *largestWrite) Write(p []byte) (int, error) {
	l.largest = max(l.largest, len(p))
	return l.Buffer.Write(p)
}

// TestJSONByRows checks that JSON is encoded row by row, not as one value in memory.
func TestJSONByRows(t *testing.T) {
	var w largestWrite
	if err := JSON(&w, large(), Options{}); err != nil {
		t.Fatal(err)
	}
	if w.largest > w.Len()/10 {
		t.Errorf("a write of %d bytes, of %d", w.largest, w.Len())
	}
	if !json.Valid(w.Bytes()) || bytes.Count(w.Bytes(), []byte("\n")) != 1 {
		t.Error("not one line of JSON")
	}
}
