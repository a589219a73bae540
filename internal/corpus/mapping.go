// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
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

// mapped returns the bytes of a file of raw BTF, or nil if reading it is better.
func (r *run) mapped(in *input) []byte {
	if !r.f.opts.Map || in.file == nil || len(r.s.maps) == maxMaps {
		return nil
	}
	info, err := in.file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < mapMin || info.Size() > r.f.opts.MaxSize {
		return nil
	}
	data, err := mapFile(in.file, int(info.Size()))
	if err != nil {
		return nil
	}
	r.s.maps = append(r.s.maps, mapping{in.path, info, data})
	return data
}

// changed reports whether the file was changed or replaced after it was mapped.
func (m *mapping) changed() bool {
	now, err := os.Stat(m.path)
	return err != nil || !os.SameFile(now, m.info) || now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime())
}

var errChanged = errors.New("changed while it was read")

// guardMaps prepares this goroutine for files that change while they are mapped. Memory behind the end of a truncated file is gone, and
// checks of earlier content do not hold for a new one. Both cause run-time errors. The caller defers the function that it returns. That
// function replaces such an error with one of the changed file in err, and unmaps all files.
func (s *scratch) guardMaps(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		cause := recover()
		for i := range s.maps {
			m := &s.maps[i]
			if _, ok := cause.(runtime.Error); ok && m.changed() {
				cause, *err = nil, wrap(m.path, "btf", errChanged)
			}
			unmap(m.data)
		}
		clear(s.maps)
		s.maps = s.maps[:0]
		if cause != nil {
			panic(cause)
		}
	}
}
