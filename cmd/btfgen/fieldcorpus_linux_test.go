// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldCorpus has tests of TestField about the corpus.
var fieldCorpus = map[string]func(t *testing.T, c *cases){}
