// SPDX-License-Identifier: Apache-2.0

// Package facade lets the public packages of this module use what the types of
// package relolog wrap. An exported method would show internal types to users.
package facade

import "github.com/btfgen/btfgen/internal/core"

// Package relolog sets these when it is initialized. The arguments must be what the
// comments say.
var (
	Object    func(o any) *core.Object     // takes a *relolog.Object
	Target    func(t any) *core.Target     // takes a *relolog.Target
	NewTarget func(k *core.Target) (t any) // returns a *relolog.Target
)
