// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Finding is something that a program uses and a kernel lacks or refuses, or that cannot be judged. It is a code
// with arguments: internal/report turns them into a sentence. A finding of status OK is a note or, on some kernels, a
// warning. Findings are comparable.
type Finding struct {
	Status     Status `json:"status"`
	Attach     bool   `json:"attach,omitempty"` // about attaching the program, not about loading it
	Code       Code   `json:"code"`
	Subject    string `json:"subject"`              // "struct task_struct.state", "bpf_loop", "function vfs_read"
	Relocation string `json:"relocation,omitempty"` // the kind of a relocation: "byte_off"
	Args
	Source string `json:"source,omitempty"` // file:line
	Guard  any    `json:"guard,omitempty"`  // a Guard that keeps the verifier away, nil for none
	Loader Loader `json:"loader,omitempty"` // the only loader concerned, "" for all
}

// Args are arguments of codes. Each code uses few of them.
type Args struct {
	Cause relo.Cause `json:"cause,omitempty"`
	// Name is a function, member, map, setting, license, machine or type of programs, or a type in C.
	Name         string  `json:"name,omitempty"`
	Names        Names   `json:"names,omitempty"`  // modules; one is enough, unless When is Together
	Other        string  `json:"other,omitempty"`  // the counterpart of Name elsewhere
	Where        string  `json:"where,omitempty"`  // the kernel that has Other, "" for the object
	Local        string  `json:"local,omitempty"`  // a cause's type or kind in the object
	Target       string  `json:"target,omitempty"` // a cause's type or kind in the kernel
	Offset       int64   `json:"offset,omitempty"`
	Size         int64   `json:"size,omitempty"` // bytes
	Count        int64   `json:"count,omitempty"`
	Max          int64   `json:"max,omitempty"`
	LocalNumber  uint64  `json:"local_number,omitempty"` // a cause's number in the object, as in relo.Reason
	TargetNumber uint64  `json:"target_number,omitempty"`
	Since        Release `json:"since,omitempty"` // older kernels refuse
	Until        Release `json:"until,omitempty"` // this and older kernels refuse; with Since, the change is between them
	Doubt        Doubt   `json:"doubt,omitempty"`
	Decided      Decided `json:"decided,omitempty"` // the kind of evidence for the verdict
	Witness      string  `json:"witness,omitempty"` // the deciding name, present or absent in BTF: see facts.Answer
	Reach        Reach   `json:"reach,omitempty"`
	When         When    `json:"when,omitempty"`
	Stops        Stops   `json:"stops,omitempty"`
}

// named returns the finding with the name of the map or function that needs a feature.
func (f Finding) named(name string) Finding {
	if f.Status != OK {
		f.Name = name
	}
	return f
}

// Names is a list of names with commas between them. It is a string so that findings are comparable.
type Names string

func NamesOf(list []string) Names { return Names(strings.Join(list, ",")) }

// List returns the names.
func (n Names) List() []string { return strings.Split(string(n), ",") }

// MarshalJSON returns an array.
func (n Names) MarshalJSON() ([]byte, error) { return json.Marshal(n.List()) }

// UnmarshalJSON reads an array.
func (n *Names) UnmarshalJSON(text []byte) error {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*n = NamesOf(list)
	return nil
}

// Guard is the branch that keeps the verifier from an instruction.
type Guard struct {
	By     GuardKind `json:"by"`
	Name   string    `json:"name,omitempty"` // the relocation, variable or setting that decides
	Value  uint64    `json:"value,omitempty"`
	Source string    `json:"source,omitempty"`
}

// GuardKind says what decides a guard.
type GuardKind string

// The kinds of guards.
const (
	Unreachable GuardKind = "unreachable" // no path leads there
	Constant    GuardKind = "constant"    // a constant condition
	Fact        GuardKind = "fact"        // Name has Value on this kernel
)

// Doubt says why a verdict is not certain.
type Doubt string

// The doubts.
const (
	NoDoubt      Doubt = ""
	OlderRelease Doubt = "older-release" // the release is older, and the BTF does not show it
	NoRelease    Doubt = "no-release"    // neither BTF nor name shows the release
	NotShown     Doubt = "not-shown"     // builds or releases differ, and the kernel does not show which one it is
	KeepsWidth   Doubt = "keeps-width"   // ebpf-go does not change the width of an access
)

// Decided says from what it is known that a kernel does not have something.
type Decided = facts.Decided

// The ways to decide.
const (
	ByWitness = facts.ByWitness
	ByConfig  = facts.ByConfig
	ByRelease = facts.ByRelease
)

// Reach says how the verifier gets to an instruction, where that is not certain.
type Reach string

// The ways to an instruction.
const (
	Reached        Reach = ""
	BySettings     Reach = "by-settings"     // with some updates or settings of the kernel or settings of the loader
	TooManyPaths   Reach = "too-many-paths"  // the analysis lost track of values
	TooLarge       Reach = "too-large"       // the analysis gave up
	LeavesFunction Reach = "leaves-function" // not followed: execution beyond the end of a function
	UnnamedAddress Reach = "unnamed-address" // not followed: a function without a symbol whose address is taken
	UnnamedCall    Reach = "unnamed-call"    // not followed: a call of a function without a symbol
	CallsNest      Reach = "calls-nest"      // not followed: calls that nest too deeply
)

// When says in which state of modules a finding counts.
type When string

// The states of modules.
const (
	Always    When = ""
	Loaded    When = "loaded"     // one of Names is loaded
	NotLoaded When = "not-loaded" // none of Names is loaded
	Together  When = "together"   // all of Names are loaded
)

// Stops says what a loader gives up on because of a finding.
type Stops string

// What loaders give up on.
const (
	NothingStops Stops = ""
	ObjectStops  Stops = "object"  // libbpf gives up on the whole object; another loader may give up on less
	ProgramStops Stops = "program" // ebpf-go gives up on the program
	LoadStops    Stops = "load"    // aya gives up on the whole object
)

// Compare orders findings by what they are about.
func (f *Finding) Compare(g *Finding) int {
	c := cmp.Or(strings.Compare(f.Subject, g.Subject), strings.Compare(string(f.Code), string(g.Code)),
		strings.Compare(f.Relocation, g.Relocation), strings.Compare(f.Source, g.Source))
	if c != 0 || *f == *g {
		return c
	}
	return strings.Compare(fmt.Sprint(*f), fmt.Sprint(*g))
}

// Absent reports whether the kernel does not have what the finding is about; else it does not allow what the program
// does with it.
func (f *Finding) Absent() bool {
	switch f.Code {
	case HelperMissing, AttachTargetMissing, AttachTargetNowhere, AttachTargetKprobes, AttachTargetSyscall:
		return true
	}
	switch FamilyOf(f.Code) {
	case FamilyHelper, FamilyTarget, FamilyMapDef, FamilyObject, FamilyContext, FamilyReturn:
		return false
	}
	return true
}

// OfFile reports whether the finding is about the object, whatever the kernel.
func (f *Finding) OfFile() bool {
	switch f.Code {
	case relo.InvalidRelocation, HelperPoisoned, KsymUndeclared, KconfigEbpfGo, KconfigNoLookup, SectionUnknown, SectionNewer,
		MapSection, MapPinning, MapSizes, MapNoSizes:
		return true
	case MapRingSize:
		return f.Max == 0
	}
	return FamilyOf(f.Code) == FamilyObject
}

// Came returns the first release with what the kernel lacks, "5.8", or "" if it is not known.
func (f *Finding) Came() string {
	if v := f.CameWith(); v != 0 {
		return v.String()
	}
	return ""
}

// CameWith returns the first release with what the kernel lacks, 0 if it is not known.
func (f *Finding) CameWith() Release {
	switch f.Code {
	case HelperMissing, MapTypeMissing, ProgTypeMissing, AttachTypeMissing, LinkTypeMissing:
		return facts.Came(f.Subject)
	}
	if f.Until != 0 {
		return 0
	}
	return f.Since
}

// Worst returns the worst status of some findings.
func Worst(l []Finding) Status {
	s := OK
	for i := range l {
		s = max(s, l[i].Status)
	}
	return s
}
