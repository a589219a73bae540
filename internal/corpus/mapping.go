// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"os"
)

// mapping is a file that is mapped into memory.
type mapping struct {
	path string
	info os.FileInfo // when it was mapped
	data []byte
}

const (
	mapMin  = 256 << 10 // bytes; below, reading is as fast
	maxMaps = 64        // of one unit; modules can have thousands of files
)

// changed reports whether the file was changed or replaced after it was mapped.
func (m *mapping) changed() bool {
	now, err := os.Stat(m.path)
	return err != nil || !os.SameFile(now, m.info) || now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime())
}

var errChanged = errors.New("changed while it was read")
