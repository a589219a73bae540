// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldSpeed has tests of TestField about crashes, time and memory.
var fieldSpeed = map[string]func(t *testing.T, c *cases){
	"types-race": func(t *testing.T, c *cases) {
		for range 3 { // most runs crashed
			c.commands(t, "types-race", "btfgen check --btf ../../corpus --types memberless.btf -j 8 -q many.o").want(t, `\[btfgen check: 3\]`)
		}
	},
}
