// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/binary"
	"fmt"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Byte orders as listings and findings call them.
const (
	little = "little"
	big    = "big"
)

func orderOf(order binary.ByteOrder) string {
	if order == binary.BigEndian {
		return big
	}
	return little
}

// contradiction says in what a BTF, or the file that it is in, is different from what the
// architecture in its path has, "" if in nothing. fileArch is empty if the file does not tell.
func contradiction(pathArch, fileArch string, b *btf.BTF, regs *btf.Type) string {
	arch := kernel.CanonicalArch(pathArch)
	if fileArch != "" && arch != "" && fileArch != arch {
		return fmt.Sprintf("the file is for %s, its path says %s", fileArch, arch)
	}
	m := machine.Named(arch)
	if m == nil {
		return ""
	}
	if o := machine.Of(b, regs); o != nil && o.Arch != arch {
		return fmt.Sprintf("struct pt_regs is that of %s, the path says %s", o.Arch, arch)
	}
	if b.Order() != m.Order {
		return fmt.Sprintf("the BTF is %s-endian, %s is %s-endian", orderOf(b.Order()), arch, orderOf(m.Order))
	}
	if p := b.PointerSize(); p != m.Pointer {
		return fmt.Sprintf("long has %d bytes, on %s it has %d", p, arch, m.Pointer)
	}
	if regs.Vlen() > 0 && !b.HasMember(regs, m.Register) {
		return fmt.Sprintf("struct pt_regs has no %s, on %s it has", m.Register, arch)
	}
	return ""
}
