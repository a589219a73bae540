// SPDX-License-Identifier: Apache-2.0

// Package unwrap gives the packages of this module the engine behind the types
// of pkg/relolog, which show nothing of it to others.
package unwrap

import (
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// Object returns the engine's side of an object.
func Object(o *relolog.Object) *engine.Object { return engine.Public.Object(o) }

// Kernel returns the engine's side of a kernel.
func Kernel(t *relolog.Target) *engine.Kernel { return engine.Public.Kernel(t) }
