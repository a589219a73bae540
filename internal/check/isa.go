package check

import "fmt"

// isa is a group of instructions that came together.
type isa uint8

const (
	isaJMP32 isa = iota
	isaAtomics
	isaV4
	isaMayGoto
	isaArena
	isaAcqRel
	isaCount
)

// isas says when the groups came, and what in a kernel's BTF came with them:
// the opcodes themselves are macros, which BTF does not have.
var isas = [isaCount]struct {
	name   string
	since  uint64 // as LINUX_KERNEL_VERSION
	enum   int
	value  string
	direct bool // the value is a part of the same feature: nobody takes one without the other
}{
	isaJMP32:   {"32-bit jumps", 5<<16 | 1<<8, enumHelper, "BPF_FUNC_spin_lock", false},
	isaAtomics: {"atomic operations", 5<<16 | 12<<8, enumHelper, "BPF_FUNC_check_mtu", false},
	isaV4:      {"cpu v4", 6<<16 | 6<<8, enumAttach, "BPF_TRACE_UPROBE_MULTI", false},
	isaMayGoto: {"may_goto", 6<<16 | 9<<8, enumCond, "BPF_MAY_GOTO", true},
	isaArena:   {"addr_space_cast", 6<<16 | 9<<8, enumMap, "BPF_MAP_TYPE_ARENA", true},
	isaAcqRel:  {"load-acquire and store-release", 6<<16 | 15<<8, enumField, "BPF_RES_SPIN_LOCK", false},
}

// newer is an instruction that not every kernel knows.
type newer struct {
	group  isa
	name   string
	static bool // verifiers that do not know it refuse it wherever it is, reached or not
}

const (
	gotol = "gotol" // alone of cpu v4 it was brought to stable kernels, 6.1 for one

	modeAtomic = 0xc0

	loadAcquire  = 0x100 // imm of an atomic operation
	storeRelease = 0x110
)

// newer reports whether in is an instruction that came after the first kernels
// with BTF. Those with an opcode of their own are refused before verifiers
// follow the code; those that are marked in a field of an old one are refused
// only where they are reached.
func (in *insn) newer() (newer, bool) {
	switch c := in.class(); {
	case in.op == opJA32:
		return newer{isaV4, gotol, true}, true
	case c == classJMP && in.op&0xf0 == 0xe0:
		return newer{isaMayGoto, "may_goto", true}, true
	case c == classJMP32:
		return newer{isaJMP32, "32-bit jump", true}, true
	case c == classLDX && in.op&0xe0 == modeMemSX:
		return newer{isaV4, "sign-extending load", true}, true
	case c == classSTX && in.op&0xe0 == modeAtomic:
		return in.atomic()
	case c == classALU || c == classALU64:
		return in.newerALU()
	}
	return newer{}, false
}

func (in *insn) newerALU() (newer, bool) {
	op := in.op & 0xf0
	switch {
	case in.isAddrSpaceCast():
		return newer{isaArena, "addr_space_cast", false}, true
	case op == 0xb0 && in.op&srcReg != 0 && in.off != 0:
		return newer{isaV4, "sign-extending move", false}, true
	case op == 0xd0 && in.class() == classALU64:
		return newer{isaV4, "bswap", true}, true
	case (op == 0x30 || op == 0x90) && in.off != 0:
		return newer{isaV4, "signed division", false}, true
	}
	return newer{}, false
}

// atomic names an atomic operation. An addition without a result is as old as
// BPF.
func (in *insn) atomic() (newer, bool) {
	switch in.imm {
	case 0:
		return newer{}, false
	case loadAcquire:
		return newer{isaAcqRel, "load-acquire", in.memSize() < 4}, true
	case storeRelease:
		return newer{isaAcqRel, "store-release", in.memSize() < 4}, true
	}
	return newer{isaAtomics, "atomic operation", true}, true
}

// isAddrSpaceCast reports whether in turns an arena's address into the
// kernel's or back.
func (in *insn) isAddrSpaceCast() bool {
	return in.op == classALU64|srcReg|0xb0 && in.off == 1
}

// presence is whether a kernel has something, as far as its BTF and its
// release tell.
type presence uint8

const (
	present   presence = iota
	lacking            // what came with it is not in the BTF
	older              // the BTF has what came with it, but the release is an older one
	oldUntold          // the BTF does not tell, but the release is an older one
	untold             // neither tells
)

// knows reports whether the kernel's verifier knows a group of instructions.
func (k *kernel) knows(g isa) presence {
	i := &isas[g]
	known := k.version.v != 0
	old := known && k.version.max() < i.since
	_, has := k.enums[i.enum][i.value]
	told := k.enums[enumHelper] != nil && k.enums[enumMap] != nil && k.enums[enumAttach] != nil
	switch {
	case has && old && !i.direct:
		return older
	case has:
		return present
	case told:
		return lacking
	case old:
		return oldUntold
	case known:
		return present
	}
	return untold
}

// instruction judges an instruction by the group that it belongs to.
func (e *evaluation) instruction(at site, n newer) {
	i := &isas[n.group]
	since := fmt.Sprintf("came in Linux %d.%d", i.since>>16, i.since>>8&255)
	f := Finding{Kind: KindInsn, Subject: n.name, Source: e.o.source(at)}
	if n.group == isaV4 {
		f.Subject += " (cpu v4)"
	}
	switch e.k.knows(n.group) {
	case present:
		return
	case lacking:
		f.Status, f.Reason = Fails, "the kernel's verifier does not know it; it "+since
		if n.name == gotol && !(e.k.version.v != 0 && e.k.version.max() < 5<<16|15<<8) {
			f.Status, f.Reason = MayFail, "it "+since+", and in updates of some older kernels, whose BTF does not show it"
		}
	case older:
		f.Status, f.Reason = MayFail, "it "+since+"; the kernel's release is older, but its BTF has what came later"
	case oldUntold:
		f.Status, f.Reason = MayFail, "it "+since+"; the kernel's release is older, and its BTF does not tell"
	default:
		f.Status, f.Reason = Unknown, "it "+since+"; neither the kernel's BTF nor its name tells the release"
	}
	if n.static || n.group == isaAcqRel && e.k.knows(isaAtomics) == lacking {
		e.addInsn(f)
		return
	}
	e.absent = append(e.absent, absence{at, f})
}

// addInsn adds a finding about an instruction. Of a kind that a program has
// many of, the first that is worst is enough.
func (e *evaluation) addInsn(f Finding) {
	for i := range e.out {
		if o := &e.out[i]; o.Kind == KindInsn && o.Subject == f.Subject {
			if f.Status > o.Status {
				*o = f
			}
			return
		}
	}
	e.out = append(e.out, f)
}
