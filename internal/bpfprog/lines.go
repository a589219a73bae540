package bpfprog

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/cilium/ebpf/asm"
)

// line is where the code from one slot of a section on comes from.
type line struct {
	insn int
	file uint32 // offset of the name in the BTF's strings
	line uint32
}

// readLines reads the line information of .BTF.ext, as far as it is sound; to
// say what is wrong with that section is for those who read the records.
func (p *parser) readLines() {
	s := p.f.Section(".BTF.ext")
	if s == nil || p.BTF == nil {
		return
	}
	b, err := p.bytes(s)
	if err != nil || len(b) < 24 {
		return
	}
	u32 := func(at uint64) uint32 { return p.Order.Uint32(b[at:]) }
	u64 := func(at uint64) uint64 { return uint64(u32(at)) }
	start := u64(4) + u64(16)
	end := start + u64(20)
	if end > uint64(len(b)) || end < start+4 {
		return
	}
	size := u64(start)
	if size < 16 || size%4 != 0 {
		return
	}
	for at := start + 4; at+8 <= end; {
		name, n := string(p.BTF.Name(u32(at))), u32(at+4)
		for at += 8; n > 0 && at+size <= end; n, at = n-1, at+size {
			p.lines[name] = append(p.lines[name], line{int(u32(at) / asm.InstructionSize), u32(at + 4), u32(at+12) >> 10})
		}
	}
	for _, l := range p.lines {
		slices.SortStableFunc(l, func(a, b line) int { return cmp.Compare(a.insn, b.insn) })
	}
}

// Source returns file:line of an instruction, "" where it is not known.
func (o *Object) Source(s Site) string {
	f := &o.Funcs[s.Fn]
	l := o.lines[f.Section]
	i, found := slices.BinarySearchFunc(l, f.Start+s.Insn, func(x line, insn int) int { return cmp.Compare(x.insn, insn) })
	if !found {
		i--
	}
	if i < 0 || l[i].insn < f.Start {
		return ""
	}
	return string(o.BTF.Name(l[i].file)) + ":" + strconv.FormatUint(uint64(l[i].line), 10)
}
