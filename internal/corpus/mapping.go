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

// mapped returns the bytes of a file of raw BTF, or nil where it is better read.
func (r *reader) mapped(p *part, file *os.File) []byte {
	if !r.f.opts.Map || p.kind != kindBTF || len(r.s.maps) == maxMaps {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < mapMin || info.Size() > r.f.opts.MaxSize {
		return nil
	}
	data, err := mapFile(file, int(info.Size()))
	if err != nil {
		return nil
	}
	r.s.maps = append(r.s.maps, mapping{p.path, info, data})
	return data
}

// changed says whether the file is not the one that was mapped, or not as it was.
func (m *mapping) changed() bool {
	now, err := os.Stat(m.path)
	return err != nil || !os.SameFile(now, m.info) || now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime())
}

var errChanged = errors.New("changed while it was read")

// guardMaps prepares this goroutine for files that change while they are mapped: a truncated one
// has no memory behind its end, and checks made of another one's content do not hold. Either shows
// as a run-time error. The function that it returns is to be deferred. It makes such an error
// of a changed file one of err, and ends the mappings.
func (s *Scratch) guardMaps(err *error) func() {
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
