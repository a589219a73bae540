// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package output

import "os"

const syncsAll = false

func syncAll(*os.File) error { return nil }
