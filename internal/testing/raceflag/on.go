// SPDX-License-Identifier: Apache-2.0

//go:build race

package raceflag

// Enabled reports whether the program was built with the race detector.
const Enabled = true
