// SPDX-License-Identifier: Apache-2.0

package engine

// Public is how packages of this module reach what is behind the types of
// pkg/relolog, which do not show it. pkg/relolog sets both when it is
// initialized; package unwrap calls them with the types that they want.
var Public struct {
	Object func(relologObject any) *Object
	Kernel func(relologTarget any) *Kernel
}
