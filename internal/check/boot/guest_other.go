// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package boot

import "errors"

// Guest is an error where there is no Linux.
func Guest() error { return errors.New("only Linux boots btfgen") }
