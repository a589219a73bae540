// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"slices"
	"strings"
)

// Modules returns the names of the modules that programs need to be loaded, in order.
func (r *Report) Modules() []string {
	names := make(map[string]bool)
	for i := range r.Programs {
		for _, f := range r.Programs[i].Findings {
			if name, ok := strings.CutPrefix(f.Reason, needsModule); ok {
				name, _, _ = strings.Cut(name, " ")
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
