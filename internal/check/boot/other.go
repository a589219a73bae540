// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package boot

import "errors"

// Guest returns an error.
func Guest() error { return errors.New("only Linux boots btfgen") }
