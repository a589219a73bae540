// SPDX-License-Identifier: Apache-2.0

package rule

import "github.com/btfgen/btfgen/internal/check/facts"

// Age removes from an inventory what came after a release, so that tests have older kernels than their corpus.
func Age(k *Inventory, to Release) {
	for name, came := range facts.Interface() {
		if enum, enumerator := facts.Enumerator(name); came > to && k.enums[enum] != nil {
			delete(k.enums[enum], enumerator)
		}
	}
	// Flags became an enum with 5.8.
	if to < Linux(5, 8) {
		k.enums[facts.EnumMapFlag] = nil
	}
	k.version.V, k.version.Unknown = uint64(to), 0
	k.readHelpers()
	k.settle()
	k.facts.Age(to)
	k.setFeatures()
}
