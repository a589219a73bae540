// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/limits"
)

// line is where the code from one slot of a section on comes from.
type line struct {
	insn int
	file uint32 // offset of the name in the BTF's strings
	line uint32
}

// readLines reads the line information of .BTF.ext, as far as it is sound; to
// say what is wrong with that section is for those who read the records.
func (p *parser) readLines() error {
	s := p.f.Section(".BTF.ext")
	if s == nil || p.BTF == nil {
		return nil
	}
	b, err := p.bytes(s)
	if err != nil || len(b) < 24 {
		return nil
	}
	u32 := func(at uint64) uint32 { return p.Order.Uint32(b[at:]) }
	u64 := func(at uint64) uint64 { return uint64(u32(at)) }
	start := u64(4) + u64(16)
	end := start + u64(20)
	if end > uint64(len(b)) || end < start+4 {
		return nil
	}
	size := u64(start)
	if size < 16 || size%4 != 0 {
		return nil
	}
	files := make(map[uint32]bool) // whether a name is short enough for one
	for at := start + 4; at+8 <= end; {
		name, n := string(p.BTF.Name(u32(at))), u32(at+4)
		if !p.spent.names.Step(1 + len(name)) {
			return fmt.Errorf(".BTF.ext: %w", p.spent.names.Err())
		}
		for at += 8; n > 0 && at+size <= end; n, at = n-1, at+size {
			if !p.spent.steps.Step(1) {
				return fmt.Errorf(".BTF.ext: %w", p.spent.steps.Err())
			}
			file := u32(at + 4)
			known, ok := files[file]
			if !ok {
				n := len(p.BTF.Name(file))
				if !p.spent.names.Step(1 + n) {
					return fmt.Errorf(".BTF.ext: %w", p.spent.names.Err())
				}
				known = n <= limits.PathBytes
				files[file] = known
			}
			if known {
				p.lines[name] = append(p.lines[name], line{int(u32(at) / asm.InstructionSize), file, u32(at+12) >> 10})
			}
		}
	}
	for _, l := range p.lines {
		slices.SortStableFunc(l, func(a, b line) int { return cmp.Compare(a.insn, b.insn) })
	}
	return nil
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
