// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package store

import "errors"

var freeSpace = func(string) (int64, error) { return 0, errors.ErrUnsupported }
