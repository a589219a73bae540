// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// state is what is known before one instruction on one path.
type state struct {
	at     bpfobj.Site
	level  Level
	regs   [10]value // r0 to r9; r10 depends on the frame
	frames []frame
}

// frame is a function that is being executed.
type frame struct {
	ret   bpfobj.Site // return address
	fn    int
	saved [4]value // caller's r6 to r9
	stack []slot   // known slots, sorted by off

	shared bool // other states share stack, so it must not be changed

	context *value // argument of a callback; nil for a function that the program calls
}

// slot is a part of the stack.
type slot struct {
	off  int16 // offset from the top, negative
	size uint8 // bytes
	val  value
}

// doubt notes that the verifier may know that this path is impossible.
func (s *state) doubt() { s.level = max(s.level, Imprecise) }

// clone returns a copy, and the size in bytes of the stacks that s alone had and now shares.
func (s *state) clone() (c *state, bytes int) {
	for i := range s.frames {
		if f := &s.frames[i]; !f.shared {
			f.shared = true
			bytes += cap(f.stack) * int(unsafe.Sizeof(slot{}))
		}
	}
	t := *s
	t.frames = slices.Clone(s.frames)
	return &t, bytes
}

// size is the size of s in bytes, without the stacks.
func (s *state) size() int {
	return int(unsafe.Sizeof(*s)) + len(s.frames)*int(unsafe.Sizeof(frame{}))
}

// slots returns the number of known slots.
func (s *state) slots() (n int) {
	for i := range s.frames {
		n += len(s.frames[i].stack)
	}
	return n
}

var seed = maphash.MakeSeed()

// calls is a hash of the calls that lead to s.
func (s *state) calls() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range s.frames {
		maphash.WriteComparable(&h, s.frames[i].ret)
		maphash.WriteComparable(&h, s.frames[i].fn)
	}
	return h.Sum64()
}

// reg returns what is known of a register.
func (s *state) reg(r asm.Register) value {
	if r < asm.RFP {
		return s.regs[r]
	}
	return value{kind: stackPtr, base: int32(len(s.frames) - 1)}
}

func (s *state) write(r asm.Register, v value) {
	if r < asm.RFP {
		s.regs[r] = v
	}
}

// covers reports whether s includes everything that is possible in o, at the same place, and how many values it compared. It
// calls look for each pair of values that differ.
func (s *state) covers(o *state, look func(a, b value)) (ok bool, looks int) {
	covers := func(a, b *value) bool {
		if *a == *b {
			return true
		}
		look(*a, *b)
		return a.covers(*b)
	}
	for i := range s.regs {
		if !covers(&s.regs[i], &o.regs[i]) {
			return false, 1
		}
	}
	for i := range s.frames {
		a, b := &s.frames[i], &o.frames[i]
		looks += len(a.saved)
		for j := range a.saved {
			if !covers(&a.saved[j], &b.saved[j]) {
				return false, looks
			}
		}
		if c := b.context; c != nil && c != a.context && !a.context.covers(*c) {
			return false, looks
		}
		if a.shared && b.shared && len(a.stack) == len(b.stack) && (len(a.stack) == 0 || &a.stack[0] == &b.stack[0]) {
			continue
		}
		looks += len(a.stack) + len(b.stack)
		if !coversStack(a.stack, b.stack, covers) {
			return false, looks
		}
	}
	return true, looks
}

func coversStack(a, b []slot, covers func(a, b *value) bool) bool {
	for i := range a {
		x := &a[i]
		for len(b) > 0 && b[0].off < x.off {
			if b[0].val.isStack() { // stack pointers must not be forgotten
				return false
			}
			b = b[1:]
		}
		if len(b) == 0 || b[0].off != x.off || b[0].size != x.size {
			if x.val.isBlank() {
				continue
			}
			return false
		}
		if !covers(&x.val, &b[0].val) {
			return false
		}
		b = b[1:]
	}
	return !slices.ContainsFunc(b, func(y slot) bool { return y.val.isStack() })
}

// merge makes s cover o. It calls look for each pair of values.
func (s *state) merge(o *state, look func(a, b value)) {
	s.level = Imprecise
	merge := func(a *value, b value) {
		look(*a, b)
		*a = join(*a, b)
	}
	for i := range s.regs {
		merge(&s.regs[i], o.regs[i])
	}
	for i := range s.frames {
		a, b := &s.frames[i], &o.frames[i]
		for j := range a.saved {
			merge(&a.saved[j], b.saved[j])
		}
		if c := b.context; c != nil && c != a.context {
			v := join(*a.context, *c)
			a.context = &v
		}
		kept := a.stack[:0]
		if a.shared {
			kept = make([]slot, 0, len(a.stack))
		}
		for _, x := range a.stack {
			if y, ok := b.find(x.off, x.size); ok {
				merge(&x.val, y)
				kept = append(kept, x)
			} else if x.val.isStack() {
				x.val = value{kind: stackAny}
				kept = append(kept, x)
			}
		}
		a.stack, a.shared = kept, false
		for _, y := range b.stack {
			if _, ok := a.find(y.off, y.size); !ok && y.val.isStack() {
				a.set(y.off, y.size, value{kind: stackAny})
			}
		}
	}
}

// bury replaces pointers into a frame that has ended, in r0 and on the stacks of the callers; their saved registers are older.
// The next call may reuse the place, so stores there still matter.
func (s *state) bury() {
	isDead := func(v value) bool { return v.kind == stackPtr && int(v.base) >= len(s.frames) }
	if isDead(s.regs[asm.R0]) {
		s.regs[asm.R0] = value{kind: stackAny}
	}
	for i := range s.frames {
		f := &s.frames[i]
		for k := range f.stack {
			if isDead(f.stack[k].val) {
				f.own()
				f.stack[k].val = value{kind: stackAny}
			}
		}
	}
}

// clobberCall forgets the registers that a call does not preserve.
func (s *state) clobberCall() {
	for r := asm.R0; r <= asm.R5; r++ {
		s.regs[r] = unknown
	}
}

// clobber forgets what a store of n bytes through p overwrites.
func (s *state) clobber(p value, off, n int64) {
	switch p.kind {
	case stackPtr:
		s.frames[p.base].forget(int64(p.bits)+off, n)
	case stackAny:
		for i := range s.frames {
			s.frames[i].stack, s.frames[i].shared = nil, false
		}
	}
}

// forgetAll forgets the frame that p points into.
func (s *state) forgetAll(p value) {
	if p.kind == stackPtr {
		s.frames[p.base].stack, s.frames[p.base].shared = nil, false
		return
	}
	s.clobber(p, 0, 0)
}

// spilled reports whether a stack pointer is on the stack.
func (s *state) spilled() bool {
	for i := range s.frames {
		if slices.ContainsFunc(s.frames[i].stack, func(x slot) bool { return x.val.isStack() }) {
			return true
		}
	}
	return false
}

// own makes the stack one that may be changed.
func (f *frame) own() {
	if f.shared {
		f.stack, f.shared = slices.Clone(f.stack), false
	}
}

func (f *frame) find(off int16, size uint8) (value, bool) {
	i, ok := f.search(off)
	if !ok || f.stack[i].size != size {
		return value{}, false
	}
	return f.stack[i].val, true
}

// search returns the index of the slot at off, or where it would be inserted.
func (f *frame) search(off int16) (int, bool) {
	return slices.BinarySearchFunc(f.stack, off, func(x slot, off int16) int { return cmp.Compare(x.off, off) })
}

// set sets a slot and forgets what else is known of its bytes.
func (f *frame) set(off int16, size uint8, v value) {
	f.forget(int64(off), int64(size))
	f.own()
	i, _ := f.search(off)
	f.stack = slices.Insert(f.stack, i, slot{off, size, v})
}

// forget forgets size bytes at off, and all in the same eight: verifiers forget the whole after a write to a part.
func (f *frame) forget(off, size int64) {
	first, end := off&^7, (off+size+7)&^7
	f.delete(func(x slot) bool { return int64(x.off) < end && first < int64(x.off)+int64(x.size) })
}

func (f *frame) delete(gone func(slot) bool) {
	if slices.ContainsFunc(f.stack, gone) {
		f.own()
		f.stack = slices.DeleteFunc(f.stack, gone)
	}
}

// load returns the result of a load of n bytes at off, and whether it may depend on narrow. A part of a slot is known if the
// verifier knows it.
func (f *frame) load(off int64, n int, narrow bool) (v value, asked bool) {
	zero := 0
	for _, x := range f.stack {
		lo, hi := max(off, int64(x.off)), min(off+int64(n), int64(x.off)+int64(x.size))
		switch {
		case lo >= hi:
		case int64(x.off) == off && int(x.size) == n:
			return x.val, asked
		case x.val.isConst() && x.val.bits == 0:
			zero += int(hi - lo)
		case int64(x.off) == off && int(x.size) > n:
			if asked = true; narrow {
				return x.val.trim(n), asked
			}
		}
	}
	if zero == n {
		return constant(0), asked
	}
	return unknown.trim(n), asked
}
