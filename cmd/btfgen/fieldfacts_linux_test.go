// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldFacts has tests of TestField about facts that kernels differ in.
var fieldFacts = map[string]func(t *testing.T, c *cases){}
