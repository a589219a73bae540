// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

func (x *explorer) load(s *state, in *bpfobj.Insn) value {
	p := s.reg(in.Src)
	v := x.loadFrom(s, in, p)
	if !v.isConst() {
		v.lost = v.lost || p.lost
	}
	return v
}

func (x *explorer) loadFrom(s *state, in *bpfobj.Insn, p value) value {
	off, n := int64(in.Off), in.Op.Size().Sizeof()
	x.access(s, p)
	if in.Op.Mode() != asm.MemMode {
		return unknown
	}
	if in.Record != 0 { // a field of a kernel struct
		return x.number().trim(n)
	}
	switch p.kind {
	case stackPtr:
		f := &s.frames[p.base]
		x.countParts(f, int64(p.bits)+off, n)
		v, narrow := f.load(int64(p.bits)+off, n, x.in.Has(Narrow) && !x.bigEndian())
		if narrow {
			x.asked |= Narrow
		}
		if in.Src != asm.RFP && !v.isConst() && words(int64(p.bits)+off, int64(n))&^x.codeOf(f.fn).taken != 0 {
			v.lost = true
		}
		return v
	case stackAny:
		if n == 8 && s.spilled() {
			return value{kind: stackAny}
		}
	case dataPtr:
		return x.loadData(p, off, n)
	default:
		return x.number().trim(n)
	}
	return unknown.trim(n)
}

// access notes an access through p if p is a moved pointer to the context.
func (x *explorer) access(s *state, p value) {
	if p.kind == ctxPtr && p.bits != 0 {
		x.note(s, Moved)
	}
}

// loadData reads a read-only data section or a kconfig variable. The base of p is an index into Data, followed by Externs.
func (x *explorer) loadData(p value, off int64, n int) value {
	off += int64(p.bits)
	if e := int(p.base) - len(x.object.Data); e >= 0 {
		return x.loadKconfig(&x.object.Externs[e], off, n)
	}
	d := &x.object.Data[p.base]
	variable := d.Variable(off)
	switch {
	case !x.knows(Rodata):
		return x.perhapsConstant(n)
	case x.in.Settable(variable):
		return value{mask: ^uint64(0), taint: true}.trim(n)
	case off < 0 || off > int64(len(d.Bytes)-n):
		return unknown.trim(n)
	}
	var v uint64
	for _, b := range d.Bytes[off : off+int64(n)] {
		v = v<<8 | uint64(b)
	}
	if !x.bigEndian() {
		v = bits.ReverseBytes64(v) >> (64 - 8*n)
	}
	c := constant(v)
	if variable != "" {
		c.src = x.source(variable, v)
	}
	return c
}

func (x *explorer) loadKconfig(e *bpfobj.Extern, off int64, n int) value {
	if !x.knows(Rodata) {
		return x.perhapsConstant(n)
	}
	v := x.in.Kconfig(e).value()
	if off != 0 || n > min(e.Size, 8) { // an unknown number, but constant on every load
		v = value{mask: ^uint64(0), taint: true}
	}
	v = v.trim(n)
	v.src = x.source(e.Name, v.bits)
	return v
}

// perhapsConstant is what verifiers without Rodata read. Where that is not known, it may be a constant.
func (x *explorer) perhapsConstant(n int) value {
	return value{mask: math.MaxUint64, taint: x.knows(MaybeRodata)}.trim(n)
}

func (x *explorer) bigEndian() bool { return x.object.Order == binary.BigEndian }

func (x *explorer) store(s *state, in *bpfobj.Insn) {
	if in.Op.Mode() != asm.MemMode {
		x.atomic(s, in)
		return
	}
	p, off, n := s.reg(in.Dst), int64(in.Off), in.Op.Size().Sizeof()
	x.access(s, p)
	at := int64(p.bits) + off
	v, zero := x.stored(s, in, at%8 == 0)
	s.clobber(p, off, int64(n))
	if p.kind != stackPtr {
		return
	}
	if in.Op.Class() == asm.StClass {
		x.asked |= StImm
	}
	keep := (n == 8 || x.knows(Partial)) && at%8 == 0 || zero
	v = x.afterSpill(v, zero)
	if keep && at >= -512 && at < 0 && !(v.isBlank() && !v.taint && !v.lost) {
		s.frames[p.base].set(int16(at), uint8(n), v)
	}
}

// stored returns the value that a store writes to an address, which may be aligned to 8 bytes. zero reports that the whole register is 0:
// verifiers do not see that a half is 0.
func (x *explorer) stored(s *state, in *bpfobj.Insn, aligned bool) (v value, zero bool) {
	n := in.Op.Size().Sizeof()
	if in.Op.Class() == asm.StClass {
		if !x.in.Has(StImm) {
			return unknown, false
		}
		return constant(uint64(in.Imm)).trim(n), in.Imm == 0
	}
	v = s.reg(in.Src)
	if v.gaps != 0 { // verifiers may learn of the copy
		v.gaps = 0
		s.learn(in.Src, v)
	}
	if n < 8 || !aligned {
		x.counts(v)
	}
	zero = v.isConst() && v.bits == 0
	if n < 8 && v.kind != scalar {
		v = value{mask: ^uint64(0), lost: v.lost}
	}
	return v.trim(n), zero
}

// afterSpill returns what the verifier knows of a value that was stored on the stack.
func (x *explorer) afterSpill(v value, zero bool) value {
	switch fixed := v.isConst() || v.taint; {
	case v.kind != scalar || v.isBlank() && !fixed:
	case fixed && !x.knows(Constants):
		return value{mask: math.MaxUint64, lost: zero}
	case !fixed && !x.knows(Partly):
		return value{mask: math.MaxUint64, lost: v.lost}
	}
	return v
}

// atomic executes a store of another mode.
func (x *explorer) atomic(s *state, in *bpfobj.Insn) {
	plain := *in
	switch in.Imm {
	case bpfobj.StoreRelease:
		plain.Op = asm.StoreMemOp(in.Op.Size())
		x.store(s, &plain)
	case bpfobj.LoadAcquire:
		plain.Op = asm.LoadMemOp(in.Op.Size())
		s.write(in.Dst, x.load(s, &plain))
	default:
		x.access(s, s.reg(in.Dst))
		s.clobber(s.reg(in.Dst), int64(in.Off), int64(in.Op.Size().Sizeof()))
		s.write(in.Src, unknown)
		s.regs[asm.R0] = unknown
	}
}
