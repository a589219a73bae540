// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/asm"
)

// enumNames are the enums of the kernel's interface.
var enumNames = [...]string{
	enumHelper: "bpf_func_id", enumMap: "bpf_map_type", enumProg: "bpf_prog_type", enumAttach: "bpf_attach_type", enumLink: "bpf_link_type",
	enumCond: "bpf_cond_pseudo_jmp", enumMapFlag: "BPF_F_NO_PREALLOC", // which has no name, but that in it
}

// enumNumber returns the index of an enum in enumNames, which has it.
func enumNumber(name string) int { return slices.Index(enumNames[:], name) }

const (
	enumHelper = iota
	enumMap
	enumProg
	enumAttach
	enumLink
	enumCond
	enumMapFlag
)

// helperName is a helper's name in C.
func helperName(id int64) string {
	s := asm.BuiltinFunc(id).String()
	if !strings.HasPrefix(s, "Fn") {
		return fmt.Sprintf("#%d", id)
	}
	return fmt.Sprintf("bpf_%s", snake(s[2:]))
}

// helperWitness is the enumerator of a helper.
func helperWitness(id int64) string {
	enum, enumerator := enumeratorOf(helperName(id))
	if enum != enumHelper { // none that is known
		return enumNames[enumHelper] + ":" + strings.TrimPrefix(helperName(id), "#")
	}
	return enumNames[enum] + ":" + enumerator
}

// snake turns MapLookupElem into map_lookup_elem.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// enumPrefixes begin the names in the enums of the kernel's interface. What has none of them is a type of attachment.
var enumPrefixes = map[string]int{"BPF_FUNC_": enumHelper, "BPF_MAP_TYPE_": enumMap, "BPF_PROG_TYPE_": enumProg, "BPF_LINK_TYPE_": enumLink}

// enumeratorOf returns which enumerator a part of the kernel's interface is, of a helper "bpf_loop".
func enumeratorOf(name string) (enum int, enumerator string) {
	if helper, ok := strings.CutPrefix(name, "bpf_"); ok {
		return enumHelper, "BPF_FUNC_" + helper
	}
	for prefix, enum := range enumPrefixes {
		if strings.HasPrefix(name, prefix) {
			return enum, name
		}
	}
	return enumAttach, name
}

// enumerator returns a finding if the BTF has the enum of a part of the kernel's interface, and the enum does not have it. The BTF of
// a whole kernel without the enum of links is from before links.
func (k *Inventory) enumerator(name string, code Code) Finding {
	enum, enumerator := enumeratorOf(name)
	if !k.lacks(enum, enumerator) && !(enum == enumLink && k.enums[enum] == nil && k.whole) {
		return Finding{}
	}
	return Finding{Status: Fails, Code: code, Subject: name, Args: Args{Decided: ByWitness, Witness: enumNames[enum] + ":" + enumerator}}
}
