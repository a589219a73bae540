// SPDX-License-Identifier: Apache-2.0

package rule

// Age removes from an inventory what came after a release, so that tests have older kernels than their corpus.
func Age(k *Inventory, to Release) {
	for name, came := range facts().came {
		if enum, enumerator := enumeratorOf(name); came > to && k.enums[enum] != nil {
			delete(k.enums[enum], enumerator)
		}
	}
	if to < Linux(5, 8) { // when flags became an enum
		k.enums[enumMapFlag] = nil
	}
	k.version.V, k.version.Unknown = uint64(to), 0
	k.readHelpers()
	k.settle()
	for i, f := range facts().all {
		if r := &k.facts[i]; f.since > to && r.decided == ByWitness {
			if r.presence, r.witness = lacking, f.witness[0].text; f.witness[0].unsure {
				r.presence = untold
			}
		}
	}
	k.setFeatures()
}
