// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// helperName is a helper's name in C.
func helperName(id int64) string {
	s := asm.BuiltinFunc(id).String()
	if !strings.HasPrefix(s, "Fn") {
		return fmt.Sprintf("#%d", id)
	}
	return fmt.Sprintf("bpf_%s", snake(s[2:]))
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

// interfaces judges the types of programs, attachments and links by the enums in the
// kernel's BTF. Without an enum, nothing is judged.
func (e *evaluation) interfaces() {
	if e.k.enums[enumHelper] == nil {
		e.add(Finding{Status: Unknown, Code: AnalysisNoHelpers, Subject: "helpers"})
	}
	s := e.pr.Attach
	if s == nil {
		e.add(Finding{Status: Unknown, Code: AnalysisSection, Subject: e.pr.Section})
		return
	}
	if name := "BPF_PROG_TYPE_" + s.ProgType; e.k.lacks(enumProg, name) {
		e.add(Finding{Status: Fails, Code: ProgTypeMissing, Subject: name})
	}
	if s.Type != "" && e.k.lacks(enumAttach, s.Type) && !s.Optional {
		// Kernels do not look at it when they load programs of kprobes: 5.10 loads those of kprobe.multi.
		e.add(Finding{Status: Fails, Code: AttachTypeMissing, Subject: s.Type, Attach: s.ProgType == "KPROBE"})
	}
	e.links(s)
}

// links judges the types of links that attaching takes.
func (e *evaluation) links(s *bpfobj.Section) {
	l := linkTypes[s.Type]
	if l == "" || !e.k.lacks(enumLink, l) {
		return
	}
	f := Finding{Status: Fails, Code: LinkTypeMissing, Subject: l, Attach: true}
	if l == linkTCX {
		f.Status, f.Code = MayFail, LinkTypeTCX
	}
	e.add(f)
}

const linkTCX = "BPF_LINK_TYPE_TCX"

// linkTypes are the types of links that attachments cannot do without.
var linkTypes = map[string]string{
	"BPF_TRACE_KPROBE_MULTI":   "BPF_LINK_TYPE_KPROBE_MULTI",
	"BPF_TRACE_KPROBE_SESSION": "BPF_LINK_TYPE_KPROBE_MULTI",
	"BPF_TRACE_UPROBE_MULTI":   "BPF_LINK_TYPE_UPROBE_MULTI",
	"BPF_TRACE_UPROBE_SESSION": "BPF_LINK_TYPE_UPROBE_MULTI",
	"BPF_NETFILTER":            "BPF_LINK_TYPE_NETFILTER",
	"BPF_TCX_INGRESS":          linkTCX,
	"BPF_TCX_EGRESS":           linkTCX,
	"BPF_NETKIT_PRIMARY":       "BPF_LINK_TYPE_NETKIT",
	"BPF_NETKIT_PEER":          "BPF_LINK_TYPE_NETKIT",
}

func hasValue(m map[string]uint64, v uint64) bool {
	for n, x := range m {
		if x == v && !strings.HasPrefix(n, "__MAX") {
			return true
		}
	}
	return false
}
