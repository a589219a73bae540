package lint

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// machine is what the BTF of an architecture's kernels shows.
type machine struct {
	arch     string // in canonical spelling
	register string // member of struct pt_regs that other architectures lack
	order    string // byte order
	pointer  uint32 // bytes
}

// Byte orders as listings and findings call them.
const (
	little = "little"
	big    = "big"
)

// machines are the architectures with BTF. Of several with the same register, byte order and size
// of a pointer make the difference.
var machines = []machine{
	{"x86_64", "r15", little, 8},
	{"i386", "bx", little, 4},
	{"arm64", "pstate", little, 8},
	{"arm", "uregs", little, 4},
	{"ppc64le", "nip", little, 8},
	{"ppc64", "nip", big, 8},
	{"s390x", "psw", big, 8},
	{"riscv64", "epc", little, 8},
	{"loongarch64", "csr_era", little, 8},
	{"mips", "cp0_epc", big, 4},
	{"mipsel", "cp0_epc", little, 4},
	{"mips64", "cp0_epc", big, 8},
	{"mips64el", "cp0_epc", little, 8},
	{"sparc64", "tpc", big, 8},
}

func orderOf(b *rawbtf.BTF) string {
	if b.Order().String() == "BigEndian" {
		return big
	}
	return little
}

// machineOf returns the machine that a BTF is for, by its pt_regs, nil if that is not known.
func machineOf(b *rawbtf.BTF, regs *rawbtf.Type) *machine {
	for i := range machines {
		m := &machines[i]
		if m.order == orderOf(b) && m.pointer == b.PointerSize() && hasMember(b, regs, m.register) {
			return m
		}
	}
	return nil
}

// contradiction says in what a BTF, or the file that it is in, is different from what the
// architecture in its path has, "" if in nothing. fileArch is empty if the file does not tell.
func contradiction(pathArch, fileArch string, b *rawbtf.BTF, regs *rawbtf.Type) string {
	arch := kernel.CanonicalArch(pathArch)
	if fileArch != "" && arch != "" && fileArch != arch {
		return fmt.Sprintf("the file is for %s, its path says %s", fileArch, arch)
	}
	for _, m := range machines {
		if m.arch != arch {
			continue
		}
		if o := machineOf(b, regs); o != nil && o.arch != arch {
			return fmt.Sprintf("struct pt_regs is that of %s, the path says %s", o.arch, arch)
		}
		if order := orderOf(b); order != m.order {
			return fmt.Sprintf("the BTF is %s-endian, %s is %s-endian", order, arch, m.order)
		}
		if p := b.PointerSize(); p != m.pointer {
			return fmt.Sprintf("long has %d bytes, on %s it has %d", p, arch, m.pointer)
		}
		if regs.Vlen() > 0 && !hasMember(b, regs, m.register) {
			return fmt.Sprintf("struct pt_regs has no %s, on %s it has", m.register, arch)
		}
	}
	return ""
}

// hasMember says whether a struct has a member of a name, itself or in its anonymous structs and
// unions.
func hasMember(b *rawbtf.BTF, t *rawbtf.Type, name string) bool {
	looks := limits.LintMembers
	return nestedMember(b, t, name, limits.LintNesting, &looks)
}

func nestedMember(b *rawbtf.BTF, t *rawbtf.Type, name string, depth int, looks *int) bool {
	if depth == 0 || !t.Kind().IsComposite() {
		return false
	}
	for i := range t.Vlen() {
		if *looks--; *looks < 0 {
			return false
		}
		m := t.Member(i)
		if m.NameOff != 0 {
			if b.NameIs(m.NameOff, name) {
				return true
			}
			continue
		}
		if inner, ok := b.SkipMods(m.Type); ok && nestedMember(b, &inner, name, depth-1, looks) {
			return true
		}
	}
	return false
}
