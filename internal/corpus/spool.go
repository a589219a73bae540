// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/btfgen/btfgen/internal/limits"
)

// spool is a temporary file with modules, one behind the other.
type spool struct {
	file *os.File // nil if there are none
	end  int64
}

// errSpoolFull is the cause for modules that are left out.
var errSpoolFull = fmt.Errorf("this and later modules left out: more than %d GiB with DWARF", limits.SpilledModules>>30)

// add copies a module into a file of e's, and returns the copy.
func (s *spool) add(ctx context.Context, e *Encoder, module io.ReaderAt) (*io.SectionReader, error) {
	if s.file == nil {
		f, err := e.temporary()
		if err != nil {
			return nil, err
		}
		s.file = f
	}
	from := ctxReader{ctx, io.NewSectionReader(module, 0, limits.SpilledModules-s.end+1)}
	n, err := io.Copy(io.NewOffsetWriter(s.file, s.end), from)
	if err == nil && s.end+n > limits.SpilledModules {
		err = errSpoolFull
	}
	if err != nil {
		return nil, err
	}
	at := s.end
	s.end += n
	return io.NewSectionReader(s.file, at, n), nil
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
	}
}
