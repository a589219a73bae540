// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/corpus/skip"
)

// Error says why a file, or a part of one, was left out. File.Read returns it; skip.Errors splits several.
type Error = skip.Error

// ErrNoKernel is the cause for modules without their kernel.
var ErrNoKernel = errors.New("module BTF without its kernel's vmlinux")

// Causes for leaving out what has no error.
var (
	ErrNoObject   = errors.New("no object is for its machine")                      // a kernel
	ErrUnmet      = errors.New("no kernel is of a machine that it is for")          // an object
	ErrUnselected = errors.New("no selected kernel is of a machine that it is for") // an object, but others may be
)

// ErrMachine is the cause for a kernel whose BTF is that of another machine than its key says. The kernel is used.
var ErrMachine = errors.New("another machine")

// ErrUnfit is the cause for a module without its kernel's types, such as that of another build. The kernel is used without it.
var ErrUnfit = errors.New("module left out, as its BTF does not fit the kernel's")

// ErrTaken is the cause for a kernel that is left out because a different one has its key.
var ErrTaken = errors.New("another kernel")

// ErrAgain is the cause for a kernel that is left out because the same BTF has its key already.
var ErrAgain = errors.New("again")

// again returns the error for a file that is left out because its owner is the same kernel.
func again(what, owner string) error { return fmt.Errorf("is %s %w: %s", what, ErrAgain, owner) }
