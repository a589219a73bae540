// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TestSectionNotes wants a note on a name that loaders read differently.
func TestSectionNotes(t *testing.T) {
	for name, want := range map[string]bool{"socket1": true, "classifier/x/y": true, "socket": false, "kprobe/x": false, "nonsense": false} {
		pr := bpfobj.Program{Section: name, Attach: bpfobj.SectionOf(name)}
		o := &Object{Code: &bpfobj.Code{Programs: []bpfobj.Program{pr}}}
		notes := o.external(0, []Loader{EbpfGo})
		if got := len(notes) == 1 && notes[0].Subject == name && notes[0].Code == SectionUnknown; got != want {
			t.Errorf("%s: %v", name, notes)
		}
	}
}
