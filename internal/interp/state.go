package interp

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfprog"
)

// state is what is known before one instruction on one path.
type state struct {
	at     bpfprog.Site
	level  Level
	regs   [10]value // r0 to r9; r10 is the frame's
	frames []frame
}

// frame is a function that is being executed.
type frame struct {
	ret   bpfprog.Site // where it returns to
	fn    int
	saved [4]value // r6 to r9 of the caller
	stack []slot   // sorted by off
}

// slot is a part of the stack of which something is known.
type slot struct {
	off  int16 // from the top, negative
	size uint8 // bytes
	val  value
}

func (s *state) clone() *state {
	c := *s
	c.frames = slices.Clone(s.frames)
	for i := range c.frames {
		c.frames[i].stack = slices.Clone(s.frames[i].stack)
	}
	return &c
}

// reg returns what is known of register r.
func (s *state) reg(r asm.Register) value {
	if r < asm.RFP {
		return s.regs[r]
	}
	return value{kind: stackPtr, base: int32(len(s.frames) - 1)}
}

// covers reports whether all that can be in o can be in s, at the same place.
func (s *state) covers(o *state) bool {
	for i := range s.regs {
		if !s.regs[i].covers(o.regs[i]) {
			return false
		}
	}
	for i := range s.frames {
		a, b := &s.frames[i], &o.frames[i]
		for j := range a.saved {
			if !a.saved[j].covers(b.saved[j]) {
				return false
			}
		}
		for _, x := range a.stack {
			y, ok := b.find(x.off, x.size)
			if !ok || !x.val.covers(y) {
				return false
			}
		}
		for _, y := range b.stack { // stack pointers must not be forgotten
			if y.val.isStack() {
				if _, ok := a.find(y.off, y.size); !ok {
					return false
				}
			}
		}
	}
	return true
}

// merge makes s cover o.
func (s *state) merge(o *state) {
	s.level = Imprecise
	for i := range s.regs {
		s.regs[i] = join(s.regs[i], o.regs[i])
	}
	for i := range s.frames {
		a, b := &s.frames[i], &o.frames[i]
		for j := range a.saved {
			a.saved[j] = join(a.saved[j], b.saved[j])
		}
		var kept []slot
		for _, x := range a.stack {
			if y, ok := b.find(x.off, x.size); ok {
				x.val = join(x.val, y)
				kept = append(kept, x)
			} else if x.val.isStack() {
				x.val = value{kind: stackAny}
				kept = append(kept, x)
			}
		}
		a.stack = kept
		for _, y := range b.stack {
			if _, ok := a.find(y.off, y.size); !ok && y.val.isStack() {
				a.set(y.off, y.size, value{kind: stackAny})
			}
		}
	}
}

func (f *frame) find(off int16, size uint8) (value, bool) {
	for _, x := range f.stack {
		if x.off == off && x.size == size {
			return x.val, true
		}
	}
	return value{}, false
}

// set notes the content of a slot, after which nothing else is known of its
// bytes.
func (f *frame) set(off int16, size uint8, v value) {
	f.forget(int64(off), int64(size))
	i, _ := slices.BinarySearchFunc(f.stack, off, func(x slot, off int16) int { return cmp.Compare(x.off, off) })
	f.stack = slices.Insert(f.stack, i, slot{off, size, v})
}

// forget drops what is known of size bytes at off, and of all in the same
// eight: a write to a part of them makes verifiers forget the whole.
func (f *frame) forget(off, size int64) {
	first, end := off&^7, (off+size+7)&^7
	f.stack = slices.DeleteFunc(f.stack, func(x slot) bool {
		return int64(x.off) < end && first < int64(x.off)+int64(x.size)
	})
}

// load returns what a load of n bytes at off gives. A part of a slot is known
// where the verifier knows it.
func (f *frame) load(off int64, n int, narrow bool) value {
	zero := 0
	for _, x := range f.stack {
		lo, hi := max(off, int64(x.off)), min(off+int64(n), int64(x.off)+int64(x.size))
		switch {
		case lo >= hi:
		case int64(x.off) == off && int(x.size) == n:
			return x.val
		case x.val.isConst() && x.val.v == 0:
			zero += int(hi - lo)
		case int64(x.off) == off && int(x.size) > n && narrow:
			return x.val.trim(n)
		}
	}
	if zero == n {
		return constant(0)
	}
	return unknown.trim(n)
}
