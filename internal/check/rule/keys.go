// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"fmt"
	"strconv"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// What findings on code depend on, so that kernels on which it is equal share explorations and findings.

// Input returns what exploring the object's programs depends on, except what is known from other explorations.
func (p *Pairing) Input() interp.Input {
	return interp.Input{
		Features: p.k.features,
		Record:   p.decisions.value,
		Ksym:     p.ksym,
		Kconfig:  func(x *bpfobj.Extern) interp.Number { return p.k.kconfig(p.o, x) },
	}
}

// Value returns what the loader writes for a record, 0 where it writes nothing.
func (p *Pairing) Value(record int) uint64 { return p.decisions[record].New }

// Explored returns what exploring a function depends on, without what is relevant and without its callees.
func (p *Pairing) Explored(fn int) (b []byte) {
	for _, r := range p.o.recordsOf[fn] {
		b = strconv.AppendBool(b, p.decisions[r].Result.OK())
	}
	for i := range p.o.uses[fn] {
		switch x := p.o.extern(p.o.uses[fn][i].in); {
		case x == nil:
		case x.Kind == bpfobj.ExternKconfig:
			b = fmt.Appendf(b, " %v", p.k.kconfig(p.o, x))
		case x.Kind == bpfobj.ExternKsym:
			b = fmt.Appendf(b, " %v", p.ksym(x))
		}
	}
	return b
}
