// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Compatible reports whether a type of an object may stand for one of a kernel
// by libbpf's rules for typed externs (bpf_core_types_are_compat): modifiers and
// typedefs apart the kinds agree through pointers, elements and prototypes,
// names do not count. It is false for types that nest too deeply to tell.
func Compatible(local *rawbtf.BTF, lid btfenc.TypeID, kernel *rawbtf.BTF, kid btfenc.TypeID) bool {
	m := matcher{local: local, targ: kernel, budget: limits.ExternSteps}
	ok, err := m.walk(lid, kid, relExists, false, maxLevel)
	return ok && err == nil
}
