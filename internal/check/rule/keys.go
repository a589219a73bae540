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
func (c Scenes) Input() interp.Input {
	s := c[0]
	return interp.Input{
		Features: s.k.features,
		Record:   s.decisions.value,
		Ksym:     s.ksym,
		Kconfig:  func(x *bpfobj.Extern) interp.Number { return s.k.kconfig(s.o, x) },
	}
}

// Value returns what the loader writes for a record, 0 where it writes nothing.
func (c Scenes) Value(record int) uint64 { return c[0].decisions[record].New }

// NeedsExploration reports whether findings on the program's own kind depend on what an exploration finds.
func (p *Program) NeedsExploration() bool {
	return p.may != nil || slices.ContainsFunc(p.kind, func(a absence) bool { return !a.anyhow })
}

// Key returns what findings on the program's code depend on in addition to its functions, nil for nothing. number numbers findings.
func (p *Program) Key(number func(Finding) int32) (b []byte) {
	if p.may != nil {
		b = fmt.Appendf(b, "%d %v", number(p.may.f), *p.may)
	}
	for _, a := range p.kind {
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

// FunctionKeys returns keys for the exploration of a function, without its callees and without what is relevant, and for the findings on its
// instructions, nil if there are none.
func (c Scenes) FunctionKeys(fn int, number func(Finding) int32) (explored, absences []byte) {
	c.absences(fn, func(a absence) { absences = a.appendKey(absences, number) })
	return c[0].explored(fn), absences
}

// explored returns what exploring a function depends on, without what is relevant.
func (s *Scene) explored(fn int) (b []byte) {
	for _, r := range s.o.recordsOf[fn] {
		b = strconv.AppendBool(b, s.decisions[r].Result.OK())
	}
	for i := range s.o.uses[fn] {
		switch x := s.o.extern(s.o.uses[fn][i].in); {
		case x == nil:
		case x.Kind == bpfobj.ExternKconfig:
			b = fmt.Appendf(b, " %v", s.k.kconfig(s.o, x))
		case x.Kind == bpfobj.ExternKsym:
			b = fmt.Appendf(b, " %v", s.ksym(x))
		}
	}
	return b
}
