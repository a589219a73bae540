// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldHosts has tests of TestField about look-ups on hosts.
var fieldHosts = map[string]func(t *testing.T, c *cases){}
