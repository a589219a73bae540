package check

// Kind says what a finding is about.
type Kind string

// The kinds of findings.
const (
	KindCORE     Kind = "core"          // a CO-RE relocation
	KindHelper   Kind = "helper"        // a helper function
	KindKfunc    Kind = "kfunc"         // a kernel function called by name
	KindInsn     Kind = "instruction"   // an instruction that not every verifier knows
	KindKsym     Kind = "ksym"          // a kernel variable
	KindKconfig  Kind = "kconfig"       // a setting of the kernel's build
	KindMap      Kind = "map_type"      // a type of maps
	KindProg     Kind = "prog_type"     // a type of programs
	KindAttach   Kind = "attach_type"   // a type of attachment
	KindLink     Kind = "link_type"     // a type of links
	KindTarget   Kind = "attach_target" // what the program is attached to
	KindAnalysis Kind = "analysis"      // what cannot be judged
	KindExternal Kind = "external_btf"  // needs the running kernel's own BTF
)

// Finding is one thing that a program uses and a kernel lacks, or that cannot
// be judged. A finding of status OK is a note.
type Finding struct {
	Status  Status `json:"status"`
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject"`          // "byte_off struct task_struct.state", "bpf_loop"
	Reason  string `json:"reason"`           // one line
	Source  string `json:"source,omitempty"` // file:line
	Guard   string `json:"guard,omitempty"`  // what keeps the verifier away
}
