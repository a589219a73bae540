// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldCorpus has tests of TestField about the corpus.
var fieldCorpus = map[string]func(t *testing.T, c *cases){
	"btfc-names-bomb": func(t *testing.T, c *cases) {
		r := c.run(t, "btfc-names-bomb")
		const failed = `(?m)^btfgen: damaged: x\.btfc!debian/12/x86_64/\d+: .*kernel debian/12/x86_64/0, at byte 5: unpacks to more than 100 times its size`
		r.want(t, failed, `\[btfgen generate: 1\]`, failed, `\[btfgen corpus list: 1\]`, `parent-fails-50\.btfc`, `\[btfgen corpus list: 1\]`)
		if r.memory > 512<<20 {
			t.Errorf("%d MB of memory", r.memory>>20)
		}
		r.absent(t, "out.btfa")
	},
}
