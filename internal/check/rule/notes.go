// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Notes returns the notes on program j, whatever the kernel. open are the loaders with a verdict that
// counts for the object.
func (o *Object) Notes(j int, open, loaders []Loader, setsMap func(name string) bool) []Finding {
	notes := slices.Concat(o.external(j, open), o.unjudged[j])
	for i := range o.Maps {
		if m := &o.Maps[i]; needsEntries(m) && o.refers[j][m.Name] && !setsMap(m.Name) {
			notes = append(notes, Finding{Code: MapNoEntries, Subject: m.Name})
		}
	}
	for _, l := range loaders {
		if slices.Contains(open, l) {
			continue
		}
		for _, note := range o.Unopened(l) {
			note.Status = OK
			notes = append(notes, note)
		}
	}
	return notes
}

// external notes uses of the running kernel's own BTF, for which a shipped one
// does not help, and names that loaders read differently.
func (o *Object) external(j int, loaders []Loader) (notes []Finding) {
	e := Evaluation{Scene: &Scene{o: o}, pr: &o.Programs[j]}
	seen := make(map[Finding]bool)
	note := func(f Finding) {
		n := f
		if n.Source = ""; !seen[n] {
			seen[n] = true
			notes = append(notes, f)
		}
	}
	if s := e.pr.Attach; s != nil {
		for l, other := range map[Loader]Loader{EbpfGo: Libbpf, Libbpf: EbpfGo} {
			if f := Untyped(e.pr, other); f.Status != OK && slices.Equal(loaders, []Loader{l}) {
				f.Status, f.Loader = OK, ""
				note(f)
			}
		}
		if what := needsOwnBTF(s); what != "" {
			note(Finding{Code: RunningKernelBTF, Subject: what})
		}
	}
	e.eachUse(func(u *use) {
		if x := e.o.extern(u.in); x != nil && x.Kind == bpfobj.ExternKsym && x.Type != 0 {
			note(Finding{Code: RunningKernelSymbol, Subject: x.Name})
		}
	})
	for _, r := range e.pr.Records {
		for _, f := range e.o.records.notes(r) {
			note(f)
		}
	}
	return notes
}
