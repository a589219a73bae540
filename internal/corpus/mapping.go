// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/btfgen/btfgen/internal/corpus/skip"
)

// mapping is a file that is mapped into memory.
type mapping struct {
	path string
	info os.FileInfo // when it was mapped
	data []byte
}

const (
	mapMin  = 256 << 10 // bytes; below, reading is as fast
	maxMaps = 64        // mapped files of one reading; modules can have thousands of files
)

// changed reports whether the file was changed or replaced after it was mapped.
func (m *mapping) changed() bool {
	now, err := os.Stat(m.path)
	return err != nil || !os.SameFile(now, m.info) || now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime())
}

var errChanged = errors.New("changed while it was read")

// mappings are the files that a reading has mapped.
type mappings []mapping

// guard prepares this goroutine for files that change while they are mapped. Memory behind the end of a truncated file is gone, and
// checks of earlier content do not hold for a new one. Both cause run-time errors. The caller defers the function that it returns. That
// function replaces such an error with one of the changed file in err, and unmaps all files.
func (l *mappings) guard(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		cause := recover()
		thrown, _ := cause.(error) // a workers.Defect if another goroutine panicked
		var fault runtime.Error
		faulted := errors.As(thrown, &fault)
		for i := range *l {
			m := &(*l)[i]
			if faulted && m.changed() {
				cause, *err = nil, skip.Wrap(m.path, "btf", errChanged)
			}
			unmap(m.data)
		}
		*l = nil
		if cause != nil {
			panic(cause)
		}
	}
}
