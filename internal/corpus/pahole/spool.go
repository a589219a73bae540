// SPDX-License-Identifier: Apache-2.0

package pahole

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// Spool is a temporary file with modules, one behind the other.
type Spool struct {
	file *os.File // nil if there are none
	end  int64
}

// ErrSpoolFull is the cause for modules that are left out.
var ErrSpoolFull = fmt.Errorf("this and later modules left out: more than %d GiB with DWARF", limits.SpilledModules>>30)

// Add copies a module into a file of e's, and returns the copy.
func (s *Spool) Add(ctx context.Context, e *Encoder, module io.ReaderAt) (*io.SectionReader, error) {
	if s.file == nil {
		f, err := e.Temporary()
		if err != nil {
			return nil, err
		}
		s.file = f
	}
	from := decompress.Until(ctx, io.NewSectionReader(module, 0, limits.SpilledModules-s.end+1))
	n, err := io.Copy(io.NewOffsetWriter(s.file, s.end), from)
	if err == nil && s.end+n > limits.SpilledModules {
		err = ErrSpoolFull
	}
	if err != nil {
		return nil, err
	}
	at := s.end
	s.end += n
	return io.NewSectionReader(s.file, at, n), nil
}

// Close removes the file.
func (s *Spool) Close() {
	if s.file != nil {
		s.file.Close()
	}
}
