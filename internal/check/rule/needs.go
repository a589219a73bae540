// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// NewPairing judges what the object needs for any of its programs, except what the loader sets up. decisions are nil if the object is
// not for the kernel.
func NewPairing(o *Object, k *Inventory, d Decisions, l Loading) *Pairing {
	p := &Pairing{Loading: l, o: o, k: k, decisions: d}
	if !p.ForKernel() {
		return p
	}
	for i := range o.Externs { // before several goroutines look for them
		if x := &o.Externs[i]; x.Kind == bpfobj.ExternKsym && x.Type != 0 {
			p.missing(x)
		}
	}
	if l.WithModules != nil {
		return p // judged there
	}
	p.needed = p.definitions()
	var all []Finding
	if p.counts(Aya) {
		all = p.ayaRefusal()
	} else {
		p.needed = append(p.needed, p.opening()...)
		all = slices.Concat(p.strong(), p.typedKsyms())
	}
	for _, l := range p.Loaders {
		all = append(all, o.Unopened(l)...)
	}
	for _, f := range all {
		p.needed = append(p.needed, neededPart{f.Subject, f})
	}
	return p
}

// Needs returns findings on what the object needs, whichever of its programs are loaded.
func (p *Pairing) Needs() (all []Finding) {
	if !p.ForKernel() {
		return []Finding{p.o.otherMachine()}
	}
	for _, w := range p.needed {
		all = append(all, w.f)
	}
	return all
}

// ofProgram returns a finding on an object as a finding on one of its programs, and
// whether it counts there. refers says that the program's code refers to the subject.
func (p *Pairing) ofProgram(f Finding, refers bool) (Finding, bool) {
	switch {
	case refers, f.OfObject(), p.counts(Aya):
	case f.Loader == EbpfGo:
		return f, false
	default:
		f.Loader = Libbpf
	}
	switch {
	case p.counts(Libbpf):
	case p.counts(Aya) && f.Stops == ObjectStops:
		f.Stops = LoadStops
	default:
		f.Stops = NothingStops
	}
	return f, f.Loader == "" || p.counts(f.Loader)
}
