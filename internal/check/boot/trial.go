// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// Trial compares the report on one kernel with what that kernel, booted, does with the objects.
type Trial struct {
	Objects []int // indices of the report's objects for the kernel, in the guest's order
	Rows    []Row // programs of these objects that are loaded on the kernel, in the report's order

	Left     []int // objects for the kernel without a program that is loaded on it
	Unloaded int   // number of programs that are not loaded on the kernel

	first    []int      // first row of each object in the guest, then the number of rows
	unloaded [][]string // names of the programs that are not loaded, per object in the guest
}

// Row is a program on the booted kernel.
type Row struct {
	Program *verdict.ProgramRow // prediction for libbpf
	EbpfGo  *verdict.ProgramRow // prediction for cilium/ebpf; nil without one
	Unread  string              // why cilium/ebpf cannot read the object unchanged; "" if it can

	got   *Event // event about the program alone; nil if none came
	whole *Event // event that says why libbpf does not load the object; nil if it does
}

// NewTrial returns the trial of reports on one kernel about these objects, as libbpf and as cilium/ebpf load them.
// Without the second, nothing is predicted for cilium/ebpf.
func NewTrial(rep, ebpfGo *verdict.Report, objects []*rule.Object) *Trial {
	t := &Trial{first: []int{0}}
	n := 0
	for i, o := range objects {
		programs, others := rep.Programs[n:][:len(o.Programs)], []verdict.ProgramRow(nil)
		if ebpfGo != nil {
			others = ebpfGo.Programs[n:]
		}
		n += len(programs)
		if len(programs) == 0 || programs[0].Status[0] == rule.Other {
			continue
		}
		var unloaded []string
		for j := range programs {
			if programs[j].Status[0] == rule.Unloaded {
				unloaded = append(unloaded, programs[j].Name)
				continue
			}
			row := Row{Program: &programs[j]}
			if others != nil {
				row.EbpfGo = &others[j]
			}
			t.Rows = append(t.Rows, row)
		}
		if t.Unloaded += len(unloaded); len(unloaded) == len(programs) {
			t.Left = append(t.Left, i)
			continue
		}
		t.first, t.unloaded = append(t.first, len(t.Rows)), append(t.unloaded, unloaded)
		t.Objects = append(t.Objects, i)
	}
	return t
}

// Of returns the rows of an object in the guest.
func (t *Trial) Of(object int) []Row { return t.Rows[t.first[object]:t.first[object+1]] }

// Take adds an event of the guest. It skips events that are not about a program here.
func (t *Trial) Take(e Event) {
	if e.Object < 0 || e.Object >= len(t.Objects) {
		return
	}
	rows := t.Of(e.Object)
	if e.Kind == Program {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Program.Name == e.Name })
		if i < 0 {
			return
		}
		about := "program " + e.Name + ": "
		e.Error, e.Alone = strings.TrimPrefix(e.Error, about), strings.TrimPrefix(e.Alone, about)
		rows[i].got = &e
	}
	for i := range rows {
		r := &rows[i]
		if e.Error != "" && (e.Kind == Object || e.Extern) {
			r.whole = cmp.Or(r.whole, &e)
		}
		if e.Kind == Object {
			r.Unread = cmp.Or(e.Alone, r.Unread)
		}
	}
}

// skip returns Job.Skip: the programs that are not loaded on the kernel, and those with a result.
func (t *Trial) skip() map[int][]string {
	skip := make(map[int][]string)
	for i := range t.Objects {
		names := slices.Clone(t.unloaded[i])
		for _, r := range t.Of(i) {
			if r.got != nil {
				names = append(names, r.Program.Name)
			}
		}
		if slices.Sort(names); len(names) > 0 {
			skip[i] = names
		}
	}
	return skip
}

// next returns the program that the guest tries next, "" if there is none.
func (t *Trial) next() (object int, program string) {
	for i := range t.Objects {
		for _, r := range t.Of(i) {
			if name := r.Program.Name; r.got == nil && (program == "" || name < program) {
				object, program = i, name
			}
		}
		if program != "" {
			break
		}
	}
	return object, program
}

// Missing returns the names of the programs without a result, and how many others were not tried.
func (t *Trial) Missing() (lost []string, untried int) {
	for i := range t.Rows {
		switch a := t.Rows[i].Actual(); {
		case a.Outcome != NotTried:
		case a.Reason == NoResult:
			lost = append(lost, t.Rows[i].Program.Object+":"+t.Rows[i].Program.Name)
		default:
			untried++
		}
	}
	return lost, untried
}

// Outcomes of programs.
const (
	Loads    = "loads"
	Fails    = "fails"
	NotTried = "not tried" // cilium/ebpf cannot read the program, or something is missing
)

// NoResult is the reason for NotTried if no result came from the guest.
const NoResult = "no result"

// Actual is what happened to a program.
type Actual struct {
	Outcome string `json:"outcome"`          // result with libbpf
	Reason  string `json:"reason,omitempty"` // why the program fails or was not tried
	Errno   int    `json:"errno,omitempty"`
	Log     string `json:"log,omitempty"`     // end of the verifier's log
	Attach  string `json:"attach,omitempty"`  // [Attached], else why not; empty if not tried
	EbpfGo  string `json:"ebpf_go,omitempty"` // result of cilium/ebpf, if it differs: loads, else why not
	Archive string `json:"archive,omitempty"` // [Same], else the difference with the archive's BTF; empty without an archive
}

// Actual returns what happened to the program.
func (r *Row) Actual() Actual {
	a := Actual{Outcome: Loads, EbpfGo: r.Unread}
	switch e := cmp.Or(r.whole, r.got); {
	case e == nil:
		a.Outcome, a.Reason = NotTried, NoResult
	case e.Error == "":
	case e.Errno == 0:
		a.Outcome, a.Reason = NotTried, e.Error
	default:
		a.Outcome, a.Reason, a.Errno, a.Log = Fails, reason(e.Errno, cmp.Or(e.Log, e.Error)), e.Errno, e.Log
	}
	if r.got != nil {
		if a.Archive = r.got.Archive; !r.Program.Tail {
			a.Attach = r.got.Attach
		}
		if a.Outcome != NotTried && (r.got.Alone == Loads) != (a.Outcome == Loads) {
			a.EbpfGo = cmp.Or(r.got.Alone, r.Unread)
		}
	}
	return a
}

// Steps are what is predicted of programs, and how a prediction is wrong if the program fails, or works.
var Steps = [...]struct{ Name, fails, works string }{
	{"libbpf loads", "was to load, but does not", "was to fail, but loads"},
	{"ebpf-go loads", "was to load with ebpf-go, but does not", "was to fail with ebpf-go, but loads"},
	{"attached", "was to attach, but does not", "was not to attach, but does"},
}

// step is what was predicted of one of Steps, and what happened.
type step struct {
	predicted rule.Status
	unjudged  bool // something of the program is not judged
	outcome   string
	why       string // why the program fails or was not tried
}

func (r *Row) steps() [len(Steps)]step {
	a := r.Actual()
	unjudged := r.Program.Unjudged()
	ebpfGo, attach := step{unjudged: unjudged, outcome: NotTried}, step{r.Program.Status[0], unjudged, NotTried, ""}
	if r.got != nil && r.EbpfGo != nil {
		ebpfGo.predicted = r.EbpfGo.Load[0]
		switch why := cmp.Or(r.Unread, r.got.Alone); why {
		case "":
		case Loads:
			ebpfGo.outcome = Loads
		default:
			ebpfGo.outcome, ebpfGo.why = Fails, why
		}
	}
	if a.Outcome == Loads && a.Attach != "" {
		if attach.outcome = Loads; a.Attach != Attached {
			attach.outcome, attach.why = Fails, a.Attach
		}
	}
	return [...]step{{r.Program.Load[0], unjudged, a.Outcome, a.Reason}, ebpfGo, attach}
}

// wrong returns how the prediction was wrong and for which of Steps; "" if it was right or makes no claim.
func (r *Row) wrong() (how string, n int) {
	for i, s := range r.steps() {
		switch {
		case s.outcome == Fails && s.predicted <= rule.Guarded:
			return Steps[i].fails, i
		case s.outcome == Loads && s.predicted == rule.Fails:
			return Steps[i].works, i
		}
	}
	return "", 0
}

// Wrong returns how the verdict was wrong, "" if it was right or makes no claim.
func (r *Row) Wrong() string {
	how, _ := r.wrong()
	return how
}

// Findings returns the reasons for the verdict that was wrong, or else for the verdict with libbpf.
func (r *Row) Findings() []verdict.KernelFinding {
	if _, n := r.wrong(); n == 1 {
		return r.EbpfGo.Findings
	}
	return r.Program.Findings
}

// Tables count predictions on a kernel, for each of Steps.
type Tables [len(Steps)]Table

// Add counts a program.
func (t *Tables) Add(r *Row) {
	for i, s := range r.steps() {
		t[i].add(r.Program.Object+": "+r.Program.Name, s)
	}
}
