// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package corpus

import (
	"errors"
	"os"
)

func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmap([]byte) {}
