// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/btfgen/btfgen/internal/check"
)

// topic is what readers are told of a check.Topic.
type topic struct {
	topic  check.Topic
	id     string // of the SARIF rule, which stays
	name   string // of the SARIF rule
	word   string // before what a finding is about
	title  string
	text   string // what it means
	advice string // what to do
}

const (
	adviseProgram = "Leave these programs out on such kernels, or have others for them: bpf_program__set_autoload()."
	adviseMap     = "Leave these maps out on such kernels, bpf_map__set_autocreate(), with the programs that use them; or define them in another way."
	adviseWeak    = "Declare these __weak and ask bpf_ksym_exists() first."
)

// topics has all topics of findings.
var topics = []topic{
	{check.TopicCORE, "BTFGEN1001", "UnresolvedRelocation", "", "CO-RE relocation that nothing resolves",
		"A type, field or enumerator that the program uses is not in the kernel, so the loader makes the instruction invalid, and the verifier reaches it.",
		"Ask first, with bpf_core_field_exists() or the like, or use a flavor of the type that the kernel has."},
	{check.TopicHelper, "BTFGEN1002", "MissingHelper", "helper", "Helper that the program cannot call",
		"The kernel does not have the helper, or does not let programs of this type call it.",
		"Ask bpf_core_enum_value_exists(enum bpf_func_id, …) before these calls, or have other programs for such kernels."},
	{check.TopicKfunc, "BTFGEN1003", "MissingKfunc", "kfunc", "Kernel function that the program cannot call",
		"The kernel does not have the function, or has one with another prototype.", adviseWeak},
	{check.TopicInsn, "BTFGEN1004", "UnknownInstruction", "instruction", "Instruction that the verifier does not know",
		"The kernel's verifier is older than the instruction.",
		"Compile for an older instruction set, such as with -mcpu=v3, or have other programs for such kernels."},
	{check.TopicKsym, "BTFGEN1005", "MissingKsym", "ksym", "Kernel variable that is missing",
		"The kernel does not have the variable, or BTF does not tell.", adviseWeak},
	{check.TopicKconfig, "BTFGEN1006", "MissingKconfig", "kconfig", "Setting of the kernel's configuration",
		"The program depends on how the kernel was built.", "Declare these __weak, so that they are 0 where the kernel has no such setting."},
	{check.TopicMap, "BTFGEN1007", "MissingMapType", "map type", "Type of maps that the kernel lacks",
		"The kernel cannot create a map that the object has.", adviseMap},
	{check.TopicMapDef, "BTFGEN1008", "RefusedMap", "map", "Map that the kernel refuses",
		"The kernel does not create a map of this size or with these flags.", adviseMap},
	{check.TopicProg, "BTFGEN1009", "MissingProgramType", "prog type", "Type of programs that the kernel lacks",
		"The kernel does not load programs of this type.", adviseProgram},
	{check.TopicAttach, "BTFGEN1010", "MissingAttachType", "attach type", "Type of attachment that the kernel lacks",
		"The kernel cannot attach programs in this way.", adviseProgram},
	{check.TopicLink, "BTFGEN1011", "MissingLinkType", "link type", "Type of links that the kernel lacks",
		"The kernel does not have the links that attach the program.", adviseProgram},
	{check.TopicTarget, "BTFGEN1012", "MissingTarget", "", "Nothing to attach to",
		"What the program is attached to is not there, or cannot be had by programs.",
		"Attach these to something else or leave them out on such kernels; if the loader sets the target, --target says it."},
	{check.TopicContext, "BTFGEN1013", "RefusedContextAccess", "context", "Access of the context that the verifier refuses",
		"The verifier does not let the program read this of what it is given.",
		"Read this in another way, such as bpf_probe_read_kernel(), or have other programs for such kernels."},
	{check.TopicLicense, "BTFGEN1016", "MissingLicense", "", "Use that a license is needed for",
		"The kernel lets only programs with a license compatible with the GPL use this.",
		"Give the object a license that the kernel takes for compatible, such as char LICENSE[] SEC(\"license\") = \"Dual BSD/GPL\"."},
	{check.TopicReturn, "BTFGEN1017", "RefusedReturnValue", "", "Return value that the verifier refuses",
		"The verifier does not let programs of this type return this.",
		"Return one of the numbers that programs of this type may."},
	{check.TopicBounds, "BTFGEN1018", "UnseenBounds", "", "Access of memory of which the verifier may not see the bounds",
		"That the access is within bounds follows from comparisons that older verifiers learn nothing from.",
		"Compare the number by size once more where it is used, behind barrier_var(), so that the compiler keeps that."},
	{check.TopicObject, "BTFGEN1019", "UnreadableObject", "", "Object that a loader does not open",
		"The loader refuses the object as a file, before it asks the kernel for anything.",
		"Change what the loader refuses, or load the object with another one and say so with --loader."},
	{check.TopicAnalysis, "BTFGEN1014", "NotJudged", "", "What cannot be judged",
		"What the kernel's BTF says is not enough to tell.", "Try these on such a kernel: BTF does not tell."},
	{check.TopicExternal, "BTFGEN1015", "RunningKernelBtf", "", "What comes from the running kernel's own BTF",
		"What is taken from the running kernel's own BTF is not in BTF that is shipped.", "Have the running kernel's own BTF for these."},
}

// about returns what readers are told of a topic.
func about(t check.Topic) *topic {
	for i := range topics {
		if topics[i].topic == t {
			return &topics[i]
		}
	}
	return &topic{topic: t, word: strings.ReplaceAll(string(t), "_", " ")}
}

// plain says in words what a finding is about and what is wrong with it. What is
// said of a field by several relocations is the same.
func plain(t check.Topic, subject, reason string) (what, why string) {
	if t != check.TopicCORE {
		return subject, reason
	}
	kind, what, _ := strings.Cut(subject, " ")
	head, tail, more := strings.Cut(reason, "; ")
	switch {
	case head == "no candidate": // whatever is asked of it
		what, _ = splitSpec(what)
		head = "type absent"
	case strings.HasPrefix(head, "ambiguous: "):
		head = "ambiguous, as several types of this name differ"
	case head != "no matching candidate":
	case strings.HasPrefix(kind, "enumval"):
		head = "enumerator absent"
	case strings.HasPrefix(kind, "type") || strings.HasPrefix(kind, "target"):
		head = "no type that matches"
	default:
		head = "field absent"
	}
	if more {
		head += "; " + tail
	}
	return what, head
}

// splitSpec cuts "struct s.a.b" or "enum e::A" behind the type.
func splitSpec(spec string) (typ, rest string) {
	if i := strings.IndexAny(spec, ".[:"); i >= 0 {
		return spec[:i], spec[i:]
	}
	return spec, ""
}

// advice is what can be done about a cause.
func advice(c *check.Cause) string {
	switch {
	case c.Topic == check.TopicCORE && strings.HasPrefix(c.Reason, "ambiguous: "):
		return "Use first, of the same local type, a field that the right one of the kernel's types has alone: libbpf then keeps to that."
	case strings.HasPrefix(c.Reason, "needs module "):
		return "Load the module first."
	}
	return about(c.Topic).advice
}
