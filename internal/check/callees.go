// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/btfgen/btfgen/internal/bpfobj"

// callees are the functions that one calls, or has called back.
type callees struct {
	calls  []int // each once, in order of the code
	shared bool  // its result is kept for other programs and kernels: calls nest no deeper than verifiers accept
}

// findCallees returns those of each function.
func findCallees(o *bpfobj.Object) []callees {
	const (
		deepest = 8
		busy    = deepest + 1 // while its callees are looked at: it calls itself
	)
	all, depth := make([]callees, len(o.Funcs)), make([]int, len(o.Funcs))
	for fn := range o.Funcs {
		all[fn].calls = o.Funcs[fn].Calls()
	}
	var visit func(fn int) int
	visit = func(fn int) int {
		if depth[fn] == 0 {
			depth[fn] = busy
			d := 1
			for _, c := range all[fn].calls {
				d = max(d, 1+visit(c))
			}
			depth[fn] = min(d, busy)
			all[fn].shared = d <= deepest
		}
		return depth[fn]
	}
	for fn := range o.Funcs {
		visit(fn)
	}
	return all
}
