// SPDX-License-Identifier: Apache-2.0

package check

// Topic says what a finding is about.
type Topic string

// The topics of findings.
const (
	TopicCORE     Topic = "core"          // a CO-RE relocation
	TopicHelper   Topic = "helper"        // a helper function
	TopicKfunc    Topic = "kfunc"         // a kernel function called by name
	TopicInsn     Topic = "instruction"   // an instruction that not every verifier knows
	TopicKsym     Topic = "ksym"          // a kernel variable
	TopicKconfig  Topic = "kconfig"       // a setting of the kernel's build
	TopicMap      Topic = "map_type"      // a type of maps
	TopicMapDef   Topic = "map"           // the definition of a map
	TopicObject   Topic = "object"        // an object that a loader does not open
	TopicProg     Topic = "prog_type"     // a type of programs
	TopicAttach   Topic = "attach_type"   // a type of attachment
	TopicLink     Topic = "link_type"     // a type of links
	TopicTarget   Topic = "attach_target" // what the program is attached to
	TopicContext  Topic = "context"       // what the program is given, and what that points to
	TopicLicense  Topic = "license"       // what only programs with a license compatible with the GPL may use
	TopicReturn   Topic = "return"        // what the program returns
	TopicBounds   Topic = "bounds"        // an access of memory that the verifier may take to be out of bounds
	TopicAnalysis Topic = "analysis"      // what cannot be judged
	TopicExternal Topic = "external_btf"  // needs the running kernel's own BTF
)

// verdict is the status in words, with what it is about where that is only attaching.
func verdict(s Status, attach bool) string {
	if attach && (s == Fails || s == MayFail) {
		return s.String() + " to attach"
	}
	return s.String()
}

// Finding is one thing that a program uses and a kernel lacks, or that cannot
// be judged. A finding of status OK is a note.
type Finding struct {
	Status  Status `json:"status"`
	Topic   Topic  `json:"kind"`
	Subject string `json:"subject"`          // "byte_off struct task_struct.state", "bpf_loop"
	Reason  string `json:"reason"`           // one line
	Source  string `json:"source,omitempty"` // file:line
	Guard   string `json:"guard,omitempty"`  // what keeps the verifier away
	Attach  bool   `json:"attach,omitempty"` // it counts where the program is attached; loading it does not depend on it
	Loader  Loader `json:"loader,omitempty"` // the only loader that minds; "" if every one does
}
