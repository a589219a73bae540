// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldHosts has tests of TestField about look-ups on hosts.
var fieldHosts = map[string]func(t *testing.T, c *cases){
	"plain-release": func(t *testing.T, c *cases) {
		c.run(t, "plain-release").want(t, `match:  none: no kernel 5\.10\.135 for x86_64, and none of buildroot`, `\[btfgen archive lookup: 3\]`)
	},
	"uname-machine": func(t *testing.T, c *cases) {
		c.run(t, "uname-machine").want(t,
			`host:   debian/12/mips64el/.*\nmatch:  exact`, `host:   debian/12/arm/.*\nmatch:  exact`,
			`host:   debian/12/arm/.*\nmatch:  exact`, `host:   debian/12/arm64/.*\nmatch:  exact`)
	},
	"neighbour-series": func(t *testing.T, c *cases) {
		c.run(t, "neighbour-series").want(t,
			`match:  neighbour: .*`, `kernel: flatcar/3510\.2\.3/x86_64/5\.15\.94-flatcar`,
			`match:  neighbour: .*`, `kernel: android/12/arm64/5\.10\.81-android12-9-`)
	},
}
