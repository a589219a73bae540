// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"fmt"
	"slices"
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

// NeedsExploration reports whether findings on the program's own kind depend on what an exploration finds.
func (e *Evaluation) NeedsExploration() bool {
	return e.may != nil || slices.ContainsFunc(e.kind, func(a absence) bool { return !a.anyhow })
}

// Key returns what findings on the program's code depend on in addition to its functions, nil for nothing. number numbers findings.
func (e *Evaluation) Key(number func(Finding) int32) (b []byte) {
	if e.may != nil {
		b = fmt.Appendf(b, "%d %v", number(e.may.f), *e.may)
	}
	for _, a := range e.kind {
		b = a.appendKey(b, number)
	}
	return b
}

// appendKey appends what identifies an absence.
func (a *absence) appendKey(b []byte, number func(Finding) int32) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(a.at.Fn)), uint64(a.at.Insn))
	b = strconv.AppendBool(append(b, byte(a.flaw)), a.anyhow)
	return binary.NativeEndian.AppendUint32(b, uint32(number(a.f)))
}

// FunctionKeys returns what exploring a function depends on, without what is relevant and without its callees, and what findings on its
// instructions depend on, nil for no findings.
func (p *Pairing) FunctionKeys(fn int, number func(Finding) int32) (explored, absences []byte) {
	p.absences(fn, func(a absence) { absences = a.appendKey(absences, number) })
	return p.explored(fn), absences
}

// explored returns what exploring a function depends on, without what is relevant.
func (p *Pairing) explored(fn int) (b []byte) {
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
