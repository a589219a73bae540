// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package archive

import "errors"

func memoryFile([]byte) (*File, error) { return nil, errors.ErrUnsupported }
