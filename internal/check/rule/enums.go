// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"github.com/btfgen/btfgen/internal/check/facts"
)

// enumerator returns a finding if the BTF has the enum of a part of the kernel's interface, and the enum does not have it. The BTF of
// a whole kernel without the enum of links is from before links.
func (k *Inventory) enumerator(name string, code Code) Finding {
	enum, enumerator := facts.Enumerator(name)
	if !k.lacks(enum, enumerator) && !(enum == facts.EnumLink && k.enums[enum] == nil && k.whole) {
		return Finding{}
	}
	return Finding{
		Status: Fails, Code: code, Subject: name,
		Args: Args{Decided: ByWitness, Witness: enum.String() + ":" + enumerator},
	}
}
