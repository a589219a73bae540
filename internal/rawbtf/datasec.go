// SPDX-License-Identifier: Apache-2.0

package rawbtf

import "github.com/btfgen/btfgen/internal/btfenc"

// VarSecinfo is one variable of a DATASEC.
type VarSecinfo struct {
	Type         btfenc.TypeID // VAR, or FUNC in .ksyms
	Offset, Size uint32        // bytes
}

// VarSecinfo returns variable i of a DATASEC, which must be less than Vlen.
func (t *Type) VarSecinfo(i uint32) VarSecinfo {
	return VarSecinfo{btfenc.TypeID(t.extra(3 * i)), t.extra(3*i + 1), t.extra(3*i + 2)}
}
