// SPDX-License-Identifier: Apache-2.0

package btf

// VarSecinfo is one variable of a DATASEC.
type VarSecinfo struct {
	Type         TypeID // VAR, or FUNC in .ksyms
	Offset, Size uint32 // bytes
}

// VarSecinfo returns variable i of a DATASEC, which must be less than Vlen.
func (t *Type) VarSecinfo(i uint32) VarSecinfo {
	return VarSecinfo{TypeID(t.extra(3 * i)), t.extra(3*i + 1), t.extra(3*i + 2)}
}
