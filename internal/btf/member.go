// SPDX-License-Identifier: Apache-2.0

package btf

import "github.com/btfgen/btfgen/internal/limits"

// HasMember reports whether a struct or union has a member of a name, itself or in its anonymous ones. One that is
// further away than limits allow does not count.
func (b *BTF) HasMember(t *Type, name string) bool {
	looks := limits.MemberLooks
	return b.nestedMember(t, name, limits.MemberNesting, &looks)
}

func (b *BTF) nestedMember(t *Type, name string, depth int, looks *int) bool {
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
		if inner, ok := b.SkipMods(m.Type); ok && b.nestedMember(&inner, name, depth-1, looks) {
			return true
		}
	}
	return false
}
