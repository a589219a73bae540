// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// Compatible reports whether a type of an object may stand for one of a kernel
// by libbpf's rules for typed externs (bpf_core_types_are_compat): modifiers and
// typedefs apart the kinds agree through pointers, elements and prototypes,
// names do not count. It is false for types that nest too deeply to tell.
func Compatible(local *btf.BTF, lid btf.TypeID, kernel *btf.BTF, kid btf.TypeID) bool {
	m := matcher{local: local, targ: kernel, budget: limits.ExternSteps}
	ok, err := m.walk(lid, kid, relExists, false, maxLevel)
	return ok && err == nil
}
