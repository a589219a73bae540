// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// fieldSpeed has tests of TestField about crashes, time and memory.
var fieldSpeed = map[string]func(t *testing.T, c *cases){}
