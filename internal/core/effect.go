// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	"github.com/btfgen/btfgen/pkg/relo"
)

// effect is the change of an instruction, or the failure.
type effect struct {
	result relo.Result
	val    uint64
	load   load
}

// effectOf returns the effect of a decision. id says that the value is the ID of a type.
func effectOf(result relo.Result, val uint64, l load, id bool) effect {
	switch {
	case result == relo.Ambiguous:
		return effect{result: relo.Error} // the order decides which comes first, and both end the load
	case result != relo.Resolved:
		return effect{result: result}
	case id:
		val = 0
	}
	return effect{result, val, l}
}

func (e effect) String() string {
	switch {
	case e.result != relo.Resolved:
		return e.result.String()
	case e.load.ok:
		return fmt.Sprintf("%d, %s", e.val, e.load)
	}
	return fmt.Sprint(e.val)
}
