// SPDX-License-Identifier: Apache-2.0

package check

import "testing"

// TestMapDefinitions holds verdicts on the maps of two objects: those of one are
// right, and the one of the other has keys that are too long for old kernels.
func TestMapDefinitions(t *testing.T) {
	families := []Family{FamilyMapType, FamilyMapDef}
	expectVerdicts(t, "maps", families, map[string]expected{"uses_maps": {}})
	long := expected{before: "5.11", status: MayFail}
	expectVerdicts(t, "longkeys", families, map[string]expected{"uses_map": long, "uses_none": long})
}
