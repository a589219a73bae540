// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
)

// miss is why a candidate does not match. It is kept unformatted, because most
// are never read.
type miss struct {
	code          missCode
	name          string   // of a member or an enumerator
	local, target btf.Type // what was compared last
	l, t          uint32   // numbers on either side, by code
}

type missCode uint8

const (
	missNone missCode = iota
	missKind
	missMember
	missEnumName
	missBitOffset
	missNotArray
	missShortArray
	missEnumerator
	missNotEnum
	missTypeName
	missInt
	missNelems
	missParams
	missVlen
	missEnumSize
)

// String is the reason that a log gives for a candidate that does not match.
func (m *miss) String() string {
	switch m.code {
	case missKind:
		s := fmt.Sprintf("incompatible kinds: %s vs %s", m.local.Kind(), m.target.Kind())
		if m.name != "" {
			s = fmt.Sprintf("member %s: %s", m.name, s)
		}
		return s
	case missMember:
		return fmt.Sprintf("no member %s", m.name)
	case missEnumName:
		return fmt.Sprintf("member %s: different names: %s %s vs %s", m.name, m.local.Kind(), m.local.Name(), m.target.Name())
	case missBitOffset:
		if m.name == "" {
			return "integer with a bit offset"
		}
		return fmt.Sprintf("member %s: integer with a bit offset", m.name)
	case missNotArray:
		return fmt.Sprintf("not an array: %s", m.target.Kind())
	case missShortArray:
		return fmt.Sprintf("array too short: element %d of %d", m.l, m.t)
	case missEnumerator:
		return fmt.Sprintf("enum has no value %s", m.name)
	case missNotEnum:
		return fmt.Sprintf("not an enum: %s", m.target.Kind())
	case missTypeName:
		return fmt.Sprintf("different names: %s vs %s", typeName(m.local), typeName(m.target))
	case missInt:
		return fmt.Sprintf("integers of different size or sign: %s", typeName(m.local))
	case missNelems:
		return fmt.Sprintf("arrays of %d elements vs %d", m.l, m.t)
	case missParams:
		return fmt.Sprintf("function of %d parameters vs %d", m.l, m.t)
	case missVlen:
		return fmt.Sprintf("%s: %d members vs %d", typeName(m.local), m.l, m.t)
	case missEnumSize:
		return fmt.Sprintf("%s: different size, or fewer values", typeName(m.local))
	}
	return ""
}

// typeName returns how C names a type: "struct task_struct", "u64".
func typeName(t btf.Type) string {
	name := string(t.Name())
	if name == "" {
		name = "<anon>"
	}
	switch k := t.Kind(); k {
	case btf.KindStruct, btf.KindUnion, btf.KindFunc, btf.KindVar:
		return k.String() + " " + name
	case btf.KindEnum, btf.KindEnum64:
		return "enum " + name
	case btf.KindFwd:
		if t.KindFlag() {
			return "union " + name
		}
		return "struct " + name
	case btf.KindInt, btf.KindFloat, btf.KindTypedef:
		return name
	case btf.KindVoid:
		return "void"
	default:
		return k.String()
	}
}
