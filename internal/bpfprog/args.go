package bpfprog

import "github.com/cilium/ebpf/asm"

// ArgsRead says which arguments of what it is attached to a program may read,
// where the kernel hands it an array of them: bit i stands for the i-th, the
// last for all further ones. They are all set where the array leaves the
// program's own function.
func (o *Object) ArgsRead(p *Program) (mask uint64) {
	const all = ^uint64(0)
	ctx := [16]bool{asm.R1: true} // registers that hold the array's address
	stack := make(map[int16]bool)
	code := o.Funcs[p.Fn].Insns
	for i := range code {
		in := &code[i]
		switch c := in.Op.Class(); {
		case in.Op == asm.Mov.Op(asm.RegSource):
			ctx[in.Dst] = ctx[in.Src]
		case c.IsALU():
			if ctx[in.Dst] && in.Op.ALUOp() == asm.Add { // an address within
				return all
			}
			ctx[in.Dst] = false
		case c == asm.LdXClass:
			if ctx[in.Src] && in.Off >= 0 {
				mask |= 1 << min(in.Off/8, 63)
			}
			ctx[in.Dst] = in.Src == asm.R10 && stack[in.Off]
		case c == asm.StXClass && in.Dst == asm.R10:
			stack[in.Off] = stack[in.Off] || ctx[in.Src]
		case c == asm.StXClass && ctx[in.Src]:
			return all
		case in.Op == OpCall:
			if in.passesArgs(&ctx) {
				return all
			}
			clear(ctx[asm.R0 : asm.R5+1])
		case in.Op == OpLdImm64:
			ctx[in.Dst] = false
		}
	}
	return mask
}

// passesArgs reports whether a call lets go of the array, or is of a helper
// that reads it.
func (in *Insn) passesArgs(ctx *[16]bool) bool {
	if !in.IsHelper() {
		for r := asm.R1; r <= asm.R5; r++ {
			if ctx[r] {
				return true
			}
		}
		return false
	}
	switch asm.BuiltinFunc(in.Imm) {
	case asm.FnTailCall, asm.FnGetFuncArg, asm.FnGetFuncRet, asm.FnGetFuncArgCnt:
		return true
	}
	return false
}
