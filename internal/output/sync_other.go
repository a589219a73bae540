//go:build !linux

package output

import "os"

const syncsAll = false

func syncAll(*os.File) error { return nil }
