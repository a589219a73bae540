// SPDX-License-Identifier: Apache-2.0

package check

// ObjectRow says of a whole object on which kernels it works: whether its loader
// gets it loaded, and what it has to attach attached. Indices are those of
// [Report.Programs] and [Report.Kernels].
type ObjectRow struct {
	Object   string      `json:"object"`
	Programs []int       `json:"programs"`          // all of the object, ascending
	Status   []Status    `json:"status"`            // by kernel, the worst of the loaders
	Load     []Status    `json:"load"`              // by kernel: of loading it alone, whether it can be attached or not
	Loaders  []LoaderRow `json:"loaders,omitempty"` // each of the loaders, where they differ; none where they agree
	Decides  []Decider   `json:"decides,omitempty"` // the programs whose verdict is that of the object, where it does not work
	Rules    []Rule      `json:"rules,omitempty"`   // which programs have to work, where that is not all
	Headline Headline    `json:"headline"`
}

// LoaderRow is what one loader makes of an object.
type LoaderRow struct {
	Loader Loader   `json:"loader"`
	Status []Status `json:"status"` // by kernel
	Load   []Status `json:"load"`   // by kernel, of loading it alone
}

// Loader is a library that loads objects.
type Loader string

// The loaders whose ways are known.
const (
	Libbpf Loader = "libbpf"
	EbpfGo Loader = "ebpf-go" // github.com/cilium/ebpf
)

// Decider is a program that an object's verdict is from, with the kernels where
// it is, ascending.
type Decider struct {
	Program int   `json:"program"`
	Kernels []int `json:"kernels"`
}

// Rule says of some programs of an object when they have to work.
type Rule struct {
	Kind     RuleKind `json:"kind"`
	Programs [][]int  `json:"programs"`        // of OneOf the alternatives, of each of which all programs have to work; else one list
	When     string   `json:"when,omitempty"`  // the selector of OnlyWhen
	Guess    string   `json:"guess,omitempty"` // why it was guessed, in words; "" where the user says it
}

// RuleKind is what a rule says.
type RuleKind string

// The kinds of rules.
const (
	Optional RuleKind = "optional"  // the object works without them
	OneOf    RuleKind = "one_of"    // one of the alternatives has to work
	OnlyWhen RuleKind = "only_when" // they are loaded on some kernels only
)

// Headline sums an object's row up. The kernels that count are those that
// the object is for.
type Headline struct {
	Text       string      `json:"text"`            // "Linux 5.8 and later; 22 of 25 kernels. Older ones lack BPF_MAP_TYPE_RINGBUF (5.8)."
	Since      string      `json:"since,omitempty"` // "5.8": on this release and later ones it works, but for exceptions; "" if there is none
	Works      int         `json:"works"`           // kernels on which it is ok or guarded
	MayFail    int         `json:"may_fail"`        // kernels on which it may fail or that is unknown
	Total      int         `json:"total"`
	Lacks      []Lack      `json:"lacks,omitempty"`      // why it fails on releases before Since, or everywhere, what costs most kernels first
	Exceptions []Exception `json:"exceptions,omitempty"` // kernels on which it is the other way round, by distribution and machine
}

// Lack is something for which an object fails.
type Lack struct {
	Subject string `json:"subject"`        // as of Finding, without the kind of a relocation
	Came    string `json:"came,omitempty"` // the release that it came with, "" if that is not known
	Kernels int    `json:"kernels"`        // how many lack it
}

// Exception are kernels of one distribution and machine that are older than
// Headline.Since and on which the object works, or newer and on which it fails.
type Exception struct {
	Family  string `json:"family"`  // "rhel x86_64"
	Works   bool   `json:"works"`   // they are older; else they are newer
	Kernels []int  `json:"kernels"` // ascending
}
