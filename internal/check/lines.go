package check

import (
	"cmp"
	"slices"
	"strconv"
)

// line is where the code from one instruction of a section on comes from.
type line struct {
	insn   int
	source string // file:line
}

// readLines reads the line information of .BTF.ext, as far as it is sound;
// what is wrong with that section, relolog reports.
func (p *parser) readLines() {
	s := p.f.Section(".BTF.ext")
	if s == nil || p.btf == nil {
		return
	}
	b, err := p.bytes(s)
	if err != nil || len(b) < 24 {
		return
	}
	u32 := func(at uint64) uint64 { return uint64(p.order.Uint32(b[at:])) }
	start := u32(4) + u32(16)
	end := start + u32(20)
	if end > uint64(len(b)) || end < start+4 {
		return
	}
	size := u32(start)
	if size < 16 || size%4 != 0 {
		return
	}
	for at := start + 4; at+8 <= end; {
		name, n := string(p.btf.Name(uint32(u32(at)))), u32(at+4)
		for at += 8; n > 0 && at+size <= end; n, at = n-1, at+size {
			file := p.btf.Name(uint32(u32(at + 4)))
			src := string(file) + ":" + strconv.FormatUint(u32(at+12)>>10, 10)
			p.lines[name] = append(p.lines[name], line{int(u32(at) / insnSize), src})
		}
	}
	for _, l := range p.lines {
		slices.SortStableFunc(l, func(a, b line) int { return cmp.Compare(a.insn, b.insn) })
	}
}

// source returns file:line of an instruction, "" where it is not known.
func (o *Object) source(s site) string {
	f := &o.funcs[s.fn]
	l := o.lines[f.section]
	i, found := slices.BinarySearchFunc(l, f.start+s.insn, func(x line, insn int) int { return cmp.Compare(x.insn, insn) })
	if !found {
		i--
	}
	if i < 0 || l[i].insn < f.start {
		return ""
	}
	return l[i].source
}
