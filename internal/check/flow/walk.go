// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// Walks has the pointers that a program loads from structs of the kernel, through arguments of the program, results of helpers or such
// pointers, and what it does with them.
//
// For example, file->f_path.dentry->d_inode is a step from argument 0 with the offset of f_path.dentry, and one from that with the offset
// of d_inode.
type Walks struct {
	Steps []Step // each step is behind the one it continues
	Uses  []WalkUse
}

// Step is a pointer that is loaded from a struct of the kernel.
type Step struct {
	Place
	Depth int32 // number of steps that lead here
}

// Place is an address in a struct of the kernel.
type Place struct {
	From   int32 // the index of the step to the struct; -1 if an argument or result leads to it
	Arg    int32 // the argument, if no helper returned the address
	Helper int32 // the helper that returned the address, 0 for none
	Off    int64 // bytes, without the values of the records
	Record [2]int32
}

// WalkUse is an access through a pointer that was loaded from a struct of the kernel, or a call of a helper that is given one.
type WalkUse struct {
	At bpfobj.Site
	Place
	Given   asm.Register // the argument of the helper; 0 for an access
	Size    int          // bytes of an access
	Write   bool
	Checked bool // the pointer may have been compared with 0 before
}

// Records returns the numbers of the CO-RE records whose values count to the offset.
func (p *Place) Records() (l []int) {
	for _, r := range p.Record {
		if r != 0 {
			l = append(l, int(r-1))
		}
	}
	return l
}

// maxSteps is how many loads are followed one after the other.
const maxSteps = 16

// hooked reports whether the program's arguments are those of a function of the kernel, with its types.
func hooked(s *bpfobj.Section) bool {
	if s == nil {
		return false
	}
	switch s.Kind {
	case bpfobj.AttachFunc, bpfobj.AttachModRet, bpfobj.AttachBTFTP, bpfobj.AttachLSM:
		return true
	}
	return false
}

// place returns where an instruction accesses memory through the address.
func (a address) place(in *bpfobj.Insn) Place {
	p := Place{From: -1, Off: a.off, Record: [2]int32{a.record}}
	switch a.kind {
	case ofArg:
		p.Arg = a.arg
	case ofResult:
		p.Helper = a.helper
	case ofWalk:
		p.From = a.arg
	}
	if in.Record != 0 {
		p.Record[1] = int32(in.Record)
	} else {
		p.Off += int64(in.Off)
	}
	return p
}

// walk returns the address that is loaded from a struct of the kernel.
func (f *flow) walk(a address, in *bpfobj.Insn) address {
	p := a.place(in)
	if a.kind == ofArg && !f.hooked || p.Off < 0 || p.Off > math.MaxInt32 || a.given {
		return address{}
	}
	n, ok := f.numbers[p]
	if !ok {
		s := Step{Place: p, Depth: 1}
		if p.From >= 0 {
			s.Depth += f.walks.Steps[p.From].Depth
		}
		if s.Depth > maxSteps {
			return address{}
		}
		n = int32(len(f.walks.Steps))
		f.walks.Steps, f.numbers[p] = append(f.walks.Steps, s), n
	}
	return address{kind: ofWalk, arg: n}
}

// through reports an access through an address that was loaded from a struct.
func (f *flow) through(a address, at bpfobj.Site, in *bpfobj.Insn) {
	if f.found != nil && a.kind == ofWalk && !a.given {
		f.uses[at] = WalkUse{
			At: at, Place: a.place(in), Size: in.Op.Size().Sizeof(),
			Write: in.Op.Class() != asm.LdXClass, Checked: a.checked,
		}
	}
}

// hand reports a call of a helper that is given an address that was loaded from a struct.
func (f *flow) hand(s *addresses, at bpfobj.Site, h *facts.Helper) {
	a := s.regs[h.Object.At]
	if f.found != nil && h.Object.At != 0 && a.kind == ofWalk && !a.given {
		f.uses[at] = WalkUse{At: at, Place: a.place(new(bpfobj.Insn)), Given: h.Object.At, Checked: a.checked}
	}
}

// used returns the walks with the steps that lead to uses, and no others.
func (w Walks) used() (out Walks) {
	out.Uses = w.Uses
	leads := make([]bool, len(w.Steps))
	for i := range w.Uses {
		leads[w.Uses[i].From] = true
	}
	for i, s := range slices.Backward(w.Steps) {
		if leads[i] && s.From >= 0 {
			leads[s.From] = true
		}
	}
	number := make([]int32, len(w.Steps))
	for i, s := range w.Steps {
		if !leads[i] {
			continue
		}
		if s.From >= 0 {
			s.From = number[s.From]
		}
		number[i] = int32(len(out.Steps))
		out.Steps = append(out.Steps, s)
	}
	for i := range out.Uses {
		out.Uses[i].From = number[out.Uses[i].From]
	}
	return out
}
