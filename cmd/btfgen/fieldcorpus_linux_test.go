// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
)

// fieldCorpus has tests of TestField about the corpus.
var fieldCorpus = map[string]func(t *testing.T, c *cases){
	"btfc-names-bomb": func(t *testing.T, c *cases) {
		r := c.run(t, "btfc-names-bomb")
		const failed = `(?m)^btfgen: damaged: %s\.btfc: btfc: kernel debian/12/x86_64/0, at byte 5: unpacks to more than 100 times its size; affects %d kernels`
		x, fails := fmt.Sprintf(failed, "x", 201), fmt.Sprintf(failed, "parent-fails-50", 51)
		r.want(t, x, `\[btfgen generate: 1\]`, x, `\[btfgen corpus list: 1\]`, fails, `\[btfgen corpus list: 1\]`)
		if r.memory > 512<<20 {
			t.Errorf("%d MB of memory", r.memory>>20)
		}
		r.absent(t, "out.btfa")
	},
}
