// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"slices"
	"strings"
	"syscall"

	"github.com/btfgen/btfgen/internal/check"
)

// Trial compares the report on one kernel with what that kernel, booted, does with the objects.
type Trial struct {
	Objects []int // indices of the report's objects that are for the kernel, in the guest's order
	Rows    []Row // their programs, in the report's order

	first []int // by object in the guest: its first row; and the number of rows
}

// Row is a program on the booted kernel.
type Row struct {
	Program *check.Program // as libbpf loads it
	EbpfGo  *check.Program // as cilium/ebpf loads it; nil if that is not predicted
	Unread  string         // why cilium/ebpf does not read the object unchanged; "" if it does

	got   *Event // what the kernel did with the program alone; nil if no event came
	whole *Event // why libbpf does not load the object; nil if it does
}

// NewTrial returns the trial of reports on one kernel about these objects, as libbpf and as cilium/ebpf load them.
// Without the second, nothing is predicted for cilium/ebpf.
func NewTrial(rep, ebpfGo *check.Report, objects []*check.Object) *Trial {
	t := &Trial{first: []int{0}}
	n := 0
	for i, o := range objects {
		programs, others := rep.Programs[n:][:len(o.Programs)], []check.Program(nil)
		if ebpfGo != nil {
			others = ebpfGo.Programs[n:]
		}
		n += len(programs)
		if len(programs) == 0 || programs[0].Status[0] == check.Other {
			continue
		}
		for j := range programs {
			row := Row{Program: &programs[j]}
			if others != nil {
				row.EbpfGo = &others[j]
			}
			t.Rows = append(t.Rows, row)
		}
		t.first = append(t.first, len(t.Rows))
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
	refusesObject := e.Kind == Object && e.Error != ""
	if e.Kind == Program {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Program.Name == e.Name })
		if i < 0 {
			return
		}
		rows[i].got = &e
		refusesObject = e.Extern
	}
	for i := range rows {
		r := &rows[i]
		if refusesObject && r.whole == nil {
			r.whole = &e
		}
		if e.Kind == Object {
			r.Unread = cmp.Or(e.Alone, r.Unread)
		}
	}
}

// Missing returns for how many programs no result came, and how many others were not tried.
func (t *Trial) Missing() (lost, untried int) {
	for i := range t.Rows {
		switch a := t.Rows[i].Actual(); {
		case a.Outcome != NotTried:
		case a.Reason == NoResult:
			lost++
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
	NotTried = "not tried" // cilium/ebpf does not read the program, or something is missing
)

// NoResult is the reason for NotTried if no result came from the guest.
const NoResult = "no result"

// Actual is what happened to a program.
type Actual struct {
	Outcome string `json:"outcome"`          // as libbpf loads it
	Reason  string `json:"reason,omitempty"` // why it fails or was not tried
	Errno   int    `json:"errno,omitempty"`
	Log     string `json:"log,omitempty"`     // the end of the verifier's log
	Attach  string `json:"attach,omitempty"`  // [Attached], or why not; empty if not tried
	EbpfGo  string `json:"ebpf_go,omitempty"` // result of cilium/ebpf, if it differs: loads, or why not

	Alone string `json:"-"` // EbpfGo, if cilium/ebpf reads the object
}

// Actual returns what happened to the program.
func (r *Row) Actual() Actual {
	a := Actual{Outcome: Loads}
	switch e := cmp.Or(r.whole, r.got); {
	case e == nil:
		a.Outcome, a.Reason = NotTried, NoResult
	case r.whole == nil && e.Error == "":
	case e.Errno == 0:
		a.Outcome, a.Reason = NotTried, e.Error
	default:
		why := cmp.Or(e.Log, strings.TrimPrefix(e.Error, "program "+e.Name+": "))
		a.Outcome, a.Reason, a.Errno, a.Log = Fails, reason(e.Errno, why), e.Errno, e.Log
	}
	if r.got != nil {
		a.Attach = r.got.Attach
		if a.Outcome != NotTried && (r.got.Alone == Loads) != (a.Outcome == Loads) {
			a.Alone = strings.TrimPrefix(r.got.Alone, "program "+r.got.Name+": ")
		}
	}
	a.EbpfGo = cmp.Or(a.Alone, r.Unread)
	return a
}

// ebpfGo returns what happened to the program with cilium/ebpf. The second result says why it fails or was not tried.
func (r *Row) ebpfGo() (outcome, why string) {
	switch {
	case r.got == nil || r.EbpfGo == nil:
		return NotTried, NoResult
	case r.Unread != "":
		return Fails, r.Unread
	case r.got.Alone == Loads:
		return Loads, ""
	case r.got.Alone == "":
		return NotTried, r.got.Error
	}
	return Fails, strings.TrimPrefix(r.got.Alone, "program "+r.got.Name+": ")
}

// Wrong returns how the verdict was wrong, "" if it was right or makes no claim.
func (r *Row) Wrong() string {
	return cmp.Or(r.wrong(), r.wrongEbpfGo())
}

// Findings returns the reasons for the verdict that was wrong, or else for the verdict with libbpf.
func (r *Row) Findings() []check.KernelFinding {
	if r.wrong() == "" && r.wrongEbpfGo() != "" {
		return r.EbpfGo.Findings
	}
	return r.Program.Findings
}

func (r *Row) wrongEbpfGo() string {
	outcome, _ := r.ebpfGo()
	if outcome == NotTried {
		return ""
	}
	switch load := r.EbpfGo.Load[0]; {
	case outcome == Fails && load <= check.Guarded:
		return "was to load with cilium/ebpf, but does not"
	case outcome == Loads && load == check.Fails:
		return "was to fail with cilium/ebpf, but loads"
	}
	return ""
}

func (r *Row) wrong() string {
	a, load, all := r.Actual(), r.Program.Load[0], r.Program.Status[0]
	switch {
	case a.Outcome == Fails && load <= check.Guarded:
		return "was to load, but does not"
	case a.Outcome == Loads && load == check.Fails:
		return "was to fail, but loads"
	case a.Outcome != Loads || a.Attach == "":
		return ""
	case a.Attach != Attached && all <= check.Guarded:
		return "was to attach, but does not"
	case a.Attach == Attached && all == check.Fails:
		return "was not to attach, but does"
	}
	return ""
}

// Steps are what is predicted of programs, in the order of Tables.
var Steps = [3]string{"libbpf loads", "ebpf-go loads", "attached"}

// Tables count predictions on a kernel, for each of Steps.
type Tables [len(Steps)]Table

// Add counts a program.
func (t *Tables) Add(r *Row) {
	p, a := r.Program, r.Actual()
	name := p.Object + ": " + p.Name
	if a.Outcome != NotTried {
		t[0].Add(name, p.Load[0], a.Errno, a.Reason)
	}
	const errno = int(syscall.EINVAL) // the errors have none
	switch outcome, why := r.ebpfGo(); outcome {
	case Loads:
		t[1].Add(name, r.EbpfGo.Load[0], 0, "")
	case Fails:
		t[1].Add(name, r.EbpfGo.Load[0], errno, why)
	}
	switch {
	case a.Outcome != Loads || a.Attach == "":
	case a.Attach == Attached:
		t[2].Add(name, p.Status[0], 0, "")
	default:
		t[2].Add(name, p.Status[0], errno, a.Attach)
	}
}
