// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TestSectionNotes wants a note on a name that loaders read differently.
func TestSectionNotes(t *testing.T) {
	for name, want := range map[string]struct {
		loader Loader // the one that knows it
		code   Code
	}{
		"socket1": {EbpfGo, SectionUnknown}, "classifier/x/y": {EbpfGo, SectionUnknown}, "socket": {}, "kprobe/x": {}, "nonsense": {},
		"tp.s/x/y": {Libbpf, SectionNewer}, "fsession.multi/x": {Libbpf, SectionNewer},
	} {
		pr := bpfobj.Program{Section: name, Attach: bpfobj.SectionOf(name)}
		o := &Object{Code: &bpfobj.Code{Programs: []bpfobj.Program{pr}}}
		for _, l := range []Loader{EbpfGo, Libbpf, Aya} {
			notes := slices.DeleteFunc(o.external(0, []Loader{l}), func(f Finding) bool { return f.Code == RunningKernelBTF })
			code := Code("")
			if len(notes) == 1 && notes[0].Subject == name {
				code = notes[0].Code
			}
			if code != want.code && l == want.loader || l != want.loader && len(notes) > 0 {
				t.Errorf("%s with %s: %v", name, l, notes)
			}
		}
	}
}
