// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package store

import "errors"

func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
