// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package raceflag says whether the race detector is on, which makes code take
// several times as long and allocate more. It is for tests only.
package raceflag

// Enabled says whether the program was built with the race detector.
const Enabled = false
