// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldRules has tests of TestField about rules of check.
var fieldRules = map[string]func(t *testing.T, c *cases){}
