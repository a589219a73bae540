// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldTrust has tests of TestField about trust in outside data.
var fieldTrust = map[string]func(t *testing.T, c *cases){}
