// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package raceflag reports whether the race detector is on. Code then takes several
// times as long and allocates more. It is for tests only.
package raceflag

// Enabled reports whether the program was built with the race detector.
const Enabled = false
