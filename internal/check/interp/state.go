// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// state is what is known before one instruction on one path.
type state struct {
	at     bpfobj.Site
	level  Level
	regs   [10]value // r0 to r9; r10 is the frame's
	frames []frame
}

// frame is a function that is being executed.
type frame struct {
	ret   bpfobj.Site // where it returns to
	fn    int
	saved [4]value // r6 to r9 of the caller
	stack []slot   // sorted by off

	shared bool // other states have the same stack, which nobody changes then

	context *value // what a callback is given; nil for what is called by the program
}

// slot is a part of the stack of which something is known.
type slot struct {
	off  int16 // from the top, negative
	size uint8 // bytes
	val  value
}

// doubt notes that the verifier may know that it does not get here.
func (s *state) doubt() { s.level = max(s.level, Imprecise) }

// clone returns a copy, and the size of the stacks, in bytes, that the two have
// in common and s had alone.
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

// size is that of s without the stacks, in bytes.
func (s *state) size() int {
	return int(unsafe.Sizeof(*s)) + len(s.frames)*int(unsafe.Sizeof(frame{}))
}

// slots is on how many slots of the stack something is known.
func (s *state) slots() (n int) {
	for i := range s.frames {
		n += len(s.frames[i].stack)
	}
	return n
}

// own makes the stack one that may be changed.
func (f *frame) own() {
	if f.shared {
		f.stack, f.shared = slices.Clone(f.stack), false
	}
}

// reg returns what is known of register r.
func (s *state) reg(r asm.Register) value {
	if r < asm.RFP {
		return s.regs[r]
	}
	return value{kind: stackPtr, base: int32(len(s.frames) - 1)}
}

// covers reports whether all that can be in o can be in s, at the same place,
// and how many values it looked at. It calls look for each pair of them.
func (s *state) covers(o *state, look func(a, b value)) (ok bool, looks int) {
	for i := range s.regs {
		look(s.regs[i], o.regs[i])
		if !s.regs[i].covers(o.regs[i]) {
			return false, 1
		}
	}
	for i := range s.frames {
		a, b := &s.frames[i], &o.frames[i]
		looks += len(a.saved)
		for j := range a.saved {
			look(a.saved[j], b.saved[j])
			if !a.saved[j].covers(b.saved[j]) {
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
		if !coversStack(a.stack, b.stack, look) {
			return false, looks
		}
	}
	return true, looks
}

// coversStack is covers for stacks, where what is not known is left out.
func coversStack(a, b []slot, look func(a, b value)) bool {
	for _, x := range a {
		for len(b) > 0 && b[0].off < x.off {
			if b[0].val.isStack() { // stack pointers must not be forgotten
				return false
			}
			b = b[1:]
		}
		if len(b) == 0 || b[0].off != x.off || b[0].size != x.size {
			return false
		}
		if look(x.val, b[0].val); !x.val.covers(b[0].val) {
			return false
		}
		b = b[1:]
	}
	return !slices.ContainsFunc(b, func(y slot) bool { return y.val.isStack() })
}

// merge makes s cover o. It calls look for each pair of values.
func (s *state) merge(o *state, look func(a, b value)) {
	s.level = Imprecise
	for i := range s.regs {
		look(s.regs[i], o.regs[i])
		s.regs[i] = join(s.regs[i], o.regs[i])
	}
	for i := range s.frames {
		a, b := &s.frames[i], &o.frames[i]
		for j := range a.saved {
			look(a.saved[j], b.saved[j])
			a.saved[j] = join(a.saved[j], b.saved[j])
		}
		if c := b.context; c != nil && c != a.context {
			v := join(*a.context, *c)
			a.context = &v
		}
		var kept []slot
		for _, x := range a.stack {
			if y, ok := b.find(x.off, x.size); ok {
				look(x.val, y)
				x.val = join(x.val, y)
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

func (f *frame) find(off int16, size uint8) (value, bool) {
	i, ok := f.search(off)
	if !ok || f.stack[i].size != size {
		return value{}, false
	}
	return f.stack[i].val, true
}

// search returns where a slot that begins at off is, or would be.
func (f *frame) search(off int16) (int, bool) {
	return slices.BinarySearchFunc(f.stack, off, func(x slot, off int16) int { return cmp.Compare(x.off, off) })
}

// set notes the content of a slot, after which nothing else is known of its
// bytes.
func (f *frame) set(off int16, size uint8, v value) {
	f.forget(int64(off), int64(size))
	f.own()
	i, _ := f.search(off)
	f.stack = slices.Insert(f.stack, i, slot{off, size, v})
}

// forget drops what is known of size bytes at off, and of all in the same
// eight: a write to a part of them makes verifiers forget the whole.
func (f *frame) forget(off, size int64) {
	first, end := off&^7, (off+size+7)&^7
	gone := func(x slot) bool { return int64(x.off) < end && first < int64(x.off)+int64(x.size) }
	if slices.ContainsFunc(f.stack, gone) {
		f.own()
		f.stack = slices.DeleteFunc(f.stack, gone)
	}
}

// load returns what a load of n bytes at off gives, and whether that may depend on
// narrow. A part of a slot is known where the verifier knows it.
func (f *frame) load(off int64, n int, narrow bool) (v value, asked bool) {
	zero := 0
	for _, x := range f.stack {
		lo, hi := max(off, int64(x.off)), min(off+int64(n), int64(x.off)+int64(x.size))
		switch {
		case lo >= hi:
		case int64(x.off) == off && int(x.size) == n:
			return x.val, asked
		case x.val.isConst() && x.val.v == 0:
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
